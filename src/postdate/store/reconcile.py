"""What does a source have in the queue, and what has become of the keys it speaks of?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Integer, bindparam, literal_column, or_, select, union

from postdate.domain.reconcile import Standing
from postdate.store.sets import one_of, one_of_named, set_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from uuid import UUID

    from sqlalchemy import CompoundSelect, Select

    from postdate.store.transaction import Transaction


def standing_under(tx: Transaction, keys: Collection[str]) -> dict[str, Standing]:
    """Return the active actions with these keys, whoever made them, by key."""
    if not keys:
        return {}
    wanted = {"keys": set_text(tx.tables, tx.tables.queue.c.key.type, keys)}
    found: Iterable[Any] = tx.execute(tx.prepared(_active), wanted)
    return {
        key: Standing(
            action_id=action_id,
            key=key,
            source=source,
            workspace_id=workspace_id,
            claimed=lease_until is not None,
            origin=origin,
            fingerprint=fingerprint,
            created_at=created_at,
            overlap_key=overlap_key,
        )
        for action_id, key, source, workspace_id, lease_until, origin, fingerprint, created_at, overlap_key in found
    }


def terminal_keys(tx: Transaction, keys: Collection[str]) -> set[str]:
    """Return those of the keys under which something went out, failed, was skipped or cancelled by a person (P49).

    Not what the engine withdrew or replaced. It reads outcomes alone: what was asked may have been dropped long ago.
    """
    if not keys:
        return set()
    wanted = {"keys": set_text(tx.tables, tx.tables.outcomes.c.key.type, keys)}
    return set(tx.execute(tx.prepared(_terminal), wanted).scalars())


def keys_of_source(tx: Transaction, *, source: str, place: UUID | None, after: str, limit: int) -> list[str]:
    """Return up to `limit` keys of active actions that the source wants in a workspace, in order, behind `after`."""
    asked = {"source": source, "place": place, "after": after, "at_most": limit}
    return list(tx.execute(tx.prepared(_of_source, placed=place is not None), asked).scalars())


def keys_of_thing(
    tx: Transaction, *, source: str, place: UUID | None, types: Sequence[str], thing_id: str
) -> list[str]:
    """Return the keys of active actions of these types that the source wants for one thing in a workspace, in order."""
    q, a = tx.tables.queue, tx.tables.actions
    asked = select(a.c.id).where(one_of(tx, a.c.action_type, types), a.c.thing_id == thing_id)
    theirs = (q.c.source == source, q.c.workspace_id.is_(None) if place is None else q.c.workspace_id == place)
    # in two steps: in one, a plan may read all that the source wants
    found = select(q.c.key).where(one_of(tx, q.c.action_id, tx.execute(asked).scalars().all()), *theirs)
    return list(tx.execute(found.order_by(q.c.key)).scalars())


def page_of_workspaces(tx: Transaction, *, after: UUID | None, limit: int) -> list[UUID]:
    """Return up to `limit` workspaces, ours or the host's, in the order of their ids behind `after`."""
    w = tx.tables.workspaces
    page = select(w.c.id).order_by(w.c.id).limit(limit)
    return list(tx.execute(page if after is None else page.where(w.c.id > after)).scalars())


def _active(tx: Transaction) -> Select[Any]:
    q, a = tx.tables.queue, tx.tables.actions
    standing = select(
        q.c.action_id,
        q.c.key,
        q.c.source,
        q.c.workspace_id,
        q.c.lease_until,
        a.c.origin,
        a.c.fingerprint,
        a.c.created_at,
        q.c.overlap_key,
    )
    return standing.join_from(q, a, a.c.id == q.c.action_id).where(one_of_named(tx, q.c.key, "keys"))


def _of_source(tx: Transaction, *, placed: bool) -> Select[Any]:
    q = tx.tables.queue
    workspace = bindparam("place", type_=q.c.workspace_id.type)
    there = q.c.workspace_id == workspace if placed else q.c.workspace_id.is_(None)
    wanted = select(q.c.key).where(q.c.source == bindparam("source"), there, q.c.key > bindparam("after"))
    return wanted.order_by(q.c.key).limit(bindparam("at_most", type_=Integer))


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
