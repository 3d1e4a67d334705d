"""Who has which row of the queue in hand, and when is the next due?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Integer, bindparam, case, func, not_, null, select, union_all, update

from postdate.store.claimed import ClaimedSet, claimed_under
from postdate.store.read_all import Rows
from postdate.store.sets import one_of, one_of_named, selected_by, set_text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import Select, Update
    from sqlalchemy.sql.expression import ColumnElement

    from postdate.store.leases import Lease
    from postdate.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class LostLease:
    """A claim whose lease has run out: its worker crashed, hung or was cut off."""

    action_id: UUID
    action_type: str
    lease_token: UUID
    attempt_count: int
    started_at: datetime | None
    """None where nobody had begun to run it."""
    claimed_by: str


def claim_due(
    tx: Transaction,
    *,
    action_type: str,
    now: datetime,
    limit: int,
    lease_token: UUID,
    lease_until: datetime,
    worker: str,
    due_by: datetime | None = None,
) -> ClaimedSet:
    """Claim up to `limit` queued actions of one type that are due, in the order of `(due_at, action_id)`.

    - Only unleased rows with `due_at <= now` that no pause holds are taken; rows that another transaction is claiming
      are passed over. With `due_by`, a little later than `now`, what is due by then is claimed ahead: it counts as
      submitted, and started, at its instant.
    - Each claim counts one attempt (P63 as superseded) and sets the token that fences its settle. One token serves for
      one claim of each type: what it has brought is found again by it.
    - An empty answer means that nothing was due, or that others were faster (P58).
    """
    asked = {
        "wanted_type": action_type,
        "now": now,
        "due_by": due_by or now,
        "at_most": limit,
        "token": lease_token,
        "until": lease_until,
        "worker": worker,
    }
    if not tx.execute(tx.prepared(_update_of_due), asked).rowcount:
        return ClaimedSet(Rows((), {}), lease_token=lease_token, lease_until=lease_until)
    return claimed_under(tx, action_type, lease_token=lease_token, lease_until=lease_until)


def _update_of_due(tx: Transaction) -> Update:
    q = tx.tables.queue
    now, due_by = (bindparam(name, type_=q.c.due_at.type) for name in ("now", "due_by"))
    begins = case((q.c.due_at > now, q.c.due_at), else_=now)
    wanted = q.c.action_type == bindparam("wanted_type")
    due = (
        select(q.c.action_id)
        .where(wanted, q.c.lease_token.is_(None), q.c.hold.is_(None), q.c.due_at <= due_by)
        .order_by(q.c.due_at, q.c.action_id)
        .limit(bindparam("at_most", type_=Integer))
        .with_for_update(skip_locked=True)
    )
    return (
        update(q)
        .where(selected_by(tx, q.c.action_id, due))
        .values(
            lease_token=bindparam("token", type_=q.c.lease_token.type),
            lease_until=bindparam("until", type_=q.c.lease_until.type),
            claimed_by=bindparam("worker", type_=q.c.claimed_by.type),
            submitted_at=begins,
            started_at=begins,
            attempt_count=q.c.attempt_count + 1,
        )
    )


def next_due(tx: Transaction, action_types: Sequence[str]) -> datetime | None:
    """Return the earliest `due_at` of the unclaimed actions of these types that no pause holds; None without any."""
    if not action_types:
        return None
    q = tx.tables.queue
    earliest = union_all(
        *(
            select(
                select(q.c.due_at)
                .where(q.c.action_type == action_type, q.c.lease_token.is_(None), q.c.hold.is_(None))
                .order_by(q.c.due_at)
                .limit(1)
                .scalar_subquery()
                .label("due_at")
            )
            for action_type in action_types
        )
    ).subquery()
    return tx.execute(select(func.min(earliest.c.due_at))).scalar()


def lost_leases(
    tx: Transaction,
    action_types: Collection[str],
    *,
    now: datetime,
    limit: int,
    unbegun_of: Collection[str] = (),
    others_than: Collection[str] = (),
    others_before: datetime | None = None,
    but: Collection[Lease] = (),
) -> list[LostLease]:
    """Return the leases of these types that have run out, oldest first, their rows locked until the transaction ends.

    So are those of the types `unbegun_of` that nobody had begun to run; and with `others_before`, those that ran out
    before then and are of no type in `others_than`. Never are those in `but`.
    """
    q = tx.tables.queue
    wanted = one_of(tx, q.c.action_type, action_types)
    if unbegun_of:
        wanted |= one_of(tx, q.c.action_type, unbegun_of) & q.c.started_at.is_(None)
    if others_before is not None:
        wanted |= not_(one_of(tx, q.c.action_type, others_than)) & (q.c.lease_until <= others_before)
    return _run_out(tx, wanted, now=now, limit=limit, but=but)


def doubtful_leases(
    tx: Transaction, action_type: str, *, now: datetime, limit: int, but: Collection[Lease] = ()
) -> list[LostLease]:
    """Return the leases of one type that have run out under runs that had begun, as `lost_leases` does."""
    q = tx.tables.queue
    type_ = q.c.action_type.concat("")  # no column, or the planner combines an index of the type with that of leases
    wanted = (type_ == action_type) & q.c.started_at.is_not(None)
    return _run_out(tx, wanted, now=now, limit=limit, but=but)


def _run_out(
    tx: Transaction, wanted: ColumnElement[bool], *, now: datetime, limit: int, but: Collection[Lease]
) -> list[LostLease]:
    q = tx.tables.queue
    if but:
        # not pair by pair, which would cost the index; who holds these has made all of the tokens, and no other lease
        actions, tokens = ({lease[place] for lease in but} for place in (0, 1))
        wanted &= not_(one_of(tx, q.c.action_id, actions) & one_of(tx, q.c.lease_token, tokens))
    lost = (
        select(q.c.action_id, q.c.action_type, q.c.lease_token, q.c.attempt_count, q.c.started_at, q.c.claimed_by)
        .where(q.c.lease_token.is_not(None), q.c.lease_until <= now, wanted)
        .order_by(q.c.lease_until)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return [LostLease(**row) for row in tx.execute(lost).mappings()]


def take_over(
    tx: Transaction,
    action_type: str,
    action_ids: Collection[UUID],
    *,
    now: datetime,
    lease_token: UUID,
    lease_until: datetime,
    worker: str,
) -> ClaimedSet:
    """Take over lost leases of one type, without counting an attempt, to find out what became of the actions."""
    q = tx.tables.queue
    lost = one_of(tx, q.c.action_id, action_ids) & q.c.lease_token.is_not(None) & (q.c.lease_until <= now)
    tx.execute(update(q).where(lost).values(lease_token=lease_token, lease_until=lease_until, claimed_by=worker))
    return claimed_under(tx, action_type, lease_token=lease_token, lease_until=lease_until)


def lock_queued(tx: Transaction, action_ids: Collection[UUID]) -> set[UUID]:
    """Lock those of these queue rows that no other transaction has locked, and return them: nobody is waited for.

    SQLite has one writer: there they are all of them.
    """
    if tx.is_sqlite:
        return set(action_ids)
    wanted = {"ids": set_text(tx.tables, tx.tables.queue.c.action_id.type, action_ids)}
    return set(tx.execute(tx.prepared(_unlocked), wanted).scalars())


def _unlocked(tx: Transaction) -> Select[tuple[UUID]]:
    q = tx.tables.queue
    wanted = select(q.c.action_id).where(one_of_named(tx, q.c.action_id, "ids")).order_by(q.c.action_id)
    return wanted.with_for_update(skip_locked=True)


def still_leased(tx: Transaction, leases: Collection[Lease]) -> set[Lease]:
    """Return those of the leases that are still held, whoever has locked their rows."""
    if not leases:
        return set()
    q = tx.tables.queue
    wanted = one_of(tx, q.c.action_id, [action_id for action_id, _ in leases])
    found = {
        (row.action_id, row.lease_token) for row in tx.execute(select(q.c.action_id, q.c.lease_token).where(wanted))
    }
    return found.intersection(leases)


def lease_cleared() -> dict[str, ColumnElement[Any]]:
    """Return the values of a row that nobody has claimed."""
    return {name: null() for name in ("lease_token", "lease_until", "claimed_by", "submitted_at", "started_at")}
