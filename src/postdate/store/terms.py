"""Under which terms may actions be claimed now?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import exists, literal, select, true

from postdate.domain.pause import Pause

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import Any

    from sqlalchemy import Select

    from postdate.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a claim has to know: read in its own transaction, by one small statement."""

    held: bool
    """Whether the whole installation waits for a person's release."""
    last_tick_at: datetime | None
    any_quiet_hours: bool
    """Whether some workspace has quiet hours."""
    pauses: Sequence[Pause]


def claim_terms(tx: Transaction) -> Terms:
    """Return the terms of now."""
    p = tx.tables.pauses
    rows = tx.execute(tx.prepared(_terms)).mappings().all()
    return Terms(
        held=rows[0]["held_at"] is not None,
        last_tick_at=rows[0]["last_tick_at"],
        any_quiet_hours=rows[0]["any_quiet_hours"],
        pauses=[Pause(**{column.name: row[column.name] for column in p.c}) for row in rows if row["id"] is not None],
    )


def _terms(tx: Transaction) -> Select[Any]:
    p, h = tx.tables.pauses, tx.tables.heartbeat
    one = select(literal(1).label("one")).subquery("one")  # so that neither table's rows depend on the other's
    return select(
        h.c.held_at,
        h.c.last_tick_at,
        exists(select(tx.tables.quiet_hours.c.id)).label("any_quiet_hours"),
        *p.c,
    ).select_from(one.outerjoin(h, true()).outerjoin(p, true()))
