"""How do the actions of a rule stand: which wait, which is at work, and when did the last ones run?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, cast, select

from postdate.domain.action import RECURRING
from postdate.domain.expand import Turn
from postdate.domain.rule import OccurrenceState
from postdate.store.sets import one_of

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import Select

    from postdate.store.transaction import Transaction

_LAST = 1000
"""How many runs of a rule may count for what overlaps: as many as it may have made up for since."""


@dataclass(frozen=True, kw_only=True)
class QueuedOccurrence:
    """An action of a rule that nobody has claimed."""

    action_id: UUID
    action_type: str
    publish_at: datetime
    occurrence: str


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
    found = tx.execute(_last_actions(tx, rule_ids))
    return {row.id: Turn(active=row.active is not None, finished_at=row.finished_at) for row in found}


def _last_actions(tx: Transaction, rule_ids: Collection[UUID]) -> Select[Any]:
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
