"""What does the ledger of the rules say of their occurrences, and which of their actions are still queued?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    Text,
    bindparam,
    case,
    cast,
    exists,
    literal,
    literal_column,
    null,
    or_,
    select,
    update,
)

from postdate.domain.action import RECURRING
from postdate.domain.expand import Turn
from postdate.domain.rule import OccurrenceState, RuleOccurrence, SkipReason
from postdate.store.sets import one_of, rowset, rowset_named, rowset_texts

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import RowMapping, Select
    from sqlalchemy.sql.dml import ReturningInsert

    from postdate.domain.misfire import Misfire
    from postdate.store.transaction import Transaction

_CLAIMED = ("rule_id", "nominal_at", "action_id", "reason")
_LINE = (*_CLAIMED, "state", "changed_at", "moved_to", "wall_time", "moved_wall")


_LAST = 1000
"""How many runs of a rule may count for what overlaps: as many as it may have made up for since."""


@dataclass(frozen=True, kw_only=True)
class LateOccurrence:
    """An occurrence whose action begins late, and what its rule says of that."""

    action_id: UUID
    rule_id: UUID
    nominal_at: datetime
    misfire: Misfire
    grace: timedelta
    superseded: bool
    """Whether a later occurrence of the rule is due too, by the ledger."""
    decided_upto: datetime
    """What the rule has after this (UTC) is not in the ledger yet."""


@dataclass(frozen=True, kw_only=True)
class QueuedOccurrence:
    """An action of a rule that nobody has claimed."""

    action_id: UUID
    action_type: str
    publish_at: datetime
    occurrence: str


def claim_lines(
    tx: Transaction,
    *,
    made: Collection[tuple[UUID, datetime, UUID]],
    left_out: Collection[tuple[UUID, datetime, SkipReason]],
    now: datetime,
) -> set[UUID]:
    """Write lines of the ledger where it has none, or says that the occurrence was withdrawn.

    Each is told by its rule and nominal instant, and by its action or by why there is none. Return the actions whose
    lines were written. The rules must be held. What was materialised, skipped or moved stays as it is (P80).
    """
    if not made and not left_out:
        return set()
    lines = [
        *((rule_id, at, action_id, None) for rule_id, at, action_id in made),
        *((rule_id, at, None, str(why)) for rule_id, at, why in left_out),
    ]
    columns = dict(zip(_CLAIMED, zip(*lines, strict=True), strict=True))
    asked = rowset_texts(tx, "lines", _claimed_types(tx), columns) | {"now": now}
    return set(tx.execute(tx.prepared(_claimed), asked).scalars()) - {None}


def _claimed(tx: Transaction) -> ReturningInsert[Any]:
    o = tx.tables.rule_occurrences
    source = rowset_named(tx, "lines", _claimed_types(tx))
    state = case((source.c.reason.is_(None), str(OccurrenceState.MATERIALISED)), else_=str(OccurrenceState.SKIPPED))
    now = bindparam("now", type_=o.c.changed_at.type)
    chosen = select(source, state, now).where(source.c.rule_id.is_not(None))  # SQLite reads ON as a join's
    written = tx.insert(o).from_select((*_CLAIMED, "state", "changed_at"), chosen)
    return written.on_conflict_do_update(
        index_elements=[o.c.rule_id, o.c.nominal_at],
        set_={name: written.excluded[name] for name in ("action_id", "reason", "state", "changed_at")},
        where=o.c.state == str(OccurrenceState.WITHDRAWN),
    ).returning(o.c.action_id)


def write_line(tx: Transaction, line: RuleOccurrence) -> None:
    """Write a line of the ledger whatever it says: a person decided. The rule must be held."""
    o = tx.tables.rule_occurrences
    values = _row(line)
    written = tx.insert(o).values(values)
    tx.execute(
        written.on_conflict_do_update(
            index_elements=[o.c.rule_id, o.c.nominal_at], set_={name: values[name] for name in _LINE[2:]}
        )
    )


def find_line(tx: Transaction, rule_id: UUID, nominal_at: datetime) -> RuleOccurrence | None:
    """Return what the ledger says of one occurrence, or None."""
    o = tx.tables.rule_occurrences
    row = tx.execute(select(o).where(o.c.rule_id == rule_id, o.c.nominal_at == nominal_at)).mappings().one_or_none()
    return None if row is None else line_of(row)


def lines_of(tx: Transaction, rule_id: UUID, *, since: datetime, until: datetime | None = None) -> list[RuleOccurrence]:
    """Return what the ledger says of a rule's occurrences from `since` on, up to `until`, in their order."""
    o = tx.tables.rule_occurrences
    query = select(o).where(o.c.rule_id == rule_id, o.c.nominal_at >= since).order_by(o.c.nominal_at)
    if until is not None:
        query = query.where(o.c.nominal_at <= until)
    return [line_of(row) for row in tx.execute(query).mappings()]


