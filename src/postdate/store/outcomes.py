"""How does an action leave the queue, or go back to it?

Every function here names its guard and has it in the WHERE; what it does not find, it does not touch, and the
caller sees that it lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, insert, select, update

from postdate.domain.settle import Finished, Requeued, Settlement
from postdate.domain.states import Cause, Reason, Status
from postdate.store.events import append_events, event_row
from postdate.store.queue import lease_cleared
from postdate.store.sets import one_of, one_of_named, rowset, rowset_named, rowset_texts, set_text, unlocked

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import Insert
    from sqlalchemy.sql.dml import ReturningDelete

    from postdate.store.transaction import Transaction

_FINISHED = (
    "action_id",
    "workspace_id",
    "user_id",
    "status",
    "reason",
    "provider_id",
    "attempt_count",
    "last_error",
    "submitted_at",
    "finished_at",
    "key",
)


def settle_claimed(
    tx: Transaction, *, lease_token: UUID, settlements: Mapping[UUID, Settlement], now: datetime, actor: str
) -> frozenset[UUID]:
    """Settle runs that were claimed under `lease_token` and return those that still held their lease.

    A run whose lease was taken over is not in the answer, and nothing of it is changed; nor is one whose row another
    transaction has locked, for which nobody waits. A plain success writes no event: its outcome is one.
    """
    finished = {key: value for key, value in settlements.items() if isinstance(value, Finished)}
    requeued = {key: value for key, value in settlements.items() if isinstance(value, Requeued)}
    won: set[UUID] = set()
    if finished:
        won |= _leave_queue(
            tx, finished, lambda row: finished[row.action_id], lease_token=lease_token, now=now, actor=actor
        )
    if requeued:
        won |= _requeue(tx, lease_token, requeued, now=now, actor=actor)
    return frozenset(won)


def withdraw_queued(
    tx: Transaction,
    action_ids: Collection[UUID],
    *,
    cause: Cause,
    reason: Reason,
    now: datetime,
    actor: str,
    note: str | None = None,
) -> frozenset[UUID]:
    """Cancel those of the actions that are still queued, and return them (P30, P68)."""

    def cancelled(row: Any) -> Finished:
        return Finished(
            cause=cause,
            status=Status.CANCELLED,
            reason=reason,
            attempt_count=row.attempt_count,
            error=row.last_error,
        )

    return _leave_queue(tx, action_ids, cancelled, lease_token=None, now=now, actor=actor, note=note)


def _leave_queue(
    tx: Transaction,
    action_ids: Collection[UUID],
    ending: Callable[[Any], Finished],
    *,
    lease_token: UUID | None,
    now: datetime,
    actor: str,
    note: str | None = None,
) -> frozenset[UUID]:
    """Move rows that are claimed under this token, or that nobody has claimed, from `queue` to `outcomes`."""
    wanted = {"ids": set_text(tx, tx.tables.queue.c.action_id.type, action_ids), "token": lease_token}
    left = tx.execute(tx.prepared(_leaving, claimed=lease_token is not None), wanted).all()
    if not left:
        return frozenset()
    endings = [(row, ending(row)) for row in left]
    rows = [_outcome_row(row, end, now) for row, end in endings]
    tx.execute(tx.prepared(_insert_ended), rowset_texts(tx, "ended", _ended_types(tx), rows))
    told = [(row, end) for row, end in endings if end.status is not Status.PUBLISHED]
    append_events(tx, [_ended(row, end, now=now, actor=actor, note=note) for row, end in told])
    return frozenset(row.action_id for row in left)


def _leaving(tx: Transaction, *, claimed: bool) -> ReturningDelete[Any]:
    q = tx.tables.queue
    wanted = one_of_named(tx, q.c.action_id, "ids")
    # Unclaimed by `lease_until`, which is null with the token: `lease_token is null` offers the index of what is due,
    # and where nothing is known about the table PostgreSQL prefers reading all of that to looking up the ids.
    guard = q.c.lease_token == bindparam("token") if claimed else q.c.lease_until.is_(None)
    return (
        delete(q)
        .where(unlocked(tx, q.c.action_id, wanted) if claimed else wanted, guard)
        .returning(
            q.c.action_id,
            q.c.workspace_id,
            q.c.user_id,
            q.c.key,
            q.c.submitted_at,
            q.c.attempt_count,
            q.c.last_error,
        )
    )


def _insert_ended(tx: Transaction) -> Insert:
    return insert(tx.tables.outcomes).from_select(_FINISHED, select(rowset_named(tx, "ended", _ended_types(tx))))


def _ended_types(tx: Transaction) -> dict[str, Any]:
    return {name: tx.tables.outcomes.c[name].type for name in _FINISHED}


def _ended(row: Any, end: Finished, *, now: datetime, actor: str, note: str | None) -> dict[str, Any]:
    return event_row(
        row.action_id,
        row.workspace_id,
        at=now,
        cause=end.cause,
        actor=actor,
        reason=end.reason,
        error=end.error,
        attempt=end.attempt_count,
        note=note,
    )


def _outcome_row(row: Any, end: Finished, now: datetime) -> dict[str, Any]:
    return {
        "action_id": row.action_id,
        "workspace_id": row.workspace_id,
        "user_id": row.user_id,
        "status": end.status,
        "reason": end.reason,
        "provider_id": end.provider_id,
        "attempt_count": end.attempt_count,
        "last_error": end.error,
        "submitted_at": row.submitted_at,
        "finished_at": now,
        "key": row.key,
    }


def _requeue(
    tx: Transaction, lease_token: UUID, requeued: Mapping[UUID, Requeued], *, now: datetime, actor: str
) -> frozenset[UUID]:
    q = tx.tables.queue
    rows = [
        {
            "action_id": key,
            "due_at": back.due_at,
            "attempt_count": back.attempt_count,
            "last_error": back.error,
        }
        for key, back in requeued.items()
    ]
    source = rowset(tx, "back", {name: q.c[name].type for name in rows[0]}, rows)
    returned = tx.execute(
        update(q)
        # both conditions: the join brings the values, the set of ids keeps the plan on the primary key
        .where(
            q.c.action_id == source.c.action_id,
            unlocked(tx, q.c.action_id, one_of(tx, q.c.action_id, list(requeued))),
            q.c.lease_token == lease_token,
        )
        .values(
            due_at=source.c.due_at,
            attempt_count=source.c.attempt_count,
            last_error=source.c.last_error,
            **lease_cleared(),
        )
        .returning(q.c.action_id, q.c.workspace_id)
    ).all()
    append_events(tx, [_went_back(row, requeued[row.action_id], now=now, actor=actor) for row in returned])
    return frozenset(row.action_id for row in returned)


def _went_back(row: Any, back: Requeued, *, now: datetime, actor: str) -> dict[str, Any]:
    return event_row(
        row.action_id,
        row.workspace_id,
        at=now,
        cause=back.cause,
        actor=actor,
        error=back.error,
        attempt=back.attempt_count,
        due_at=back.due_at.isoformat(),
    )
