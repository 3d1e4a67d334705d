"""When are the engine's periodic passes done, by whom, and what do they hold up?"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from structlog.testing import capture_logs

from postdate import Context, Postdate
from postdate.engine.periodic import Periodic, alone
from postdate.store.heartbeat import hold_all
from postdate.store.passes import alone_by_file, last_run, note_run
from tests.stories.conftest import NOON, running, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from datetime import datetime

    import pytest

    from postdate.clock import ManualClock

DAY = timedelta(days=1)
A_MINUTE = timedelta(minutes=1)
A_MOMENT = timedelta(milliseconds=1)


async def nothing() -> None:
    """Do nothing, at once."""


@dataclass
class Counted:
    """A pass that says when it was done, and does what the test wants."""

    interval: timedelta = DAY
    does: Callable[[], Awaitable[object]] = nothing
    name: str = "counted"
    done: list[datetime] = field(default_factory=list)

    async def run_once(self, now: datetime) -> int:
        self.done.append(now)
        await self.does()
        return len(self.done)


@asynccontextmanager
async def repeating(periodic: Periodic) -> AsyncIterator[None]:
    task = asyncio.create_task(periodic.run())
    yield
    task.cancel()
    await asyncio.wait([task])


async def test_a_pass_is_done_when_its_interval_is_over_whichever_process_did_it_last(
    app: Postdate, clock: ManualClock
) -> None:
    first, second = Counted(), Counted()
    here, there = Periodic(app.kernel, [first]), Periodic(app.kernel, [second])
    assert await here.run_due(NOON) == {"counted": 1}
    assert await here.run_due(NOON + DAY - A_MINUTE) == {}
    assert await there.run_due(NOON + DAY - A_MINUTE) == {}
    assert await there.run_due(NOON + DAY) == {"counted": 1}
    assert await here.run_due(NOON + DAY + A_MINUTE) == {}
    assert (first.done, second.done) == ([NOON], [NOON + DAY])


async def test_a_pass_that_fails_is_logged_and_due_at_the_next_turn(app: Postdate) -> None:
    async def fails() -> None:
        raise LookupError("not today")

    failing, other = Counted(does=fails), Counted(name="other")
    periodic = Periodic(app.kernel, [failing, other])
    with capture_logs() as logs:
        assert await periodic.run_due(NOON) == {"other": 1}
    assert [(line["pass"], line["log_level"]) for line in logs] == [("counted", "warning")]
    assert "not today" in logs[0]["traceback"]
    failing.does = nothing
    assert await periodic.run_due(NOON + A_MINUTE) == {"counted": 2}


async def test_while_one_process_does_a_pass_no_other_begins_it(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postdate.engine.periodic._TRIES", 1)
    app, other = Postdate(database_url), Postdate(database_url)
    begun, finish = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        begun.set()
        await finish.wait()

    first, second = Counted(does=slow), Counted()
    doing = asyncio.create_task(Periodic(app.kernel, [first]).run_due(NOON))
    await asyncio.wait_for(begun.wait(), 20)
    assert await Periodic(other.kernel, [second]).run_due(NOON) == {}
    finish.set()
    assert await doing == {"counted": 1}
    assert second.done == []
    await app.close()
    await other.close()


async def test_a_pass_whose_process_died_is_due_for_the_next(app: Postdate) -> None:
    """Its connection is gone, and with it the lock; it has left no note."""
    dying = Counted(does=asyncio.Event().wait)
    doing = asyncio.create_task(Periodic(app.kernel, [dying]).run_due(NOON))
    await until(lambda: dying.done)
    doing.cancel()
    await asyncio.wait([doing])
    assert await Periodic(app.kernel, [Counted()]).run_due(NOON) == {"counted": 1}


def test_a_process_that_is_gone_leaves_no_lock_beside_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "postdate.db-passes")
    holding = "import os, sys; from postdate.store.passes import alone_by_file as alone; held = alone(sys.argv[1]); "
    killed = "print(held.__enter__(), flush=True); os.kill(os.getpid(), 9)"
    gone = subprocess.run([sys.executable, "-c", holding + killed, path], capture_output=True, text=True, check=False)
    assert (gone.returncode, gone.stdout) == (-9, "True\n")
    with alone_by_file(path) as ours, alone_by_file(path) as theirs:
        assert (ours, theirs) == (True, False)


def test_where_no_file_can_be_locked_passes_are_done_all_the_same(tmp_path: Path) -> None:
    """It is another user's: then the guard in each write decides."""
    with alone_by_file(str(tmp_path)) as ours:
        assert ours


async def test_links_to_one_file_lead_to_one_lock(sqlite_url: str) -> None:
    app, file = Postdate(sqlite_url), Path(sqlite_url.removeprefix("sqlite:///"))
    link = file.with_name("link.db")
    link.symlink_to(file)
    linked = Postdate(f"sqlite:///{link}")
    async with alone(app.kernel) as ours, alone(linked.kernel) as theirs:
        assert (ours, theirs) == (True, False)
    await app.close()
    await linked.close()


async def test_during_a_hold_no_pass_is_done(app: Postdate) -> None:
    await app.kernel.work(lambda tx: hold_all(tx, now=NOON, because="a test"))
    periodic = Periodic(app.kernel, [Counted()])
    assert await periodic.run_due(NOON) == {}
    await app.release()
    assert await periodic.run_due(NOON) == {"counted": 1}


async def test_what_a_pass_has_noted_stays_until_it_notes_something_else(app: Postdate) -> None:
    await app.kernel.work(lambda tx: note_run(tx, "counted", at=NOON, state={"seen": "2026f"}))
    await Periodic(app.kernel, [Counted()]).run_due(NOON + DAY)
    found = await app.kernel.work(lambda tx: last_run(tx, "counted"), read_only=True)
    assert found is not None
    assert (found.at, found.state) == (NOON + DAY, {"seen": "2026f"})


async def test_a_running_engine_does_a_pass_whenever_it_is_due_and_again_after_it_failed(
    app: Postdate, clock: ManualClock
) -> None:
    async def fails_at_first() -> None:
        if len(counted.done) == 1:
            raise LookupError("not yet")

    counted = Counted(interval=A_MOMENT, does=fails_at_first)
    async with repeating(Periodic(app.kernel, [counted])):
        await until(lambda: len(counted.done) == 2)
        clock.advance(A_MOMENT)
        await until(lambda: len(counted.done) == 3)
    assert counted.done == [NOON, NOON, NOON + A_MOMENT]


async def test_a_pass_that_hangs_keeps_neither_claims_nor_a_stop_waiting(
    live: Postdate, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging, ran = Counted(does=asyncio.Event().wait), asyncio.Event()
    monkeypatch.setattr(live, "_passes", lambda: [hanging])

    @live.action("mail")
    async def mail(ctx: Context, payload: dict[str, str]) -> None:
        ran.set()

    async with running(live):
        await until(lambda: hanging.done)
        await live.schedule("mail", {}, at=await live.kernel.read_clock())
        await asyncio.wait_for(ran.wait(), 20)


async def test_a_single_tick_does_what_is_due_and_fires_what_that_has_queued(
    app: Postdate, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    @app.action("mail")
    async def mail(ctx: Context, payload: dict[str, str]) -> None:
        ran.append(payload["text"])

    async def schedules() -> None:
        await app.schedule("mail", {"text": "from the pass"}, at=NOON)

    counted = Counted(does=schedules)
    monkeypatch.setattr(app, "_passes", lambda: [counted])
    report = await app.tick()
    assert (ran, report.due_count) == (["from the pass"], 1)
    assert (await app.tick()).due_count == 0
    assert counted.done == [NOON]
