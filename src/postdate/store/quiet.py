"""Which hours are quiet in which workspace?"""

from __future__ import annotations

from datetime import time
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, insert, select

from postdate.domain.quiet import EVERY_DAY, QuietHours, WorkspaceQuietHours
from postdate.store.sets import one_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from uuid import UUID

    from sqlalchemy import RowMapping

    from postdate.store.transaction import Transaction


def quiet_hours(tx: Transaction, *, workspace_ids: Collection[UUID] | None = None) -> list[WorkspaceQuietHours]:
    """Return the quiet hours of these workspaces, or of all, those of one workspace together."""
    t = tx.tables.quiet_hours
    found = select(t).order_by(t.c.workspace_id, func.coalesce(t.c.action_type, ""), t.c.id)
    if workspace_ids is not None:
        found = found.where(one_of(tx, t.c.workspace_id, workspace_ids))
    return [_read(row) for row in tx.execute(found).mappings()]


def add_quiet_hours(tx: Transaction, rows: Mapping[UUID, WorkspaceQuietHours]) -> None:
    """Add quiet hours, each under its id."""
    tx.execute(insert(tx.tables.quiet_hours), [_written(key, row) for key, row in rows.items()])


def remove_quiet_hours(tx: Transaction, *, workspace_id: UUID, action_type: str | None) -> list[WorkspaceQuietHours]:
    """Remove the quiet hours of exactly this workspace and type, and return what they were."""
    t = tx.tables.quiet_hours
    of_type = t.c.action_type.is_(None) if action_type is None else t.c.action_type == action_type
    gone = delete(t).where(t.c.workspace_id == workspace_id, of_type).returning(*t.c)
    return [_read(row) for row in sorted(tx.execute(gone).mappings(), key=lambda row: row["id"].bytes)]


def _written(key: UUID, row: WorkspaceQuietHours) -> Mapping[str, object]:
    hours = row.hours
    return {
        "id": key,
        "workspace_id": row.workspace_id,
        "action_type": row.action_type,
        "start_time": f"{hours.start:%H:%M}",
        "end_time": f"{hours.end:%H:%M}",
        "weekdays": None if hours.weekdays == EVERY_DAY else "".join(map(str, sorted(hours.weekdays))),
        "tz": hours.tz,
        "set_at": row.set_at,
        "set_by": row.set_by,
        "note": row.note,
    }


def _read(row: RowMapping) -> WorkspaceQuietHours:
    days = row["weekdays"]
    return WorkspaceQuietHours(
        workspace_id=row["workspace_id"],
        action_type=row["action_type"],
        hours=QuietHours(
            start=time.fromisoformat(row["start_time"]),
            end=time.fromisoformat(row["end_time"]),
            weekdays=EVERY_DAY if days is None else frozenset(map(int, days)),
            tz=row["tz"],
        ),
        set_at=row["set_at"],
        set_by=row["set_by"],
        note=row["note"],
    )
