"""How do actions stand?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, literal, select, tuple_

from postdate.domain.action import Action
from postdate.domain.states import TERMINAL, Reason, Status
from postdate.store.actions import request_columns, request_fields
from postdate.store.pauses import pauses
from postdate.store.sets import one_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import Row, Select
    from sqlalchemy.sql.expression import ColumnElement

    from postdate.domain.pause import Pause
    from postdate.store.schema import Tables
    from postdate.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Which actions to list; None lets all through."""

    status: Status | None = None
    reason: Reason | None = None
    action_type: str | None = None
    workspace_id: UUID | None = None
    user_id: UUID | None = None
    thing_id: str | None = None
    target_key: str | None = None
    since: datetime | None = None
    """`publish_at` at or after this."""
    until: datetime | None = None
    """`publish_at` before this."""


def find_action(tx: Transaction, action_id: UUID) -> Action | None:
    """Return the action as it stands, or None."""
    rows = tx.execute(_joined(tx.tables).where(tx.tables.actions.c.id == action_id)).all()
    return next(iter(_actions(tx, rows)), None)


def find_actions(tx: Transaction, action_ids: Collection[UUID]) -> dict[UUID, Action]:
    """Return those of the actions that exist, by id."""
    rows = tx.execute(_joined(tx.tables).where(one_of(tx, tx.tables.actions.c.id, action_ids))).all()
    return {action.id: action for action in _actions(tx, rows)}


def page_of_actions(tx: Transaction, wanted: Filter, *, limit: int, after: UUID | None = None) -> list[Action]:
    """Return up to `limit` actions in the order of `(publish_at, id)`, beginning behind the action `after`."""
    a = tx.tables.actions
    query = _joined(tx.tables).where(*_conditions(tx.tables, wanted)).order_by(a.c.publish_at, a.c.id).limit(limit)
    if after is not None:
        last = tx.tables.actions.alias("last")
        place = select(last.c.publish_at).where(last.c.id == after).scalar_subquery()
        query = query.where(tuple_(a.c.publish_at, a.c.id) > tuple_(place, literal(after, a.c.id.type)))
    return _actions(tx, tx.execute(query).all())


def _conditions(tables: Tables, wanted: Filter) -> list[ColumnElement[bool]]:
    a, o = tables.actions, tables.outcomes
    equal = {
        a.c.action_type: wanted.action_type,
        a.c.workspace_id: wanted.workspace_id,
        a.c.user_id: wanted.user_id,
        a.c.thing_id: wanted.thing_id,
        a.c.target_key: wanted.target_key,
        o.c.reason: wanted.reason,
    }
    conditions: list[ColumnElement[bool]] = [column == value for column, value in equal.items() if value is not None]
    if wanted.since is not None:
        conditions.append(a.c.publish_at >= wanted.since)
    if wanted.until is not None:
        conditions.append(a.c.publish_at < wanted.until)
    return conditions + ([] if wanted.status is None else _stands_at(tables, wanted.status))


def _stands_at(tables: Tables, status: Status) -> list[ColumnElement[bool]]:
    """Say it of the table that knows, so that its index can serve."""
    if status in TERMINAL:
        return [tables.outcomes.c.status == status]
    leased = tables.queue.c.lease_token
    return [
        tables.queue.c.action_id.is_not(None),
        leased.is_(None) if status is Status.QUEUED else leased.is_not(None),
    ]


def _joined(tables: Tables) -> Select[Any]:
    a, q, o = tables.actions, tables.queue, tables.outcomes
    return select(
        *request_columns(tables),
        q.c.action_id.label("queued_id"),
        q.c.lease_token,
        q.c.due_at,
        o.c.status,
        o.c.reason,
        o.c.provider_id,
        o.c.finished_at,
        func.coalesce(q.c.attempt_count, o.c.attempt_count).label("attempt_count"),
        func.coalesce(q.c.last_error, o.c.last_error).label("last_error"),
        func.coalesce(q.c.submitted_at, o.c.submitted_at, type_=o.c.submitted_at.type).label("submitted_at"),
    ).select_from(a.outerjoin(q, q.c.action_id == a.c.id).outerjoin(o, o.c.action_id == a.c.id))


def _actions(tx: Transaction, rows: Sequence[Row[Any]]) -> list[Action]:
    stopping = pauses(tx) if any(map(_is_waiting, rows)) else []
    return [_action(row, stopping) for row in rows]


def _is_waiting(row: Row[Any]) -> bool:
    return row.queued_id is not None and row.lease_token is None


def _action(row: Row[Any], stopping: Sequence[Pause]) -> Action:
    waiting = _is_waiting(row)
    owner = {"workspace_id": row.workspace_id, "action_type": row.action_type}
    moments = (row.created_at, row.submitted_at, row.finished_at)
    return Action(
        **request_fields(row),
        status=_status(row),
        reason=None if row.reason is None else Reason(row.reason),
        attempt_count=row.attempt_count,
        next_attempt_at=row.due_at if waiting and row.due_at != row.publish_at else None,
        last_error=row.last_error,
        provider_id=row.provider_id,
        submitted_at=row.submitted_at,
        finished_at=row.finished_at,
        paused=waiting and any(pause.stops(**owner) for pause in stopping),
        updated_at=max(moment for moment in moments if moment is not None),
    )


def _status(row: Row[Any]) -> Status:
    if row.status is not None:
        return Status(row.status)
    return Status.QUEUED if row.lease_token is None else Status.SUBMITTED
