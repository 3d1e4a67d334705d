"""Mail at nine, and what makes nine another instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import text, update

from postdate.engine.zones import ZonePass, ZoneReport

if TYPE_CHECKING:
    from uuid import UUID

    from postdate import Action, Context, Postdate
    from postdate.store.transaction import Transaction

LISBON, TOKYO, NEW_YORK = "Europe/Lisbon", "Asia/Tokyo", "America/New_York"
NINE = "2026-07-01T09:00"
IN_LISBON, IN_TOKYO = datetime(2026, 7, 1, 8, tzinfo=UTC), datetime(2026, 7, 1, 0, tzinfo=UTC)
NO_SUMMER = {LISBON: "WET0"}
IN_WINTER_TIME = datetime(2026, 7, 1, 9, tzinfo=UTC)
NEW, NEWER = "2099a", "2099b"
A_MINUTE, A_DAY = timedelta(minutes=1), timedelta(days=1)


def registered_mail(app: Postdate) -> list[datetime]:
    """Register a type, and return when its actions ran."""
    said: list[datetime] = []

    @app.action("mail")
    async def mail(ctx: Context, payload: dict[str, Any]) -> None:
        said.append(ctx.now)

    return said


async def nine(app: Postdate, tz: str | None = LISBON, **asked: Any) -> Action:
    return await app.schedule("mail", asked.pop("payload", {}), at=asked.pop("at", NINE), tz=tz, **asked)


async def walked(app: Postdate, *, later: timedelta = A_MINUTE) -> ZoneReport:
    return await ZonePass(app.kernel).run_once(app.kernel.clock.now() + later)


async def successor(app: Postdate, old: Action) -> Action:
    (new,) = [each for each in await app.list(limit=1000) if each.replaces_id == old.id]
    return new


def moved(app: Postdate, workspace: UUID, tz: str | None) -> None:
    with app.kernel.transaction(None) as tx:
        table = tx.tables.workspaces
        settings = {} if tz is None else {"account_timezone": tz}
        tx.execute(update(table).where(table.c.id == workspace).values(settings=settings))


def insert_bare(tx: Transaction, action_id: UUID, **values: str) -> None:
    values |= {"id": str(action_id), "action_type": "mail", "gap": "forward", "fold": "first"}
    due = "1782892800000000" if tx.is_sqlite else "timestamptz '2026-07-01 08:00Z'"
    view = f"{'' if tx.is_sqlite else 'postdate.'}scheduled_actions"
    named = ", ".join(f":{name}" if name != "id" or tx.is_sqlite else "cast(:id as uuid)" for name in values)
    tx.execute(
        text(f"insert into {view} (publish_at, payload, {', '.join(values)}) values ({due}, '{{}}', {named})"), values
    )


async def nothing(ctx: Context, payload: dict[str, Any]) -> None:
    """Do nothing."""