def missed_lines(tx: Transaction, *, rule_id: UUID | None, since: datetime | None, limit: int) -> list[RuleOccurrence]:
    """Return the occurrences that were missed for good, the latest first."""
    o = tx.tables.rule_occurrences
    query = select(o).where(o.c.reason == literal_column("'missed'"))  # as its partial index says it
    if rule_id is not None:
        query = query.where(o.c.rule_id == rule_id)
    if since is not None:
        query = query.where(o.c.nominal_at >= since)
    return [line_of(row) for row in tx.execute(query.order_by(o.c.nominal_at.desc()).limit(limit)).mappings()]


def skip_lines(tx: Transaction, action_ids: Collection[UUID], *, reason: SkipReason, now: datetime) -> None:
    """Let the ledger say why the occurrences of these actions did not run."""
    if not action_ids:
        return
    o = tx.tables.rule_occurrences
    kept = {"action_id": null()} if reason is SkipReason.REFUSED else {}  # there is no such action
    skipped = {"state": str(OccurrenceState.SKIPPED), "reason": str(reason), "moved_to": null(), **kept}
    tx.execute(update(o).where(one_of(tx, o.c.action_id, action_ids)).values(**skipped, changed_at=now))


def hand_over_lines(tx: Transaction, old: UUID, new: UUID, *, since: datetime) -> None:
    """Let a rule that takes over from `since` on have what a person has decided about those occurrences."""
    o = tx.tables.rule_occurrences
    moved = o.c.state == str(OccurrenceState.MOVED)
    decided = or_(o.c.reason == str(SkipReason.USER), moved, o.c.wall_time.is_not(None))
    tx.execute(update(o).where(o.c.rule_id == old, o.c.nominal_at >= since, decided).values(rule_id=new))


def withdraw_lines(tx: Transaction, due: Mapping[UUID, datetime], *, now: datetime) -> None:
    """Let the ledger say that these actions were withdrawn; each is given with when it was due.

    What was to happen at another instant than its nominal one was moved, and stays so.
    """
    if not due:
        return
    o = tx.tables.rule_occurrences
    columns: dict[str, Sequence[Any]] = {"action_id": list(due), "due": list(due.values())}
    source = rowset(tx, "gone", {"action_id": o.c.action_id.type, "due": o.c.moved_to.type}, columns)
    moved = source.c.due != o.c.nominal_at
    state = case((moved, str(OccurrenceState.MOVED)), else_=str(OccurrenceState.WITHDRAWN))
    tx.execute(
        update(o)
        # both conditions: the join brings the instants, the set keeps the plan on the index
        .where(o.c.action_id == source.c.action_id, one_of(tx, o.c.action_id, due))
        .values(state=state, action_id=null(), moved_to=case((moved, source.c.due)), reason=null(), changed_at=now)
    )


def late_occurrences(tx: Transaction, action_ids: Collection[UUID], *, now: datetime) -> list[LateOccurrence]:
    """Return what the rules say of these actions, as far as they are occurrences at their nominal instants."""
    r, line, later = (
        tx.tables.recurring_schedules,
        tx.tables.rule_occurrences,
        tx.tables.rule_occurrences.alias("later"),
    )
    superseded = exists().where(
        later.c.rule_id == line.c.rule_id,
        later.c.nominal_at > line.c.nominal_at,
        later.c.nominal_at <= literal(now, line.c.nominal_at.type),
        later.c.state == str(OccurrenceState.MATERIALISED),
    )
    found = (
        select(
            line.c.action_id,
            line.c.rule_id,
            line.c.nominal_at,
            r.c.last_materialized_at,
            r.c.misfire,
            r.c.grace_seconds,
            superseded.label("superseded"),
        )
        .select_from(line.join(r, r.c.id == line.c.rule_id))
        .where(one_of(tx, line.c.action_id, action_ids), line.c.state == str(OccurrenceState.MATERIALISED))
    )
    return [
        LateOccurrence(
            action_id=row.action_id,
            misfire=row.misfire,
            grace=timedelta(seconds=row.grace_seconds),
            superseded=row.superseded,
            rule_id=row.rule_id,
            nominal_at=row.nominal_at,
            decided_upto=row.last_materialized_at,
        )
        for row in tx.execute(found)
    ]


