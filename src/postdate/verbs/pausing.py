"""How does a person stop what is due, and let it go on?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postdate.domain import text
from postdate.domain.pause import EndedPause, Pause
from postdate.errors import Invalid, NotPaused
from postdate.store import pauses
from postdate.store.actions import announce_queued
from postdate.store.owners import hold_owners
from postdate.verbs.arguments import DEFAULT_ACTOR, actor_name, note_text, owner_id, page_limit

if TYPE_CHECKING:
    from uuid import UUID

    from postdate.kernel import Connectable, Kernel, Unbegun


def pause(
    kernel: Kernel,
    *,
    workspace: UUID | str | None = None,
    action_type: str | None = None,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> Pause:
    """Let nothing more start of a workspace, of an action type, or of one type in one workspace, and return the pause.

    What runs goes on. What falls due waits, in its order, and goes out after `resume`, late, unless it has expired by
    then. Idempotent: where there is such a pause, that one is returned. Raises `Invalid`, or `OwnerNotFound` for a
    workspace that does not exist.
    """
    workspace_id, of_type = _scope(workspace, action_type)
    actor, note = actor_name(actor), note_text(note)
    with kernel.transaction(connection) as tx:
        now = kernel.now(tx)
        hold_owners(tx, workspaces=[workspace_id], users=[])
        new = Pause(
            id=kernel.new_id(now),
            workspace_id=workspace_id,
            action_type=of_type,
            paused_at=now,
            paused_by=actor,
            note=note,
        )
        if pauses.begin_pause(tx, new):
            return new
        return pauses.find_pause(tx, workspace_id=workspace_id, action_type=of_type) or new


def resume(
    kernel: Kernel,
    *,
    workspace: UUID | str | None = None,
    action_type: str | None = None,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> EndedPause:
    """End the pause of exactly this workspace and type, and return the record that is kept of it.

    What it held, and no other pause stops, goes out from now on. Raises `NotPaused` where there is no such pause.
    """
    workspace_id, of_type = _scope(workspace, action_type)
    actor, note = actor_name(actor), note_text(note)
    with kernel.transaction(connection) as tx:
        now = kernel.now(tx)
        ended = pauses.end_pause(tx, workspace_id=workspace_id, action_type=of_type, now=now, actor=actor, note=note)
        if ended is None:
            raise NotPaused(workspace_id=workspace_id, action_type=of_type)
        if workspace_id is not None:
            pauses.release_held_of(tx, workspace_id)
        announce_queued(tx, [now], now=now)  # whether or not anything is due: engines have set no alarm for it
        return ended


def paused(kernel: Kernel, *, connection: Connectable | Unbegun | None = None) -> list[Pause]:
    """Return the pauses that have not ended, oldest first."""
    with kernel.transaction(connection, read_only=True) as tx:
        return pauses.pauses(tx)


def ended_pauses(
    kernel: Kernel, *, limit: int = 100, connection: Connectable | Unbegun | None = None
) -> list[EndedPause]:
    """Return the record of pauses that were ended, the latest first, at most `limit` of them. Raises `Invalid`."""
    wanted = page_limit(limit)
    with kernel.transaction(connection, read_only=True) as tx:
        return pauses.ended_pauses(tx, limit=wanted)


def _scope(workspace: UUID | str | None, action_type: str | None) -> tuple[UUID | None, str | None]:
    workspace_id = owner_id(workspace, field="workspace")
    of_type = text.optional_name(action_type, field="action_type", limit=text.MAX_TYPE)
    if workspace_id is None and of_type is None:
        raise Invalid(field="workspace", rule="or action_type is needed: say what the pause is about")
    return workspace_id, of_type
