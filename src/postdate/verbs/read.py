"""How does an action stand, and how did it get there?"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from postdate.domain import text
from postdate.domain.action import ENGINE, SCHEDULED, Action, Event
from postdate.domain.instant import utc
from postdate.domain.states import Cause, Reason, Status
from postdate.errors import ActionNotFound, Invalid
from postdate.store.events import events_of
from postdate.store.reading import Filter, find_action, page_of_actions
from postdate.verbs.arguments import action_uuid, owner_id, page_limit

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from postdate.kernel import Connectable, Kernel, Unbegun
    from postdate.store.transaction import Transaction

_Choice = TypeVar("_Choice", bound=StrEnum)


def get(kernel: Kernel, action: UUID | str, *, connection: Connectable | Unbegun | None = None) -> Action:
    """Return the action as it stands. Raises `ActionNotFound`."""
    with kernel.transaction(connection, read_only=True) as tx:
        return existing(tx, action_uuid(action))


def list_actions(
    kernel: Kernel,
    *,
    status: Status | str | None = None,
    reason: Reason | str | None = None,
    action_type: str | None = None,
    workspace: UUID | str | None = None,
    user: UUID | str | None = None,
    thing: str | None = None,
    target: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 100,
    after: UUID | str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> list[Action]:
    """Return actions in the order of `(publish_at, id)`, at most `limit` of them.

    `since` and `until` (aware, until excluded) bound `publish_at`; `after` is the id of the last action of the page
    before. Raises `Invalid` naming the field, or `ActionNotFound`.
    """
    limit = page_limit(limit)
    wanted = Filter(
        status=None if status is None else _one_of(Status, status, field="status"),
        reason=None if reason is None else _one_of(Reason, reason, field="reason"),
        action_type=text.optional_name(action_type, field="action_type"),
        workspace_id=owner_id(workspace, field="workspace"),
        user_id=owner_id(user, field="user"),
        thing_id=text.optional_name(thing, field="thing"),
        target_key=text.optional_name(target, field="target"),
        since=None if since is None else utc(since, field="since"),
        until=None if until is None else utc(until, field="until"),
    )
    with kernel.transaction(connection, read_only=True) as tx:
        last = None if after is None else existing(tx, action_uuid(after, field="after")).id
        return page_of_actions(tx, wanted, limit=limit, after=last)


def history(kernel: Kernel, action: UUID | str, *, connection: Connectable | Unbegun | None = None) -> list[Event]:
    """Return what happened to the action, oldest first: who did what, when, with which error.

    Raises `ActionNotFound`.
    """
    with kernel.transaction(connection, read_only=True) as tx:
        found = existing(tx, action_uuid(action))
        return _told(found, events_of(tx, found.id))


def existing(tx: Transaction, action_id: UUID) -> Action:
    """Return the action. Raises `ActionNotFound`."""
    action = find_action(tx, action_id)
    if action is None:
        raise ActionNotFound(action_id)
    return action


def _told(action: Action, written: list[Event]) -> list[Event]:
    """Add what needs no event of its own: a scheduling that named no actor, and a plain success."""
    causes = {event.cause for event in written}
    told = list(written)
    if SCHEDULED not in causes:
        told.insert(0, Event(at=action.created_at, cause=SCHEDULED, actor=action.origin))
    if action.status is Status.PUBLISHED and Cause.CONFIRM not in causes and action.finished_at is not None:
        detail = {"provider_id": action.provider_id, "attempt": action.attempt_count}
        told.append(Event(at=action.finished_at, cause=Cause.PUBLISHED, actor=ENGINE, detail=detail))
    return told


def _one_of(choices: type[_Choice], value: object, *, field: str) -> _Choice:
    if not isinstance(value, str) or value not in set(choices):  # its own error would show all of the value
        raise Invalid(field=field, rule=f"must be one of {', '.join(choices)}", value=value)
    return choices(value)
