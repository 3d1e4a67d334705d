"""When did the last tick look at this database, which database was that, and does it wait for a release?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import func, null, or_, select, text, update

from postdate.domain import restore

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import RowMapping

    from postdate.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """What the one row says."""

    last_tick_at: datetime | None = None
    """None before the first tick."""
    identity: str | None = None
    held_at: datetime | None = None
    """Since when nothing is claimed; None where nothing is in the way."""
    held_because: str | None = None
    released_at: datetime | None = None
    """When a person ended the last hold."""
    released_by: str | None = None
    release_note: str | None = None


@dataclass(frozen=True, kw_only=True)
class Due:
    """How many unclaimed actions of one type are due, and since when the first of them."""

    action_type: str
    count: int
    since: datetime


def heartbeat(tx: Transaction, *, for_update: bool = False) -> Heartbeat:
    """Return what the heartbeat says, on request locked until the transaction ends."""
    h = tx.tables.heartbeat
    found = select(*(column for column in h.c if column is not h.c.id))
    row = tx.execute(found.with_for_update() if for_update else found).mappings().one_or_none()
    return Heartbeat() if row is None else _read(row)


def beat(tx: Transaction, *, now: datetime, identity: str | None) -> bool:
    """Leave the time of a tick, where there is no hold and no later one, and say whether that was done."""
    h = tx.tables.heartbeat
    forward = or_(h.c.last_tick_at.is_(None), h.c.last_tick_at <= now)
    written = update(h).where(h.c.held_at.is_(None), forward).values(last_tick_at=now, identity=identity)
    return tx.execute(written).rowcount == 1


def hold_all(tx: Transaction, *, now: datetime, because: str) -> bool:
    """Let nothing be claimed from now on, and say whether that is news."""
    h = tx.tables.heartbeat
    held = update(h).where(h.c.held_at.is_(None)).values(held_at=now, held_because=because)
    return tx.execute(held).rowcount == 1


def release_all(tx: Transaction, *, now: datetime, actor: str, note: str | None) -> bool:
    """Let things be claimed again, and say whether they were on hold.

    The last tick counts as one of now and of no particular database, so that the next one has nothing to hold.
    """
    h = tx.tables.heartbeat
    released = (
        update(h)
        .where(h.c.held_at.is_not(None))
        .values(
            held_at=null(),
            held_because=null(),
            last_tick_at=now,
            identity=null(),
            released_at=now,
            released_by=actor,
            release_note=note,
        )
    )
    return tx.execute(released).rowcount == 1


def database_identity(tx: Transaction) -> str | None:
    """Return what tells this database from its copies, as far as it tells without privileges; None on SQLite.

    The cluster's system identifier, its timeline, which a recovery to a point in time and a promotion change, and the
    oid of the database, which is new where a dump was read in.
    """
    if tx.is_sqlite:
        return None
    told = tx.execute(
        text(
            "select has_function_privilege('pg_control_system()', 'execute') as system,"
            " substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline,"
            " (select oid::text from pg_database where datname = current_database()) as oid"
        )
    ).one()
    system = tx.execute(text("select system_identifier from pg_control_system()")).scalar() if told.system else None
    return restore.identity(system, told.timeline, told.oid)


def due_by_type(tx: Transaction, *, now: datetime) -> list[Due]:
    """Count what would be claimed at once: due, unclaimed and held by no pause. It reads the whole queue."""
    q = tx.tables.queue
    counted = (
        select(q.c.action_type, func.count().label("count"), func.min(q.c.due_at).label("since"))
        .where(q.c.lease_token.is_(None), q.c.hold.is_(None), q.c.due_at <= now)
        .group_by(q.c.action_type)
        .order_by(q.c.action_type)
    )
    return [Due(**row) for row in tx.execute(counted).mappings()]


def queued_before(tx: Transaction, due_before: datetime) -> dict[UUID, str]:
    """Return the unclaimed actions that are due before an instant, held by a pause or not, each with its type."""
    q = tx.tables.queue
    found = select(q.c.action_id, q.c.action_type).where(q.c.lease_until.is_(None), q.c.due_at < due_before)
    return {row.action_id: row.action_type for row in tx.execute(found.order_by(q.c.due_at, q.c.action_id))}


def _read(row: RowMapping) -> Heartbeat:
    return Heartbeat(**row)
