"""How does a person say at which hours a workspace is to be left in peace?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from postdate.domain import text
from postdate.domain.quiet import LONGEST_QUIET, QuietHours, WorkspaceQuietHours, quiet_until
from postdate.domain.zones import zone
from postdate.errors import Invalid, InvalidZone
from postdate.store import quiet
from postdate.store.owners import hold_owners
from postdate.store.schema import SYSTEM_PROFILE
from postdate.verbs.arguments import DEFAULT_ACTOR, actor_name, note_text, workspace_uuid

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from postdate.kernel import Connectable, Kernel, Unbegun
    from postdate.store.transaction import Transaction


def set_quiet_hours(
    kernel: Kernel,
    workspace: UUID | str,
    hours: QuietHours | str | Iterable[QuietHours | str],
    *,
    action_type: str | None = None,
    tz: str | None = None,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> list[WorkspaceQuietHours]:
    """Let nothing go out in a workspace, or nothing of one type, at these hours; return them as they are kept.

    They take the place of those that the workspace has for that type; those for every type hold for each type beside
    its own. `hours` are values or text, as in `22:00-08:00` or `sat,sun 00:00-00:00`, in `tz`, else in the zone of the
    workspace. What falls due then goes out when they end. Raises `Invalid`, also for hours that leave no time at all,
    `InvalidZone`, and `OwnerNotFound`.
    """
    workspace_id, of_type = workspace_uuid(workspace), _type(kernel, action_type)
    actor, note, wanted = actor_name(actor), note_text(note), _hours(hours, tz)
    with kernel.transaction(connection) as tx:
        now = kernel.now(tx)
        hold_owners(tx, workspaces=[workspace_id], users=[])
        _require_zones(kernel, tx, workspace_id, wanted)
        quiet.remove_quiet_hours(tx, workspace_id=workspace_id, action_type=of_type)
        kept = {
            kernel.new_id(now): WorkspaceQuietHours(
                workspace_id=workspace_id, action_type=of_type, hours=each, set_at=now, set_by=actor, note=note
            )
            for each in wanted
        }
        quiet.add_quiet_hours(tx, kept)
        _require_some_time(kernel, tx, workspace_id, now)
        return list(kept.values())


def clear_quiet_hours(
    kernel: Kernel,
    workspace: UUID | str,
    *,
    action_type: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> list[WorkspaceQuietHours]:
    """Take away the quiet hours of a workspace for exactly this type, or those for every type; return what they were.

    What was put off already goes out when it was put off to. Raises `Invalid`.
    """
    workspace_id = workspace_uuid(workspace)
    of_type = text.optional_name(action_type, field="action_type", limit=text.MAX_TYPE)
    with kernel.transaction(connection) as tx:
        return quiet.remove_quiet_hours(tx, workspace_id=workspace_id, action_type=of_type)


def quiet_hours(
    kernel: Kernel, *, workspace: UUID | str | None = None, connection: Connectable | Unbegun | None = None
) -> list[WorkspaceQuietHours]:
    """Return the quiet hours of a workspace, or of all. Raises `Invalid`."""
    wanted = None if workspace is None else [workspace_uuid(workspace)]
    with kernel.transaction(connection, read_only=True) as tx:
        return quiet.quiet_hours(tx, workspace_ids=wanted)


def _hours(hours: object, tz: str | None) -> Sequence[QuietHours]:
    several: Iterable[object] = (
        [hours] if isinstance(hours, str | QuietHours) or not isinstance(hours, Iterable) else hours
    )
    found = [each if isinstance(each, QuietHours) else QuietHours.parse(each) for each in several]
    if not found:
        raise Invalid(field="hours", rule="are needed; to have none, clear them")
    return [replace(each, tz=each.tz if each.tz is not None else tz) for each in found]


def _type(kernel: Kernel, action_type: str | None) -> str | None:
    of_type = text.optional_name(action_type, field="action_type", limit=text.MAX_TYPE)
    known = None if of_type is None else kernel.registry.get(of_type)
    if known is not None and known.ignores_quiet_hours:
        raise Invalid(field="action_type", rule="ignores quiet hours", value=of_type)
    return of_type


def _require_zones(kernel: Kernel, tx: Transaction, workspace_id: UUID, hours: Sequence[QuietHours]) -> None:
    for each in hours:
        tz = each.tz or kernel.default_zone(tx, workspace=workspace_id, user=SYSTEM_PROFILE)
        if tz is None:
            raise InvalidZone(field="tz", rule="is needed: the workspace names no zone")
        zone(tz)


def _require_some_time(kernel: Kernel, tx: Transaction, workspace_id: UUID, now: datetime) -> None:
    """Raise `Invalid` where the workspace's hours together leave some type no time at all."""
    kept = quiet.quiet_hours(tx, workspace_ids=[workspace_id])
    tz = kernel.default_zone(tx, workspace=workspace_id, user=SYSTEM_PROFILE) or "UTC"
    for of_type in {each.action_type for each in kept}:
        together = [each.hours for each in kept if each.action_type in {None, of_type}]
        end = quiet_until(together, now=now, tz=tz)
        if end is not None and end - now >= LONGEST_QUIET:
            raise Invalid(
                field="hours", rule="must leave some time: these are always", value=", ".join(map(str, together))
            )
