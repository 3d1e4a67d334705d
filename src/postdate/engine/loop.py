"""How does the engine go round: tick, alarm, claim, run, settle?"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from traceback import format_exc
from typing import TYPE_CHECKING

import structlog

from postdate.clock import monotonic
from postdate.engine.alarm import Alarm
from postdate.engine.dispatch import Dispatcher
from postdate.engine.endpoints import StoredEndpoints
from postdate.engine.periodic import Periodic
from postdate.engine.recover import Recovery
from postdate.engine.renew import Renewal
from postdate.engine.restore import RestoreWatch
from postdate.engine.rounds import LONGEST_PASS, Rounds
from postdate.engine.run import CUT_OFF_SECONDS, LOOKUP_SECONDS
from postdate.engine.settler import Settler
from postdate.engine.unhandled import UnhandledReport
from postdate.engine.watch import watch
from postdate.engine.watchdog import Watchdog
from postdate.errors import OutcomesUnwritten
from postdate.store.idempotency import purge_expired
from postdate.store.leases import lease_of
from postdate.store.pauses import release_held

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Sequence

    import httpx2

    from postdate.engine.periodic import Pass
    from postdate.errors import EngineStuck
    from postdate.kernel import Kernel
    from postdate.registry import ActionType
    from postdate.store.leases import Lease

_log = structlog.get_logger("postdate")

TICK = timedelta(minutes=1)
"""The polling interval: never faster (P35)."""

_PURGED_PER_TICK = 10_000
_PAUSE_AFTER_ERROR = 1.0
_LAST_CALL_SECONDS = 2.0
"""How long a stopping engine goes on with the pass that it is at, however short its grace."""
_WRITING_SECONDS = 10.0
"""How long a stopping engine tries to write what its runs have come to."""
_WRITING_SECONDS_OF_A_TICK = 60.0
"""How long a single pass tries."""


@dataclass(frozen=True, kw_only=True)
class TickReport:
    """What one tick did: how many actions it found due (P41), and how many lost leases it settled."""

    now: datetime
    due_count: int
    recovered: int
    held: bool = False
    """Whether the whole installation is on hold, so that nothing was looked at."""


def worker_name() -> str:
    """Return what this process calls itself in its claims: its host and its process id."""
    return f"{socket.gethostname()}:{os.getpid()}"


class Engine:
    """Fires what is due in one process. Any number of processes may run one each."""

    def __init__(
        self,
        kernel: Kernel,
        types: Sequence[ActionType],
        http: httpx2.AsyncClient,
        *,
        passes: Sequence[Pass] = (),
    ) -> None:
        self._kernel = kernel
        self._types = {action_type.name: action_type for action_type in types}
        self._worker = worker_name()
        self._alarm = Alarm(kernel.clock)
        self._settler = Settler(kernel, self._types, written=self._alarm.ring)
        self._dispatcher = Dispatcher(
            clock=kernel.clock,
            http=http,
            ended=self._settler.add,
            has_room=self._alarm.ring,
            endpoints=partial(StoredEndpoints, kernel),
        )
        self._recovery = Recovery(kernel, self._types, self._dispatcher, worker=self._worker, ours=self._leases)
        self._renewal = Renewal(kernel, self._dispatcher, lambda: self._settler.unwritten)
        self._unhandled = UnhandledReport(kernel, self._types)
        self._restore_watch = RestoreWatch(kernel)
        self._periodic = Periodic(kernel, passes)
        self._stopped = float("inf")
        """When stopping began, in seconds of the monotonic clock."""
        self._going: asyncio.Timeout | None = None
        """How long it goes round: once it stops, until its grace is over."""
        self._watchdog = Watchdog(stuck_after=kernel.settings.stuck_after.total_seconds(), stuck=self._stuck)
        self._rounds = Rounds(
            kernel,
            self._types,
            self._dispatcher,
            worker=self._worker,
            is_full=lambda: self._settler.is_full,
            moved=self._watchdog.moved,
        )
        self._on_stuck: Callable[[EngineStuck], None] | None = None
        self.error: Exception | None = None
        """What the last pass failed with; None where it went well."""

    async def run(
        self,
        stop: asyncio.Event,
        *,
        began: Callable[[], None] | None = None,
        stuck: Callable[[EngineStuck], None] | None = None,
    ) -> None:
        """Fire what is due until `stop` is set, then let what is running end within the grace time.

        Raises `NotConfigured` and `SchemaMismatch` before anything is claimed; `began` is called when that is past.
        `stuck` is called, from another thread, when nothing has moved for as long as the setting `stuck_after` says.
        """
        self._on_stuck = stuck
        with self._watchdog.watching():
            async with self._working():
                if began is not None:
                    began()
                self._kernel.wake = self._alarm.set
                watching = asyncio.create_task(self._listen())
                passing = asyncio.create_task(self._periodic.run(), name="postdate-passes")
                try:
                    await self._go_round_in_time(stop)
                finally:
                    self._kernel.wake = None
                    self._stop()
                    grace = max(self._stopped + self._grace - monotonic(), 0.0)
                    self._watchdog.moved(next_within=grace + CUT_OFF_SECONDS + _WRITING_SECONDS)
                    await _end(watching)
                    await _end(passing)
                    await self._dispatcher.drain(grace)

    async def run_once(self, now: datetime, *, stuck: Callable[[EngineStuck], None] | None = None) -> TickReport:
        """Do one tick and wait for everything it started: for cron hosts, and for tests that move the clock.

        `stuck` is called, from another thread, when it takes longer than its runs may, by the setting `stuck_after`.
        """
        self._on_stuck = stuck
        with nullcontext() if stuck is None else self._watchdog.watching():
            async with self._working():
                try:
                    return await self._one_pass(now)
                except Exception:
                    self._watchdog.moved(next_within=self._grace + CUT_OFF_SECONDS + _WRITING_SECONDS)
                    await self._dispatcher.drain(self._grace)  # what has begun is written all the same
                    raise

    async def _one_pass(self, now: datetime) -> TickReport:
        until = monotonic() + LONGEST_PASS.total_seconds()
        report = await self.tick(now)
        due_count = found = report.due_count
        if not report.held:
            if self._kernel.clock.leaps:  # a test's, at which the passes always find the same: what runs has ended
                await self._end_runs()
            await self._periodic.run_due(await self._kernel.read_clock())
            found += await self._rounds.claim_all(seen=self._restore_watch.seen)  # of what the passes have queued
            due_count = found
        while found or not self._dispatcher.idle:  # idle alone says little: what was started may have ended already
            await self._end_runs()
            found = await self._rounds.claim_all(seen=self._restore_watch.seen) if monotonic() < until else 0
            due_count += found
        return replace(report, due_count=due_count)

    async def _end_runs(self) -> None:
        self._watchdog.moved(next_within=self._longest_run() + _WRITING_SECONDS_OF_A_TICK)
        await self._dispatcher.drain()
        await self._write_all()

    def _longest_run(self) -> float:
        longest = max((each.timeout.total_seconds() for each in self._types.values()), default=0.0)
        return longest + LOOKUP_SECONDS + 2 * CUT_OFF_SECONDS

    async def _write_all(self) -> None:
        """Wait until everything is written. Raises `OutcomesUnwritten` where the database is away for too long."""
        try:
            await asyncio.wait_for(self._settler.drain(), _WRITING_SECONDS_OF_A_TICK)
        except TimeoutError:
            raise OutcomesUnwritten(len(self._settler.unwritten)) from None

    async def tick(self, now: datetime) -> TickReport:
        """Settle lost leases, start what is due, forget expired idempotency keys; nothing of it during a hold."""
        if await self._restore_watch.run_once(now) is not None:
            self._rounds.bar()
            return TickReport(now=now, due_count=0, recovered=0, held=True)
        await self._kernel.work(release_held)  # what an ended pause has left behind
        recovery = await self._recovery.run_once(now)
        due_count = await self._rounds.claim_all(seen=self._restore_watch.seen)
        await self._kernel.work(lambda tx: purge_expired(tx, now=now, limit=_PURGED_PER_TICK))
        await self._unhandled.run_once(now)
        return TickReport(now=now, due_count=due_count, recovered=recovery.recovered)

    @asynccontextmanager
    async def _working(self) -> AsyncIterator[None]:
        for action_type in self._types.values():
            if action_type.configured is not None:
                action_type.configured()
        await self._kernel.work(self._kernel.now, read_only=True)  # whatever the clock, for this checks the schema
        settling = asyncio.create_task(self._settler.run(), name="postdate-settler")
        renewing = asyncio.create_task(self._renewal.run(), name="postdate-renewal")
        try:
            yield
        finally:
            await self._write_the_rest()
            await _end(renewing)
            await _end(settling)

    async def _write_the_rest(self) -> None:
        try:
            async with asyncio.timeout(_WRITING_SECONDS):
                await self._settler.drain()
                await self._rounds.hand_back()
        except Exception as error:  # noqa: BLE001 - logged; what led here is what is raised
            missing = len(self._settler.unwritten)
            _log.error("stopped before everything was written", outcomes=missing, error=str(error) or "out of time")

    def _leases(self) -> Collection[Lease]:
        running = {lease_of(run.claimed) for run in self._dispatcher.running}
        return running | {lease_of(claimed) for claimed in self._settler.unwritten}

    async def _listen(self) -> None:
        if self._kernel.settings.listen:
            await watch(self._kernel.database, self._kernel.names, self._alarm.ring)

    def _stuck(self, error: EngineStuck) -> None:
        self.error = error
        if self._on_stuck is not None:
            self._on_stuck(error)

    def _stop(self) -> None:
        if not self._dispatcher.stopping:
            self._stopped = monotonic()
            self._dispatcher.stopping.begin()
            if self._going is not None:
                last_call = max(self._grace, _LAST_CALL_SECONDS)
                self._going.reschedule(asyncio.get_running_loop().time() + last_call)
        self._alarm.ring()

    @property
    def _grace(self) -> float:
        return self._kernel.settings.stop_grace.total_seconds()

    async def _go_round_in_time(self, stop: asyncio.Event) -> None:
        """Go round until `stop` is set; a call to a silent database is not waited for when the grace is over."""
        try:
            async with asyncio.timeout(None) as self._going:
                await self._go_round(stop)
        except TimeoutError:
            if self._going is None or not self._going.expired():  # another's
                raise
            _log.warning("the database does not answer: stopping without it")
        finally:
            self._going = None

    async def _go_round(self, stop: asyncio.Event) -> None:
        stopping = asyncio.create_task(stop.wait())
        stopping.add_done_callback(lambda _: self._stop())
        next_tick = monotonic()
        while not stop.is_set():
            self._settler.require_alive()
            self._watchdog.moved()
            try:
                if monotonic() >= next_tick:
                    began = monotonic()
                    await self.tick(await self._kernel.read_clock())
                    next_tick = began + TICK.total_seconds()
                else:
                    await self._rounds.claim_all(seen=self._restore_watch.seen)
                if (look_at := await self._rounds.next_look()) is not None:
                    self._alarm.set(look_at)
            except Exception as error:  # noqa: BLE001 - logged, and the next pass is a new chance
                self.error = error
                # as text: a host's log set-up may render an exception with its locals, and so with its secrets
                _log.warning("a pass failed, trying again", traceback=format_exc(), pause=_PAUSE_AFTER_ERROR)
                await asyncio.wait([stopping], timeout=_PAUSE_AFTER_ERROR)
            else:
                self.error = None
                idle = max(next_tick - monotonic(), 0.0)
                self._watchdog.moved(next_within=idle)
                await self._alarm.wait(at_most=idle)


async def _end(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for its end, whatever it ends with: that was told already."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()
