"""What do rules say of occurrences that begin late?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import exists, literal, select

from postdate.domain.rule import OccurrenceState
from postdate.store.sets import one_of

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.misfire import Misfire
    from postdate.store.transaction import Transaction


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
