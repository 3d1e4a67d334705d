"""How does a pass go on over servers that are not the app's, over many workspaces, and where the database is away?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from postdate import Context, DatabaseTimedOut, Postdate
from postdate.clock import ManualClock
from postdate.engine import reconcile
from postdate.store.database import Database
from postdate.testing.factories import make_workspace
from tests.stories.conftest import NOON
from tests.stories.posts import TYPE, Posts, reconciled, source
from tests.stories.upstream import Stage

if TYPE_CHECKING:
    from pathlib import Path

CONNECTED = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"


async def publish(_ctx: Context, _payload: dict[str, object]) -> None: ...


@pytest.mark.parametrize("broken", [False, True], ids=["read", "refused"])
async def test_no_connection_is_kept_to_a_server_of_theirs(tmp_path: Path, postgres_url: str, broken: bool) -> None:
    """It has no room for one more application that keeps ten open."""
    theirs = create_engine(Database(postgres_url).sync_engine.url)
    app = Postdate(f"sqlite:///{tmp_path / 'postdate.db'}", clock=ManualClock(NOON))
    app.migrate()
    app.action(TYPE)(publish)
    posts = Posts(theirs, make_workspace(app))
    posts.add("a")
    said = {"desired_sql": "select nothing from posts where :workspace = team"} if broken else {}
    app.source("posts", source(database_url=postgres_url, **said))
    for inserted in (1, 0):
        part = await reconciled(app)
        assert (part.inserted, part.failed is not None) == ((0, True) if broken else (inserted, False))
        with theirs.connect() as connection:
            assert connection.execute(text(CONNECTED)).scalar() == 0
    assert [each.thing_id for each in await app.list()] == ([] if broken else ["a"])
    await app.close()
    with theirs.begin() as connection:
        connection.execute(text("drop table posts"))
    theirs.dispose()


async def test_more_workspaces_than_are_read_at_once_are_all_asked_about_once(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcile, "BATCH", 3)
    async with Stage.on(sqlite_url) as stage:
        offices = [stage.workspace, *(make_workspace(stage.app) for _ in range(6))]
        for number, office in enumerate(offices):
            stage.approve(f"post-{number}", workspace=office)
        report = await stage.app.reconcile()
        assert sorted(part.workspace_id for part in report.parts if part.workspace_id) == sorted(offices)
        assert {each.workspace_id for each in await stage.app.list()} == set(offices)


@pytest.mark.parametrize(
    "away",
    [
        DatabaseTimedOut(30.0),
        OperationalError("select 1", {}, ConnectionResetError(), connection_invalidated=True),
        PoolTimeout("each of its connections is in use"),
    ],
    ids=["silent", "gone", "busy"],
)
async def test_a_pass_ends_where_the_database_is_away_and_blames_no_workspace(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, away: Exception
) -> None:
    """It would be so for the next workspace, too: the pass is done again later, over all of them."""
    begun: list[object] = []

    async def fails(part: reconcile.Part) -> None:
        begun.append(part)
        raise away

    async with Stage.on(sqlite_url) as stage:
        offices = [make_workspace(stage.app) for _ in range(3)]
        for number, office in enumerate(offices):
            stage.approve(f"post-{number}", workspace=office)
        with monkeypatch.context() as patched:
            patched.setattr(reconcile.Part, "run", fails)
            with pytest.raises(type(away)):
                await stage.app.reconcile()
        assert len(begun) == 1
        await stage.app.reconcile()
        assert {each.workspace_id for each in await stage.app.list()} == set(offices)
