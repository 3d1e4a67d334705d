"""How is the history of an action written and read?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select

from postdate.domain.action import Event

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.states import Cause
    from postdate.store.transaction import Transaction


def event_row(
    action_id: UUID, workspace_id: UUID | None, *, at: datetime, cause: Cause | str, actor: str, **detail: Any
) -> dict[str, Any]:
    """Return one line of history; details that are None are left out."""
    known = {name: value for name, value in detail.items() if value is not None}
    return {
        "action_id": action_id,
        "workspace_id": workspace_id,
        "at": at,
        "cause": str(cause),
        "actor": actor,
        "detail": known,
    }


def append_events(tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append to the history."""
    if rows:
        tx.execute(insert(tx.tables.action_events), list(rows))


def events_of(tx: Transaction, action_id: UUID) -> list[Event]:
    """Return what was written about the action, oldest first."""
    e = tx.tables.action_events
    rows = tx.execute(
        select(e.c.at, e.c.cause, e.c.actor, e.c.detail).where(e.c.action_id == action_id).order_by(e.c.id)
    )
    return [Event(**row) for row in rows.mappings()]
