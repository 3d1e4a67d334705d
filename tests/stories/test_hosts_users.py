"""In which zone is a wall time meant where the host brings its own users, of whose zones we know nothing?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import create_engine, text

from postdate import Context, InvalidZone, Postdate, Settings, Status
from postdate.engine.zones import ZonePass
from postdate.store.database import Database
from postdate.testing.factories import make_workspace
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from postdate.clock import ManualClock

NINE = "2026-07-01T09:00"
IN_LISBON, IN_TOKYO = datetime(2026, 7, 1, 8, tzinfo=UTC), datetime(2026, 7, 1, 0, tzinfo=UTC)
A_MINUTE = timedelta(minutes=1)


@pytest.fixture
def user() -> UUID:
    return uuid4()


@pytest.fixture
async def shop(empty_database_url: str, clock: ManualClock, user: UUID) -> AsyncIterator[Postdate]:
    """Return an app whose users are the host's, and whose workspaces are ours."""
    host = create_engine(Database(empty_database_url).sync_engine.url)
    with host.begin() as connection:
        id_type = "uuid" if host.dialect.name == "postgresql" else "text"
        connection.execute(text(f"create table users (id {id_type} primary key)"))
        connection.execute(text("insert into users values (:id)"), {"id": str(user)})
    host.dispose()
    app = Postdate(empty_database_url, settings=Settings(profiles_table="users"), clock=clock)

    @app.action("mail")
    async def mail(ctx: Context, payload: dict[str, Any]) -> None: ...

    app.migrate()
    yield app
    await app.close()


async def test_a_wall_time_of_a_user_who_has_no_zone_is_refused_and_that_of_the_workspace_counts(
    shop: Postdate, user: UUID
) -> None:
    """P5."""
    with pytest.raises(InvalidZone):
        await shop.schedule("mail", {}, at=NINE, user=user)
    with pytest.raises(InvalidZone):
        await shop.schedule("mail", {}, at=NINE, user=user, workspace=make_workspace(shop))
    lisbon = make_workspace(shop, account_timezone="Europe/Lisbon")
    assert (await shop.schedule("mail", {}, at=NINE, user=user, workspace=lisbon)).publish_at == IN_LISBON


async def test_what_such_a_user_has_in_a_workspace_moves_with_the_workspace(shop: Postdate, user: UUID) -> None:
    workspace = make_workspace(shop, account_timezone="Europe/Lisbon")
    await shop.schedule("mail", {}, at=NINE, user=user, workspace=workspace)
    named = await shop.schedule("mail", {}, at=NINE, tz="Europe/Lisbon", user=user)
    with shop.kernel.transaction(None) as tx:
        table = tx.tables.workspaces
        tx.execute(table.update().where(table.c.id == workspace).values(settings={"account_timezone": "Asia/Tokyo"}))
    report = await ZonePass(shop.kernel).run_once(NOON + A_MINUTE)
    assert (report.followed, list(report.problems)) == (1, [])
    queued = {each.id: each.publish_at for each in await shop.list(status=Status.QUEUED)}
    assert queued.pop(named.id) == IN_LISBON
    assert list(queued.values()) == [IN_TOKYO]
