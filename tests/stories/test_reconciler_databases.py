"""Where may the tables be that a source reads, by which driver, and for how long does it read?"""

from __future__ import annotations

import asyncio
import threading

import pytest
from sqlalchemy import create_engine, text

from postdate import Kept, Postdate, SqlSource, Status
from postdate.clock import ManualClock
from postdate.engine import hearing
from postdate.testing.factories import make_workspace
from tests.stories.conftest import NOON
from tests.stories.posts import A_MINUTE, TYPE, Posts, reconciled, source


@pytest.mark.parametrize(
    ("kind", "thing"),
    [("bigint", "7"), ("uuid", "0193e000-0000-7000-8000-000000000000"), ("text", "it's \\ 100% :ours")],
    ids=["bigint", "uuid", "text"],
)
@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
async def test_by_either_driver_things_are_found_whatever_their_ids_are(
    postgres_url: str, driver: str, kind: str, thing: str
) -> None:
    app = Postdate(postgres_url.replace("+psycopg:", f"+{driver}:"), clock=ManualClock(NOON))
    app.action(TYPE)(lambda _ctx, _payload: None)
    with app.kernel.transaction(None) as tx:
        tx.execute(
            text(f"create table posts as select cast(:thing as {kind}) as id, true as approved"), {"thing": thing}
        )
    row = "select 'publish_post' as action_type, id as thing_id, '2027-03-09T09:00Z' as at from posts where approved"
    parents = "select id as thing_id, true as finished from posts where id in :thing_ids"
    app.source("posts", SqlSource(desired_sql=row, parents_sql=parents))
    assert (await reconciled(app)).inserted == 1
    with app.kernel.transaction(None) as tx:
        tx.execute(text("update posts set approved = false"))
    part = await reconciled(app, after=10 * A_MINUTE)
    assert (part.failed, part.kept) == (None, {Kept.PARENT_FINISHED: 1})
    with app.kernel.transaction(None) as tx:
        tx.execute(text("drop table posts"))
    await app.close()


async def test_the_tables_may_be_in_another_database(sqlite_url: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = f"sqlite:///{tmp_path_factory.mktemp('theirs') / 'shop.db'}"
    theirs = create_engine(elsewhere)
    app = Postdate(sqlite_url, clock=ManualClock(NOON))
    app.action(TYPE)(lambda _ctx, _payload: None)
    team = make_workspace(app)
    Posts(theirs, team).add("a")
    app.source("posts", source(database_url=elsewhere))
    assert (await reconciled(app)).inserted == 1
    assert [each.status for each in await app.list()] == [Status.QUEUED]
    await app.close()
    theirs.dispose()


async def test_a_statement_without_end_is_ended_in_a_file_too(sqlite_url: str) -> None:
    """Its thread would count on, and the next pass would begin another one."""
    app = Postdate(sqlite_url, clock=ManualClock(NOON))
    counting = "with recursive n(i) as (select 1 union all select i + 1 from n)"
    row = "select 'publish_post' as action_type, 'a' as thing_id, i as at"
    app.source("endless", source(desired_sql=f"{counting} {row} from n where i < 0"), timeout=0.2)
    before = set(threading.enumerate())
    assert (await reconciled(app)).failed == "took longer than 0.2 s"
    async with asyncio.timeout(hearing._ENDING_SECONDS):
        while any(not each.name.startswith("postdate-database") for each in set(threading.enumerate()) - before):
            await asyncio.sleep(0)
    await app.close()


async def test_a_server_that_is_asked_for_too_long_is_asked_no_more(postgres_url: str) -> None:
    app = Postdate(postgres_url, clock=ManualClock(NOON))
    app.source("slow", source(desired_sql="select pg_sleep(20)"), workspaces=[None], timeout=0.2)
    part = await reconciled(app)
    assert part.failed is not None
    with app.kernel.transaction(None) as tx:
        sleeping = "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()"
        assert tx.execute(text(sleeping)).scalar() == 0
    await app.close()
