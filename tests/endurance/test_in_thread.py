"""How is SQLite worked with from an event loop: in threads that can be cut off, and that a fork leaves behind?"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import make_url, text

from postdate import Postdate
from postdate.cli.ending import end_the_rest
from postdate.errors import DatabaseTimedOut
from postdate.store import bounded

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from postdate.store.transaction import Transaction

NOW = datetime(2026, 3, 8, 12, tzinfo=UTC)
ENDLESS = text("with recursive n(i) as (select 1 union all select i + 1 from n) select i from n where i < 0")


@pytest.fixture
def app(sqlite_url: str) -> Postdate:
    app = Postdate(sqlite_url)

    @app.action("act")
    async def act(_ctx: object, _payload: dict[str, object]) -> None:
        """Do nothing."""

    return app


def endless(tx: Transaction) -> None:
    tx.execute(ENDLESS).all()


async def test_what_takes_too_long_is_interrupted_and_undone(app: Postdate) -> None:
    app.kernel.settings = app.settings.model_copy(update={"database_timeout": timedelta(seconds=0.2)})

    def schedules_and_goes_on(connection: Connection) -> None:
        with connection.begin():
            app.sync.schedule("act", {}, at=NOW, connection=connection)
            connection.execute(ENDLESS).all()

    with pytest.raises(DatabaseTimedOut):
        await app.kernel.connected(schedules_and_goes_on)
    assert await app.list() == []
    await app.close()


async def test_who_is_cancelled_leaves_nothing_running(app: Postdate, caplog: pytest.LogCaptureFixture) -> None:
    began = asyncio.Event()
    loop = asyncio.get_running_loop()

    def begins(tx: Transaction) -> None:
        loop.call_soon_threadsafe(began.set)
        endless(tx)

    call = asyncio.create_task(app.kernel.work(begins))
    await began.wait()
    call.cancel()
    await asyncio.wait([call])
    assert call.cancelled()
    del call
    gc.collect()
    assert caplog.messages == [], "the interruption is no error that nobody has heard of"
    assert (await app.schedule("act", {}, at=NOW)).payload == {}, "the write lock is free"
    await app.close()


async def test_what_waits_for_its_turn_is_not_begun_once_it_is_cancelled(app: Postdate) -> None:
    """Reads go on meanwhile."""
    began, goes_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    called: list[str] = []

    def first(_tx: Transaction) -> None:
        loop.call_soon_threadsafe(began.set)
        goes_on.wait()
        called.append("first")

    running = asyncio.create_task(app.kernel.work(first))
    await began.wait()
    waiting = asyncio.create_task(app.kernel.work(lambda _tx: called.append("second")))
    await app.kernel.work(lambda _tx: called.append("read"), read_only=True)
    waiting.cancel()
    await asyncio.wait([waiting])
    goes_on.set()
    await running
    await app.kernel.work(lambda _tx: called.append("third"))
    assert called == ["read", "first", "third"]
    await app.close()


async def test_what_was_given_up_while_another_program_writes_is_not_done_once_that_has_ended(
    app: Postdate, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would run what a claim took then, and its runs would be taken for doubtful."""
    monkeypatch.setattr(bounded, "_BETWEEN", 0.1)
    await app.kernel.work(lambda _tx: None)
    app.kernel.settings = app.settings.model_copy(update={"database_timeout": timedelta(seconds=0.2)})
    called: list[str] = []
    with closing(sqlite3.connect(str(make_url(sqlite_url).database), isolation_level=None)) as another:
        another.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseTimedOut):
            await app.kernel.work(lambda _tx: called.append("given up"))
    app.kernel.settings = app.settings
    await app.kernel.work(lambda _tx: called.append("next"))
    assert called == ["next"]
    await app.close()


async def test_a_function_that_raises_stop_iteration_is_heard_of(app: Postdate) -> None:
    """Of a `zone_of` that asks `next()` for what there is none of, say."""

    def asks(_tx: Transaction) -> None:
        next(iter(()))

    with pytest.raises(RuntimeError, match="StopIteration"):
        await app.kernel.work(asks)
    await app.close()


async def test_it_sees_the_variables_of_its_context(app: Postdate) -> None:
    request: ContextVar[str] = ContextVar("request")
    request.set("r-1")
    assert await app.kernel.work(lambda _tx: request.get(), read_only=True) == "r-1"
    await app.close()


async def test_closing_lets_go_of_its_threads_and_they_come_again_when_needed(app: Postdate) -> None:
    await app.schedule("act", {}, at=NOW)
    ours = [each for each in threading.enumerate() if each.name.startswith("postdate-database")]
    assert ours
    await app.close()
    for each in ours:
        await asyncio.to_thread(each.join)
    assert len(await app.list()) == 1
    await app.close()


def test_a_child_that_was_forked_has_threads_of_its_own(app: Postdate) -> None:
    """As of a server that loads the application and then forks its workers."""
    asyncio.run(_scheduled(app))
    child = multiprocessing.get_context("fork").Process(target=lambda: asyncio.run(_scheduled(app)))
    child.start()
    child.join(20)
    assert child.exitcode == 0
    assert len(app.sync.list()) == 2
    app.kernel.database.close_sync()


def test_a_child_that_was_forked_leaves_its_parents_connections_alone(app: Postdate) -> None:
    """SQLite's locks are a process's: over a connection of another's it takes itself to hold what it does not."""

    def mark(tx: Transaction) -> None:
        tx.connection.info["of"] = "the parent"

    def looks(tx: Transaction) -> None:
        assert "of" not in tx.connection.info

    asyncio.run(app.kernel.work(mark))
    child = multiprocessing.get_context("fork").Process(target=lambda: asyncio.run(app.kernel.work(looks)))
    child.start()
    child.join(20)
    assert child.exitcode == 0
    app.kernel.database.close_sync()


async def _scheduled(app: Postdate) -> None:
    await app.schedule("act", {}, at=NOW)


def test_a_call_that_hangs_does_not_keep_the_process(sqlite_url: str) -> None:
    """Of a hook that never comes back, say."""
    hanging = f"""
import asyncio, threading
from postdate import Postdate
from postdate.cli.ending import end_the_rest

async def main():
    app, began = Postdate({sqlite_url!r}), threading.Event()
    call = asyncio.create_task(app.kernel.work(lambda tx: (began.set(), threading.Event().wait())))
    await asyncio.to_thread(began.wait)
    await app.close()
    for _ in range(2):
        call.cancel()
        await asyncio.sleep(0)
    await end_the_rest()
    print("goes on")

asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", hanging], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0
    assert "ending although calls to the database go on" in ended.stdout
    assert "goes on\n" not in ended.stdout


async def test_threads_that_have_nothing_to_do_do_not_end_the_process(app: Postdate) -> None:
    """Of an application that nobody has closed, say."""
    await app.schedule("act", {}, at=NOW)
    await end_the_rest()
    await app.close()