def queued_of(tx: Transaction, rule_id: UUID) -> list[QueuedOccurrence]:
    """Return the actions of a rule that nobody has claimed, whoever moved them meanwhile."""
    a, q = tx.tables.actions, tx.tables.queue
    found = (
        select(a.c.id.label("action_id"), a.c.action_type, a.c.publish_at, a.c.occurrence)
        .select_from(a.join(q, q.c.action_id == a.c.id))
        .where(a.c.origin == RECURRING, a.c.origin_id == str(rule_id), q.c.lease_until.is_(None))
        .order_by(a.c.publish_at, a.c.id)
    )
    return [QueuedOccurrence(**row) for row in tx.execute(found).mappings()]


def turns(tx: Transaction, rule_ids: Collection[UUID]) -> dict[UUID, Turn]:
    """Return how the last action of each of these rules stands, which are rules without overlaps."""
    if not rule_ids:
        return {}
    found = tx.execute(_turns(tx, rule_ids))
    return {row.id: Turn(active=row.active is not None, finished_at=row.finished_at) for row in found}


def last_runs(tx: Transaction, rule_id: UUID, *, since: datetime) -> list[tuple[datetime, datetime]]:
    """Return when those of the last occurrences of a rule began and ended that ended after that."""
    o, line = tx.tables.outcomes, tx.tables.rule_occurrences
    last = (
        select(line.c.action_id)
        .where(line.c.rule_id == rule_id, line.c.state == str(OccurrenceState.MATERIALISED))
        .order_by(line.c.nominal_at.desc())
        .limit(_LAST)
        .subquery()
    )
    found = select(o.c.submitted_at, o.c.finished_at).select_from(last.join(o, o.c.action_id == last.c.action_id))
    ran = tx.execute(found.where(o.c.submitted_at.is_not(None), o.c.finished_at > since))
    return [(row.submitted_at, row.finished_at) for row in ran]


def _turns(tx: Transaction, rule_ids: Collection[UUID]) -> Select[Any]:
    r, q, o, line = tx.tables.recurring_schedules, tx.tables.queue, tx.tables.outcomes, tx.tables.rule_occurrences
    active = (
        select(q.c.action_id)
        .where(q.c.action_type == r.c.action_type, q.c.overlap_key == cast(r.c.id, Text))
        .limit(1)
        .scalar_subquery()
    )
    last = (
        select(o.c.finished_at)
        .select_from(line.join(o, o.c.action_id == line.c.action_id, isouter=True))
        .where(line.c.rule_id == r.c.id, line.c.state == str(OccurrenceState.MATERIALISED))
        .order_by(line.c.nominal_at.desc())
        .limit(1)
        .scalar_subquery()
    )
    chosen = select(r.c.id, active.label("active"), last.label("finished_at"))
    return chosen.where(one_of(tx, r.c.id, rule_ids))


def _claimed_types(tx: Transaction) -> dict[str, Any]:
    return {name: tx.tables.rule_occurrences.c[name].type for name in _CLAIMED}


def _row(line: RuleOccurrence) -> dict[str, Any]:
    row = {name: getattr(line, name) for name in _LINE}
    return row | {"state": str(line.state), "reason": None if line.reason is None else str(line.reason)}


def line_of(row: RowMapping) -> RuleOccurrence:
    """Return the line that a row of `rule_occurrences` tells."""
    reason = None if row["reason"] is None else SkipReason(row["reason"])
    return RuleOccurrence(**{**row, "state": OccurrenceState(row["state"]), "reason": reason})
