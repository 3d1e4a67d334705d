"""Which pauses are there, and what do they hold?

What is due in a paused workspace is put on hold when a claim meets it: out of the index that claims look at, so that it
is met once. Ending the pause releases it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, exists, insert, null, or_, select, update

from postdate.domain.pause import EndedPause, Pause
from postdate.store.queue import lease_cleared
from postdate.store.sets import one_of, selected_by

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy.sql.expression import ColumnElement

    from postdate.store.transaction import Transaction

HELD = "paused"
"""What `queue.hold` says of a row that waits for the end of a pause."""

_PAUSE = ("id", "workspace_id", "action_type", "paused_at", "paused_by", "note")


def begin_pause(tx: Transaction, pause: Pause) -> bool:
    """Begin a pause, and say whether there was none of exactly this workspace and type."""
    values = {name: getattr(pause, name) for name in _PAUSE}
    begun = tx.insert(tx.tables.pauses).values(values).on_conflict_do_nothing().returning(tx.tables.pauses.c.id)
    return tx.execute(begun).scalar() is not None


def pauses(tx: Transaction) -> list[Pause]:
    """Return the pauses that have not ended, oldest first."""
    p = tx.tables.pauses
    return [Pause(**row) for row in tx.execute(select(p).order_by(p.c.paused_at, p.c.id)).mappings()]


def find_pause(tx: Transaction, *, workspace_id: UUID | None, action_type: str | None) -> Pause | None:
    """Return the pause of exactly this workspace and type, or None."""
    p = tx.tables.pauses
    row = tx.execute(select(p).where(*_of(tx, workspace_id, action_type))).mappings().one_or_none()
    return None if row is None else Pause(**row)


def end_pause(
    tx: Transaction,
    *,
    workspace_id: UUID | None,
    action_type: str | None,
    now: datetime,
    actor: str,
    note: str | None,
) -> EndedPause | None:
    """End the pause of exactly this workspace and type and keep a record of it; None where there is none.

    It waits for claims that are putting something on hold for its sake, so that `release_held_of` finds that too.
    """
    p = tx.tables.pauses
    gone = tx.execute(delete(p).where(*_of(tx, workspace_id, action_type)).returning(*p.c)).mappings().one_or_none()
    if gone is None:
        return None
    record = {**gone, "ended_at": now, "ended_by": actor, "ended_note": note}
    tx.execute(insert(tx.tables.ended_pauses).values(record))
    return EndedPause(**record)


def ended_pauses(tx: Transaction, *, limit: int) -> list[EndedPause]:
    """Return the record of pauses that were ended, the latest first."""
    e = tx.tables.ended_pauses
    found = select(e).order_by(e.c.ended_at.desc(), e.c.id.desc()).limit(limit)
    return [EndedPause(**row) for row in tx.execute(found).mappings()]


def in_force(tx: Transaction, pause_ids: Collection[UUID]) -> set[UUID]:
    """Return those of the pauses that have not ended, kept from ending unseen until this transaction ends.

    Nobody is waited for: one that somebody is about to end counts too, and what it is made to hold now is left to
    `release_held`.
    """
    p = tx.tables.pauses
    wanted = select(p.c.id).where(one_of(tx, p.c.id, pause_ids))
    kept = set(tx.execute(wanted.with_for_update(read=True, skip_locked=True)).scalars())
    if len(kept) < len(pause_ids):
        kept |= set(tx.execute(wanted).scalars())
    return kept


def hold_claimed(tx: Transaction, *, lease_token: UUID, action_ids: Collection[UUID]) -> set[UUID]:
    """Put actions that were claimed under the token on hold, the attempt given back, and return them."""
    q = tx.tables.queue
    held = (
        update(q)
        .where(one_of(tx, q.c.action_id, action_ids), q.c.lease_token == lease_token)
        .values(hold=HELD, attempt_count=q.c.attempt_count - 1, **lease_cleared())
        .returning(q.c.action_id)
    )
    return set(tx.execute(held).scalars())


def hold_due(tx: Transaction, *, action_type: str, workspace_ids: Collection[UUID], now: datetime, among: int) -> int:
    """Of the `among` unclaimed actions of the type that are due first, put those of these workspaces on hold.

    Return how many these are. What another transaction has locked is passed over.
    """
    q = tx.tables.queue
    first = (
        select(q.c.action_id, q.c.workspace_id)
        .where(q.c.action_type == action_type, q.c.lease_token.is_(None), q.c.hold.is_(None), q.c.due_at <= now)
        .order_by(q.c.due_at, q.c.action_id)
        .limit(among)
        .subquery("first")
    )
    theirs = select(first.c.action_id).where(first.c.workspace_id.in_(list(workspace_ids)))
    # by `lease_until`, so that no plan prefers the index of what is due to looking up the ids
    free = select(q.c.action_id).where(
        selected_by(tx, q.c.action_id, theirs), q.c.lease_until.is_(None), q.c.hold.is_(None)
    )
    free = free.with_for_update(skip_locked=True)
    return tx.execute(update(q).where(selected_by(tx, q.c.action_id, free)).values(hold=HELD)).rowcount


def release_held(tx: Transaction) -> int:
    """Release what is held though no pause stops it, and return how much that was: what `release_held_of` passed over.

    It reads what is on hold only of workspaces that are not paused as a whole.
    """
    stopped = {pause.workspace_id for pause in pauses(tx) if pause.action_type is None}
    return sum(release_held_of(tx, workspace) for workspace in _workspaces_on_hold(tx) if workspace not in stopped)


def release_held_of(tx: Transaction, workspace_id: UUID) -> int:
    """Release what is held of a workspace though no pause stops it, and return how much that was.

    What another transaction has locked is passed over.
    """
    q, p = tx.tables.queue, tx.tables.pauses
    stopped = exists().where(
        p.c.workspace_id == q.c.workspace_id, or_(p.c.action_type.is_(None), p.c.action_type == q.c.action_type)
    )
    free = select(q.c.action_id).where(q.c.hold == HELD, q.c.workspace_id == workspace_id, ~stopped)
    free = free.with_for_update(skip_locked=True, of=q)
    return tx.execute(update(q).where(selected_by(tx, q.c.action_id, free)).values(hold=null())).rowcount


def _workspaces_on_hold(tx: Transaction) -> list[UUID]:
    """Return the workspaces that have something on hold, however much: from one to the next in the index."""
    q = tx.tables.queue
    first = select(q.c.workspace_id).where(q.c.hold == HELD).order_by(q.c.workspace_id).limit(1)
    found = select(first.scalar_subquery().label("workspace_id")).cte("found", recursive=True)
    following = first.where(q.c.workspace_id > found.c.workspace_id).correlate(found).scalar_subquery()
    found = found.union_all(select(following).where(found.c.workspace_id.is_not(None)))
    return list(tx.execute(select(found.c.workspace_id).where(found.c.workspace_id.is_not(None))).scalars())


def _of(tx: Transaction, workspace_id: UUID | None, action_type: str | None) -> Sequence[ColumnElement[bool]]:
    p = tx.tables.pauses
    return (
        p.c.workspace_id.is_(None) if workspace_id is None else p.c.workspace_id == workspace_id,
        p.c.action_type.is_(None) if action_type is None else p.c.action_type == action_type,
    )
