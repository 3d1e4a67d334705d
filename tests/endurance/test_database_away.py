"""Does the engine come through a database that is away, restarted, or there and silent?"""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import NullPool, create_engine, select, text
from structlog.testing import capture_logs

from postdate import Context, DatabaseTimedOut, NewAction, Postdate, Settings, Status
from postdate.clock import monotonic
from postdate.store.bounded import bounded
from postdate.testing.postgres import LocalPostgres
from tests.databases import LOCAL
from tests.endurance.conftest import running, until, wait_for
from tests.endurance.gateway import gateway

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAST = datetime(2020, 1, 1, tzinfo=UTC)
ENDS_CONNECTIONS = text("""
select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
""")
LISTENS = text("select count(*) from pg_stat_activity where datname = current_database() and query ilike 'listen %'")


@pytest.fixture
def server() -> Iterator[LocalPostgres]:
    """Start a server of the test's own, which it may restart."""
    if not LOCAL:
        pytest.skip("there is no PostgreSQL on this machine")
    with LocalPostgres(next(iter(LOCAL.values())), fsync=False) as started:
        yield started


def on_server(url: str) -> Callable[[object], object]:
    """Return how to run a statement beside the engines, each on a connection of its own."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)

    def run(statement: object) -> object:
        with engine.connect() as connection:
            return connection.execute(statement).scalar()  # type: ignore[call-overload]

    return run


async def test_a_server_that_is_restarted_under_load_loses_nothing_and_repeats_nothing(server: LocalPostgres) -> None:
    """Once as by a crash, and once every connection is ended; two engines are at work all the while."""
    url = server.create_database("shop")
    apps = [Postdate(url) for _ in range(2)]
    apps[0].migrate()
    called: Counter[str] = Counter()
    count = 1_200

    async def act(ctx: Context, payload: dict[str, object]) -> None:
        called[str(ctx.action.id)] += 1

    for app in apps:
        app.action("act", concurrency=20)(act)
    things = [NewAction(action_type="act", payload={"thing_id": str(n)}, at=PAST) for n in range(count)]
    await apps[0].schedule_many(things)
    async with running(*apps):
        await until(lambda: len(called) >= count // 4)
        await asyncio.to_thread(server.restart)
        await until(lambda: len(called) >= count // 2)
        await asyncio.to_thread(on_server(url), ENDS_CONNECTIONS)
        await until(lambda: len(called) == count)
    kernel = apps[0].kernel
    o = (await kernel.work(lambda tx: tx.tables)).outcomes
    ends = await kernel.work(lambda tx: tx.execute(select(o.c.status, o.c.attempt_count)).all())
    assert Counter(map(tuple, ends)) == {(Status.PUBLISHED, 1): count}
    assert set(called.values()) == {1}
    for app in apps:
        await app.close()


async def test_an_engine_hears_of_inserts_again_after_its_connection_was_lost(postgres_url: str) -> None:
    live, elsewhere, run = Postdate(postgres_url), Postdate(postgres_url), on_server(postgres_url)
    fired: list[str] = []

    async def act(ctx: Context, payload: dict[str, str]) -> None:
        fired.append(payload["thing_id"])

    for app in (live, elsewhere):
        app.action("act")(act)
    async with running(live):
        await asyncio.to_thread(wait_for, partial(run, LISTENS), within=40)
        await asyncio.to_thread(run, ENDS_CONNECTIONS)
        await asyncio.to_thread(wait_for, partial(run, LISTENS), within=40)
        began = monotonic()
        await elsewhere.schedule("act", {"thing_id": "t"}, at=PAST)
        await until(lambda: fired == ["t"])
        assert monotonic() - began < 30, "it came with the next tick"
    await live.close()
    await elsewhere.close()


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
async def test_a_server_that_says_nothing_is_given_up_in_time_and_used_again_when_it_speaks(
    postgres_url: str, driver: str
) -> None:
    with gateway(postgres_url.replace("+psycopg", f"+{driver}")) as network:
        app = Postdate(network.url)
        await app.kernel.work(lambda tx: tx.execute(text("select 1")).scalar())
        network.fall_silent()
        app.kernel.settings = Settings(database_timeout=timedelta(milliseconds=500))
        began = monotonic()
        with pytest.raises(DatabaseTimedOut, match=r"within 0\.5 s"):
            await app.kernel.work(lambda tx: tx.execute(text("select 1")).scalar())
        with pytest.raises(DatabaseTimedOut):  # this one cannot even connect
            await app.list()
        assert monotonic() - began < 30
        app.kernel.settings = Settings()  # a machine that is busy may need longer to connect again
        network.speak()
        assert await app.list() == []
        await app.close()


async def test_a_running_engine_gets_over_a_network_that_falls_silent(postgres_url: str) -> None:
    with gateway(postgres_url) as network:
        app = Postdate(network.url, settings=Settings(database_timeout=timedelta(seconds=2)))
        direct = Postdate(postgres_url)
        called: list[str] = []
        go = asyncio.Event()

        async def act(ctx: Context, payload: dict[str, str]) -> None:
            called.append(payload["thing_id"])
            await go.wait()

        for each in (app, direct):
            each.action("act")(act)
        first = await direct.schedule("act", {"thing_id": "1"}, at=PAST)
        async with running(app):
            await until(lambda: called == ["1"])
            network.fall_silent()
            second = await direct.schedule("act", {"thing_id": "2"}, at=PAST)
            go.set()  # what the first came to can be written nowhere
            with capture_logs() as logs:
                await until(lambda: [log for log in logs if "did not answer" in log.get("error", "")])
            network.speak()
            await until(lambda: called == ["1", "2"])
        for action in (first, second):
            found = await direct.get(action.id)
            assert (found.status, found.attempt_count) == (Status.PUBLISHED, 1)
        await app.close()
        await direct.close()


async def test_a_call_that_has_just_gone_well_is_not_called_timed_out() -> None:
    async def commits() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "committed"
        raise AssertionError

    assert await bounded(commits(), seconds=0.01) == "committed"


async def test_a_driver_that_does_not_obey_is_left_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postdate.store.bounded._BETWEEN", 0.01)
    insisted = 0
    over = asyncio.Event()

    async def deaf() -> None:
        nonlocal insisted
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                insisted += 1

    with pytest.raises(DatabaseTimedOut):
        await bounded(deaf(), seconds=0.01)
    assert insisted == 3
    over.set()


async def test_who_waits_for_a_call_may_be_cancelled_and_cancels_it() -> None:
    ended: list[str] = []

    async def call() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    task = asyncio.create_task(bounded(call(), seconds=60))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["ended"]
