"""How does an action leave the queue, or go back to it?

Every move names its guard and has it in the WHERE; what it does not find, it does not touch, and the caller sees that
it lost. What has become an outcome, and only that, is then deleted from the queue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import Text, bindparam, delete, insert, literal_column, null, select, update

from postdate.domain.settle import Finished, Requeued, Settlement
from postdate.domain.states import Cause, Reason, Status
from postdate.store.events import append_events, event_row
from postdate.store.queue import lease_cleared
from postdate.store.sets import one_of, one_of_named, rowset, rowset_named, rowset_texts, set_text, unlocked

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import Delete, Insert, Select
    from sqlalchemy.sql.dml import ReturningInsert
    from sqlalchemy.sql.expression import ColumnElement

    from postdate.store.schema import Tables
    from postdate.store.transaction import Transaction

_MOVED = ("action_id", "workspace_id", "user_id", "key", "submitted_at")
"""What an outcome takes over from the queue."""

_DECIDED = ("status", "attempt_count", "reason", "provider_id", "last_error")
"""What an outcome takes over from what came of the run."""


@dataclass(frozen=True, kw_only=True)
class Settling:
    """What becomes of runs that were claimed under one lease.

    The texts in which it travels are written before the transaction: that takes half as long as the statements do, and
    on SQLite nobody else writes while one is open.
    """

    lease_token: UUID
    finished: Mapping[UUID, Finished]
    requeued: Mapping[UUID, Requeued]
    texts: Mapping[str, str]
    """What `finished` is as parameters."""

    @classmethod
    def of(cls, tables: Tables, lease_token: UUID, settlements: Mapping[UUID, Settlement]) -> Self:
        """Write the texts for the database of these tables."""
        finished = {action_id: ended for action_id, ended in settlements.items() if isinstance(ended, Finished)}
        requeued = {action_id: ended for action_id, ended in settlements.items() if isinstance(ended, Requeued)}
        texts = _finished_texts(tables, finished) if finished else {}
        return cls(lease_token=lease_token, finished=finished, requeued=requeued, texts=texts)


def _finished_texts(tables: Tables, finished: Mapping[UUID, Finished]) -> dict[str, str]:
    fields: dict[str, Sequence[Any]] = dict(zip(Finished._fields, zip(*finished.values(), strict=True), strict=True))
    ended = {"action_id": list(finished), "last_error": fields["error"], **fields}
    ids = set_text(tables, tables.queue.c.action_id.type, finished)
    return {**rowset_texts(tables, "ended", _ended_types(tables), ended), "ids": ids}


def settle_claimed(tx: Transaction, settling: Settling, *, now: datetime, actor: str) -> frozenset[UUID]:
    """Settle these runs and return those that still held their lease.

    A run whose lease was taken over is not in the answer, and nothing of it is changed; nor is one whose row another
    transaction has locked, for which nobody waits. A plain success writes no event: its outcome is one.
    """
    won: frozenset[UUID] = frozenset()
    if settling.finished:
        won |= _finish(tx, settling, now=now, actor=actor)
    if settling.requeued:
        won |= _requeue(tx, settling.lease_token, settling.requeued, now=now, actor=actor)
    return won


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
    wanted = {
        "ids": set_text(tx.tables, tx.tables.queue.c.action_id.type, action_ids),
        "because": reason,
        "now": now,
    }
    gone = tx.execute(tx.prepared(_insert_of_withdrawn), wanted).all()
    _forget_queued(tx, [row.action_id for row in gone])
    append_events(tx, [_event_of_withdrawn(row, cause, reason=reason, now=now, actor=actor, note=note) for row in gone])
    return frozenset(row.action_id for row in gone)


def _finish(tx: Transaction, settling: Settling, *, now: datetime, actor: str) -> frozenset[UUID]:
    finished, ids = settling.finished, {"ids": settling.texts["ids"]}
    asked = {**settling.texts, "token": settling.lease_token, "now": now}
    made = tx.execute(tx.prepared(_insert_of_finished), asked).rowcount
    told = {action_id: end for action_id, end in finished.items() if end.status is not Status.PUBLISHED}
    if made == len(finished) and not told:
        tx.execute(tx.prepared(_delete_of_queued), ids)
        return frozenset(finished)
    left = tx.execute(tx.prepared(_just_finished), ids).all()
    won = frozenset(row.action_id for row in left)
    _forget_queued(tx, won)
    rows = [row for row in left if row.action_id in told]
    append_events(tx, [_event_of_finished(row, told[row.action_id], now=now, actor=actor) for row in rows])
    return won


def _insert_of_finished(tx: Transaction) -> Insert:
    q, o = tx.tables.queue, tx.tables.outcomes
    ended = rowset_named(tx, "ended", _ended_types(tx.tables))
    leased = q.c.lease_token == bindparam("token", type_=q.c.lease_token.type)
    if not tx.is_sqlite:  # asked of what is locked, not of what was seen: the lease may be lost in between
        leased = unlocked(tx, q.c.action_id, one_of_named(tx, q.c.action_id, "ids") & leased)
    moved = _outcomes_of(tx, {name: ended.c[name] for name in _DECIDED})
    rows = select(*moved.values()).where(q.c.action_id == ended.c.action_id, leased)
    # how many there are is all that is asked: answering with each took longer than to look when some are missing
    return insert(o).from_select(list(moved), rows).execution_options(preserve_rowcount=True)


def _just_finished(tx: Transaction) -> Select[tuple[UUID, UUID | None]]:
    """What is both queued and an outcome: this transaction's own, as others' moves are seen once they are done."""
    q, o = tx.tables.queue, tx.tables.outcomes
    both = select(q.c.action_id, q.c.workspace_id).join(o, o.c.action_id == q.c.action_id)
    return both.where(one_of_named(tx, q.c.action_id, "ids"))


def _insert_of_withdrawn(tx: Transaction) -> ReturningInsert[Any]:
    q, o = tx.tables.queue, tx.tables.outcomes
    moved = _outcomes_of(
        tx,
        {
            "status": literal_column(f"'{Status.CANCELLED}'"),
            "reason": bindparam("because", type_=Text),
            "provider_id": null(),
            "attempt_count": q.c.attempt_count,
            "last_error": q.c.last_error,
        },
    )
    # Unclaimed by `lease_until`, which is null with the token: `lease_token is null` offers the index of what is due,
    # and where nothing is known about the table PostgreSQL prefers reading all of that to looking up the ids.
    waiting = select(*moved.values()).where(one_of_named(tx, q.c.action_id, "ids"), q.c.lease_until.is_(None))
    return (
        insert(o)
        .from_select(list(moved), waiting.order_by(q.c.action_id).with_for_update())
        .returning(o.c.action_id, o.c.workspace_id, o.c.attempt_count, o.c.last_error)
    )


def _outcomes_of(tx: Transaction, decided: Mapping[str, ColumnElement[Any]]) -> dict[str, ColumnElement[Any]]:
    """Return the columns of outcomes, as they are made of rows of `queue` and of what was decided about them."""
    q, o = tx.tables.queue, tx.tables.outcomes
    taken_over = {name: q.c[name] for name in _MOVED}
    return {**taken_over, **decided, "finished_at": bindparam("now", type_=o.c.finished_at.type)}


def _ended_types(tables: Tables) -> dict[str, Any]:
    return {name: tables.outcomes.c[name].type for name in ("action_id", *_DECIDED)}


def _forget_queued(tx: Transaction, action_ids: Collection[UUID]) -> None:
    """Delete rows of `queue` that this transaction has locked, and whose outcomes it has written."""
    if action_ids:
        tx.execute(
            tx.prepared(_delete_of_queued), {"ids": set_text(tx.tables, tx.tables.queue.c.action_id.type, action_ids)}
        )


def _delete_of_queued(tx: Transaction) -> Delete:
    q = tx.tables.queue
    return delete(q).where(one_of_named(tx, q.c.action_id, "ids"))


def _event_of_withdrawn(
    row: Any, cause: Cause, *, reason: Reason, now: datetime, actor: str, note: str | None
) -> dict[str, Any]:
    return event_row(
        row.action_id,
        row.workspace_id,
        at=now,
        cause=cause,
        actor=actor,
        reason=reason,
        error=row.last_error,
        attempt=row.attempt_count,
        note=note,
    )


def _event_of_finished(row: Any, end: Finished, *, now: datetime, actor: str) -> dict[str, Any]:
    return event_row(
        row.action_id,
        row.workspace_id,
        at=now,
        cause=end.cause,
        actor=actor,
        reason=end.reason,
        error=end.error,
        attempt=end.attempt_count,
    )


def _requeue(
    tx: Transaction, lease_token: UUID, requeued: Mapping[UUID, Requeued], *, now: datetime, actor: str
) -> frozenset[UUID]:
    q = tx.tables.queue
    columns: dict[str, Sequence[Any]] = {
        "action_id": list(requeued),
        "due_at": [back.due_at for back in requeued.values()],
        "attempt_count": [back.attempt_count for back in requeued.values()],
        "last_error": [back.error for back in requeued.values()],
    }
    source = rowset(tx, "back", {name: q.c[name].type for name in columns}, columns)
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
    append_events(tx, [_event_of_requeued(row, requeued[row.action_id], now=now, actor=actor) for row in returned])
    return frozenset(row.action_id for row in returned)


def _event_of_requeued(row: Any, back: Requeued, *, now: datetime, actor: str) -> dict[str, Any]:
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
