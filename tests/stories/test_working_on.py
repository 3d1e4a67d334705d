"""Does an app work on another database, by another clock, for as long as it is told to?"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from postdate import Context, Postdate, SchemaMismatch, Status
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from pathlib import Path

    from postdate.clock import ManualClock


def shop(url: str) -> Postdate:
    app = Postdate(url, zone_of=lambda workspace, user: "Asia/Tokyo")

    @app.action("act")
    async def act(ctx: Context, payload: dict[str, Any]) -> str:
        return "p-1"

    return app


async def test_everything_happens_there_within_the_block_and_here_after_it(
    database_url: str, clock: ManualClock, tmp_path: Path
) -> None:
    app = shop(f"sqlite:///{tmp_path}/here.db")
    app.migrate()
    sync = app.sync  # as a module that imported it long ago
    with app.working_on(database_url, clock=clock):
        action = sync.schedule("act", {}, at="2026-03-08T09:00")
        assert action.created_at == NOON
        assert action.intent is not None
        assert action.intent.tz == "Asia/Tokyo"
        await app.tick()
        assert (await app.get(action.id)).status is Status.PUBLISHED
        assert app.settings.database_url == database_url
        await app.close()
    assert await app.list() == []
    await app.close()


async def test_a_copy_on_another_database_shares_the_action_types_alone(
    sqlite_url: str, clock: ManualClock, tmp_path: Path
) -> None:
    app = shop(f"sqlite:///{tmp_path}/here.db")
    app.migrate()
    other = app.on(sqlite_url, clock=clock)
    app.action("registered_later")(lambda ctx, payload: None)
    await other.schedule("registered_later", {}, at=NOON)
    assert (await other.tick()).due_count == 1
    assert await app.list() == []
    await other.close()
    await app.close()


def test_the_schema_is_looked_at_there_too(empty_database_url: str, tmp_path: Path) -> None:
    app = shop(f"sqlite:///{tmp_path}/here.db")
    app.migrate()
    assert app.sync.list() == []
    with app.working_on(empty_database_url):
        with pytest.raises(SchemaMismatch):
            app.sync.list()
        app.migrate()
        assert app.sync.list() == []
    asyncio.run(app.close())
