"""Was this request made before?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import delete, select

from postdate.store.sets import row_address, rowset, selected_by

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy.sql.expression import ColumnElement

    from postdate.store.transaction import Transaction

_TAKEN = ("scope", "key", "body_hash", "action_id", "expires_at")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An idempotency key, what was asked under it and the action that came of it."""

    scope: str
    key: str
    body_hash: str
    action_id: UUID | None
    expires_at: datetime


def take_keys(tx: Transaction, entries: Sequence[Entry], *, now: datetime) -> set[tuple[str, str]]:
    """Take the keys that are free or expired, and return `(scope, key)` of those.

    No two entries may have one key. A key that another transaction is taking is waited for.
    """
    if not entries:
        return set()
    table = tx.tables.idempotency
    ordered = sorted(entries, key=lambda entry: (entry.scope, entry.key))  # one order for all, so that none deadlock
    columns = {name: [getattr(entry, name) for entry in ordered] for name in _TAKEN}
    source = rowset(tx, "asked", {name: table.c[name].type for name in _TAKEN}, columns)
    asked = select(source).where(source.c.key.is_not(None))  # SQLite parses no upsert without a WHERE
    taking = tx.insert(table).from_select(_TAKEN, asked)
    taking = taking.on_conflict_do_update(
        index_elements=[table.c.scope, table.c.key],
        set_={name: taking.excluded[name] for name in ("body_hash", "action_id", "expires_at")},
        where=table.c.expires_at <= now,
    )
    return {(row.scope, row.key) for row in tx.execute(taking.returning(table.c.scope, table.c.key))}


def find_keys(tx: Transaction, keys: Collection[tuple[str, str]]) -> dict[tuple[str, str], Entry]:
    """Return what is held under these `(scope, key)`, where something is."""
    if not keys:
        return {}
    found = select(*(tx.tables.idempotency.c[name] for name in _TAKEN)).where(_held_under(tx, keys))
    entries = (Entry(**row) for row in tx.execute(found).mappings())
    return {(entry.scope, entry.key): entry for entry in entries}


def release_keys(tx: Transaction, keys: Collection[tuple[str, str]]) -> None:
    """Give keys back, since what they guarded was not admitted."""
    if keys:
        tx.execute(delete(tx.tables.idempotency).where(_held_under(tx, keys)))


def _held_under(tx: Transaction, keys: Collection[tuple[str, str]]) -> ColumnElement[bool]:
    """Return the condition that a row is under one of these keys.

    It looks each up by itself: a join, or a comparison of pairs, may read the whole table where statistics mislead.
    """
    table = tx.tables.idempotency
    types = {"scope": table.c.scope.type, "key": table.c.key.type}
    wanted = rowset(tx, "wanted", types, dict(zip(types, zip(*keys, strict=True), strict=True)))
    address = row_address(tx, table)
    each = select(address).where(table.c.scope == wanted.c.scope, table.c.key == wanted.c.key).correlate(wanted)
    return selected_by(tx, address, select(each.scalar_subquery()).select_from(wanted))


def release_keys_of(tx: Transaction, action_id: UUID) -> None:
    """Give back the keys that made this action."""
    table = tx.tables.idempotency
    tx.execute(delete(table).where(table.c.action_id == action_id))


def purge_expired(tx: Transaction, *, now: datetime, limit: int) -> int:
    """Forget up to `limit` expired keys and return how many."""
    table = tx.tables.idempotency
    address = row_address(tx, table)
    expired = select(address).where(table.c.expires_at <= now).order_by(table.c.expires_at).limit(limit)
    expired = expired.with_for_update(skip_locked=True)  # a key that is being taken anew is not expired any more
    return tx.execute(delete(table).where(selected_by(tx, address, expired))).rowcount
