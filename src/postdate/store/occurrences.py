"""What does the ledger of the rules say of their occurrences?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, case, literal, literal_column, null, select, update

from postdate.domain.rule import OccurrenceState, RuleOccurrence, SkipReason
from postdate.store.sets import one_of, rowset, rowset_named, rowset_texts

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import RowMapping
    from sqlalchemy.sql.dml import ReturningInsert

    from postdate.store.transaction import Transaction

_CLAIMED = ("rule_id", "nominal_at", "action_id", "reason")
_LINE = (*_CLAIMED, "state", "changed_at", "moved_to", "wall_time", "moved_wall")


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
    asked = rowset_texts(tx.tables, "lines", _claimed_types(tx), columns) | {"now": now}
    return set(tx.execute(tx.prepared(_insert_of_lines), asked).scalars()) - {None}


def _insert_of_lines(tx: Transaction) -> ReturningInsert[Any]:
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


def _claimed_types(tx: Transaction) -> dict[str, Any]:
    return {name: tx.tables.rule_occurrences.c[name].type for name in _CLAIMED}


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


def skip_lines(tx: Transaction, action_ids: Collection[UUID], *, reason: SkipReason, now: datetime) -> None:
    """Let the ledger say why the occurrences of these actions did not run."""
    if not action_ids:
        return
    o = tx.tables.rule_occurrences
    kept = {"action_id": null()} if reason is SkipReason.REFUSED else {}  # there is no such action
    skipped = {"state": str(OccurrenceState.SKIPPED), "reason": str(reason), "moved_to": null(), **kept}
    tx.execute(update(o).where(one_of(tx, o.c.action_id, action_ids)).values(**skipped, changed_at=now))


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


def relink_line(tx: Transaction, rule_id: UUID, *, old: UUID, new: UUID, publish_at: datetime) -> None:
    """Let the line that names the action `old` name `new`, and where it was moved to, if it was.

    The rule must be held.
    """
    o = tx.tables.rule_occurrences
    moved_to = case((o.c.moved_to.is_not(None), literal(publish_at, o.c.moved_to.type)))
    tx.execute(update(o).where(o.c.action_id == old, o.c.rule_id == rule_id).values(action_id=new, moved_to=moved_to))


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


def line_of(row: RowMapping) -> RuleOccurrence:
    """Return the line that a row of `rule_occurrences` tells."""
    reason = None if row["reason"] is None else SkipReason(row["reason"])
    return RuleOccurrence(**{**row, "state": OccurrenceState(row["state"]), "reason": reason})


def _row(line: RuleOccurrence) -> dict[str, Any]:
    row = {name: getattr(line, name) for name in _LINE}
    return row | {"state": str(line.state), "reason": None if line.reason is None else str(line.reason)}
