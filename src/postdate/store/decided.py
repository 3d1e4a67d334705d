"""What have people decided about single occurrences of rules?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, func, literal, or_, select, tuple_, update

from postdate.domain.rule import OccurrenceState, SkipReason
from postdate.store.occurrences import line_of, write_line
from postdate.store.sets import one_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import ColumnElement

    from postdate.domain.rule import RuleOccurrence
    from postdate.store.transaction import Transaction


def decided_page(
    tx: Transaction, *, since: datetime, limit: int, after: RuleOccurrence | None = None
) -> list[RuleOccurrence]:
    """Return up to `limit` lines, behind `after`, of what people decided about occurrences from `since` on."""
    o = tx.tables.rule_occurrences
    query = select(o).where(*_decided(tx, since)).order_by(o.c.rule_id, o.c.nominal_at).limit(limit)
    if after is not None:
        place = tuple_(literal(after.rule_id, o.c.rule_id.type), literal(after.nominal_at, o.c.nominal_at.type))
        query = query.where(tuple_(o.c.rule_id, o.c.nominal_at) > place)
    return [line_of(row) for row in tx.execute(query).mappings()]


def decided_lines(tx: Transaction, rule_id: UUID, *, since: datetime) -> list[RuleOccurrence]:
    """Return what people decided about occurrences of a rule from `since` on, by clocks, in their order."""
    o = tx.tables.rule_occurrences
    query = select(o).where(o.c.rule_id == rule_id, *_decided(tx, since)).order_by(o.c.nominal_at)
    return [line_of(row) for row in tx.execute(query).mappings()]


def _decided(tx: Transaction, since: datetime) -> list[ColumnElement[bool]]:
    o = tx.tables.rule_occurrences
    return [o.c.wall_time.is_not(None), or_(o.c.nominal_at >= since, o.c.moved_to >= since)]


def rename_lines(tx: Transaction, rule_id: UUID, renamed: Mapping[datetime, RuleOccurrence]) -> None:
    """Let lines, each given by the nominal instant that it had, be what they are now. The rule must be held.

    What stands where they go now is written over.
    """
    o = tx.tables.rule_occurrences
    tx.execute(delete(o).where(o.c.rule_id == rule_id, one_of(tx, o.c.nominal_at, list(renamed))))
    for line in renamed.values():
        write_line(tx, line)


def moved_lines(tx: Transaction, rule_id: UUID, *, after: datetime) -> list[RuleOccurrence]:
    """Return the moved occurrences of a rule that have no action, and are to happen after that."""
    o = tx.tables.rule_occurrences
    query = select(o).where(o.c.rule_id == rule_id, o.c.moved_to > after, o.c.action_id.is_(None))
    return [line_of(row) for row in tx.execute(query.order_by(o.c.nominal_at)).mappings()]


def last_moves(tx: Transaction, rule_ids: Collection[UUID], *, after: datetime) -> dict[UUID, datetime]:
    """Return for when the last moved occurrence is, of those of the rules that have one to come after that."""
    if not rule_ids:
        return {}
    o = tx.tables.rule_occurrences
    last = func.max(o.c.moved_to, type_=o.c.moved_to.type)
    query = select(o.c.rule_id, last.label("last")).where(one_of(tx, o.c.rule_id, rule_ids), o.c.moved_to > after)
    return {row.rule_id: row.last for row in tx.execute(query.group_by(o.c.rule_id))}


def take_up_moved(tx: Transaction, rule_id: UUID, action_ids: Mapping[datetime, UUID], *, now: datetime) -> None:
    """Note the actions of moved occurrences, each given by its nominal instant."""
    o = tx.tables.rule_occurrences
    for nominal_at, action_id in action_ids.items():
        moved = update(o).where(o.c.rule_id == rule_id, o.c.nominal_at == nominal_at, o.c.moved_to.is_not(None))
        tx.execute(moved.values(action_id=action_id, changed_at=now))


def hand_over_lines(tx: Transaction, old: UUID, new: UUID, *, since: datetime) -> None:
    """Let a rule that takes over from `since` on have what a person has decided about those occurrences."""
    o = tx.tables.rule_occurrences
    moved = o.c.state == str(OccurrenceState.MOVED)
    decided = or_(o.c.reason == str(SkipReason.USER), moved, o.c.wall_time.is_not(None))
    tx.execute(update(o).where(o.c.rule_id == old, o.c.nominal_at >= since, decided).values(rule_id=new))
