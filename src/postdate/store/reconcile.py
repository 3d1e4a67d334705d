"""What does a source have in the queue, and what has become of the keys it speaks of?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Integer, bindparam, literal_column, or_, select, union

from postdate.domain.reconcile import Standing
from postdate.store.sets import one_of, one_of_named, set_text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from uuid import UUID

    from sqlalchemy import CompoundSelect, RowMapping, Select

    from postdate.store.transaction import Transaction


def standing_under(tx: Transaction, keys: Collection[str]) -> dict[str, Standing]:
    """Return the active actions with these keys, whoever made them, by key."""
    if not keys:
        return {}
    wanted = {"keys": set_text(tx, tx.tables.queue.c.key.type, keys)}
    return {row["key"]: _standing(row) for row in tx.execute(tx.prepared(_by_key), wanted).mappings()}


def terminal_keys(tx: Transaction, keys: Collection[str]) -> set[str]:
    """Return those of the keys under which something went out, failed, was skipped or cancelled by a person (P49).

    Not what the engine withdrew or replaced. It reads outcomes alone: what was asked may have been dropped long ago.
    """
    if not keys:
        return set()
    wanted = {"keys": set_text(tx, tx.tables.outcomes.c.key.type, keys)}
    return set(tx.execute(tx.prepared(_terminal), wanted).scalars())


def page_of_source(tx: Transaction, *, source: str, place: UUID | None, after: str, limit: int) -> list[Standing]:
    """Return up to `limit` active actions that the source wants in a workspace, by key, beginning behind `after`."""
    asked = {"source": source, "place": place, "after": after, "at_most": limit}
    found = tx.execute(tx.prepared(_of_source, placed=place is not None), asked)
    return [_standing(row) for row in found.mappings()]


def standing_of_thing(
    tx: Transaction, *, source: str, place: UUID | None, types: Sequence[str], thing_id: str
) -> list[Standing]:
    """Return the active actions of these types that the source wants for one thing in a workspace, by key."""
    q, a = tx.tables.queue, tx.tables.actions
    theirs = (q.c.source == source, q.c.workspace_id.is_(None) if place is None else q.c.workspace_id == place)
    found = _active(tx).where(one_of(tx, a.c.action_type, types), a.c.thing_id == thing_id, *theirs).order_by(q.c.key)
    return [_standing(row) for row in tx.execute(found).mappings()]


def page_of_workspaces(tx: Transaction, *, after: UUID | None, limit: int) -> list[UUID]:
    """Return up to `limit` workspaces, ours or the host's, in the order of their ids behind `after`."""
    w = tx.tables.workspaces
    page = select(w.c.id).order_by(w.c.id).limit(limit)
    return list(tx.execute(page if after is None else page.where(w.c.id > after)).scalars())


def _by_key(tx: Transaction) -> Select[Any]:
    return _active(tx).where(one_of_named(tx, tx.tables.queue.c.key, "keys"))


def _of_source(tx: Transaction, *, placed: bool) -> Select[Any]:
    q = tx.tables.queue
    place = (
        q.c.workspace_id == bindparam("place", type_=q.c.workspace_id.type) if placed else q.c.workspace_id.is_(None)
    )
    wanted = (q.c.source == bindparam("source"), place, q.c.key > bindparam("after"))
    return _active(tx).where(*wanted).order_by(q.c.key).limit(bindparam("at_most", type_=Integer))


def _active(tx: Transaction) -> Select[Any]:
    q, a = tx.tables.queue, tx.tables.actions
    return select(
        q.c.action_id,
        q.c.key,
        q.c.source,
        q.c.workspace_id,
        q.c.lease_until.is_not(None).label("claimed"),
        a.c.origin,
        a.c.fingerprint,
        a.c.publish_at,
        a.c.created_at,
    ).join_from(q, a, a.c.id == q.c.action_id)


def _standing(row: RowMapping) -> Standing:
    return Standing(**{**row, "claimed": bool(row["claimed"])})


def _terminal(tx: Transaction) -> CompoundSelect[Any]:
    o = tx.tables.outcomes
    # the conditions of two partial indexes, written as they are
    guarding = or_(o.c.status == literal_column("'published'"), o.c.reason == literal_column("'unconfirmed'"))
    ended = or_(
        o.c.status == literal_column("'failed'"),
        o.c.reason == literal_column("'user'"),
        o.c.reason == literal_column("'skipped'"),
    )
    return union(*(select(o.c.key).where(one_of_named(tx, o.c.key, "keys"), each) for each in (guarding, ended)))
