"""How does a person let an installation go on that was put on hold?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from postdate.domain.instant import instant
from postdate.domain.states import Cause, Reason
from postdate.errors import NotHeld
from postdate.hooks import tell_settled
from postdate.store.actions import announce_queued
from postdate.store.heartbeat import due_by_type, heartbeat, queued_before, release_all
from postdate.store.outcomes import withdraw_queued
from postdate.verbs.arguments import DEFAULT_ACTOR, actor_name, note_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from postdate.kernel import Connectable, Kernel, Unbegun
    from postdate.store.heartbeat import Due
    from postdate.store.transaction import Transaction

_BATCH = 500


@dataclass(frozen=True, kw_only=True)
class Hold:
    """Nothing at all is claimed or recovered until a person releases it."""

    since: datetime
    because: str
    last_tick_at: datetime | None
    """When an engine last looked at this database, as far as it knows."""
    due: Sequence[Due]
    """What would go out at once."""


@dataclass(frozen=True, kw_only=True)
class Release:
    """The end of a hold."""

    released_at: datetime
    released_by: str
    note: str | None
    cancelled: int
    """How many actions were cancelled rather than let go out."""


def held(kernel: Kernel, *, connection: Connectable | Unbegun | None = None) -> Hold | None:
    """Return the hold that keeps this installation from firing, or None. It may read the whole queue."""
    with kernel.transaction(connection, read_only=True) as tx:
        found = heartbeat(tx)
        if found.held_at is None or found.held_because is None:
            return None
        return Hold(
            since=found.held_at,
            because=found.held_because,
            last_tick_at=found.last_tick_at,
            due=due_by_type(tx, now=kernel.now(tx)),
        )


def release(
    kernel: Kernel,
    *,
    cancel_due_before: datetime | str | None = None,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> Release:
    """End the hold, so that what is due goes out, and keep who did so and why.

    Queued actions due before `cancel_due_before` (aware, or ISO 8601 with an offset) are cancelled first, in the same
    transaction: what a backup still holds, but went out since it was made. Raises `NotHeld` where there is no hold, and
    `InvalidInstant`.
    """
    actor, note = actor_name(actor), note_text(note)
    before = None if cancel_due_before is None else instant(cancel_due_before, field="cancel_due_before")
    with kernel.transaction(connection) as tx:
        now = kernel.now(tx)
        if not release_all(tx, now=now, actor=actor, note=note):
            raise NotHeld
        cancelled = 0 if before is None else _cancel(kernel, tx, before, now=now, actor=actor, note=note)
        announce_queued(tx, [now], now=now)  # engines have set no alarm
        return Release(released_at=now, released_by=actor, note=note, cancelled=cancelled)


def _cancel(kernel: Kernel, tx: Transaction, before: datetime, *, now: datetime, actor: str, note: str | None) -> int:
    types = queued_before(tx, before)
    action_ids, cancelled = list(types), 0
    for start in range(0, len(action_ids), _BATCH):
        batch = action_ids[start : start + _BATCH]
        gone = withdraw_queued(tx, batch, cause=Cause.CANCEL, reason=Reason.USER, now=now, actor=actor, note=note)
        tell_settled(tx, kernel.registry, {action_id: types[action_id] for action_id in gone}, now=now)
        cancelled += len(gone)
    return cancelled
