"""What does the engine do now and then, beside firing what is due?

Each pass has the same skeleton: `run_once(now)` does the whole of it once, in as many transactions as it needs, such
that doing it twice comes to the same. When it is due, and that one process at a time does it, is decided here.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from traceback import format_exc
from typing import TYPE_CHECKING, Protocol

import structlog

from postdate.store.bounded import bounded
from postdate.store.heartbeat import heartbeat
from postdate.store.passes import alone_by_file, last_run, lock_file, note_run, try_alone
from postdate.store.transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from postdate.kernel import Kernel

_log = structlog.get_logger("postdate")

_AFTER_FAILURE = timedelta(minutes=1)
"""How long a pass that failed is left alone, where it is not due earlier."""

_TRIES = 5
_PAUSE_BETWEEN_TRIES = 0.2


class Pass(Protocol):
    """Something that is done every so often, by one process at a time."""

    @property
    def name(self) -> str:
        """Its name in `passes`, in logs and in reports."""

    @property
    def interval(self) -> timedelta:
        """How long after one run has begun the next one is due."""

    async def run_once(self, now: datetime) -> object:
        """Do it once, and return a report: what was found and done. What it raises is logged, and it is done again.

        It bounds each of its waits itself: as long as it goes on, no other pass of any process begins.
        """


class Periodic:
    """The passes of one engine, beside the claims, which they never keep waiting; one at a time."""

    def __init__(self, kernel: Kernel, passes: Sequence[Pass]) -> None:
        self._kernel = kernel
        self._passes = {each.name: each for each in passes}
        self._turns = asyncio.Lock()

    async def run(self) -> None:
        """Do each pass whenever it is due, until this is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for each in self._passes.values():
                tasks.create_task(self._repeat(each), name=f"postdate-{each.name}")

    async def run_due(self, now: datetime) -> Mapping[str, object]:
        """Do each pass once that is due at `now`, and return their reports by name: for a single tick."""
        reports = {}
        waits = await self._kernel.work(
            lambda tx: {name: _wait(tx, each=each, now=now) for name, each in self._passes.items()}, read_only=True
        )
        for each in [self._passes[name] for name, wait in waits.items() if wait <= timedelta(0)]:
            try:
                ran, report, _ = await self._do_if_due(each, now)
            except Exception:  # noqa: BLE001 - logged, and the next tick is a new chance
                _told(each)
            else:
                if ran:
                    reports[each.name] = report
        return reports

    async def _repeat(self, each: Pass) -> None:
        while True:
            try:
                wait = await self._turn(each, await self._kernel.read_clock())
            except Exception:  # noqa: BLE001 - logged, and the next turn is a new chance
                _told(each)
                wait = min(each.interval, _AFTER_FAILURE)
            await asyncio.sleep(wait.total_seconds())

    async def _turn(self, each: Pass, now: datetime) -> timedelta:
        """Do the pass if it is due, and return how long it is until the next look."""
        wait = await self._kernel.work(partial(_wait, each=each, now=now), read_only=True)
        return wait if wait > timedelta(0) else (await self._do_if_due(each, now))[2]

    async def _do_if_due(self, each: Pass, now: datetime) -> tuple[bool, object, timedelta]:
        """Do the pass if it is due and nobody else does it; say whether, what it came to, and when to look again."""
        async with self._turns, alone(self._kernel) as ours:
            if not ours:
                return False, None, min(each.interval, _AFTER_FAILURE)
            wait = await self._kernel.work(partial(_wait, each=each, now=now), read_only=True)
            if wait > timedelta(0):
                return False, None, wait
            report = await each.run_once(now)
            await self._kernel.work(lambda tx: note_run(tx, each.name, at=now))
            return True, report, each.interval


@asynccontextmanager
async def alone(kernel: Kernel) -> AsyncIterator[bool]:
    """Hold the passes' lock within the block; say whether nobody else has it.

    Where somebody has, it is tried for some seconds, between which nothing is held.
    """
    alone_once = _alone_by_file if kernel.database.is_sqlite else _alone_by_connection
    for tries in range(_TRIES):
        if tries:
            await asyncio.sleep(_PAUSE_BETWEEN_TRIES)
        async with alone_once(kernel) as ours:
            if ours:
                yield True
                return
    yield False


@asynccontextmanager
async def _alone_by_file(kernel: Kernel) -> AsyncIterator[bool]:
    with alone_by_file(await kernel.work(lock_file, read_only=True)) as ours:
        yield ours


@asynccontextmanager
async def _alone_by_connection(kernel: Kernel) -> AsyncIterator[bool]:
    """Hold it on a connection that does nothing else."""
    seconds = kernel.settings.database_timeout.total_seconds()

    def locked(begun: Connection) -> bool:
        return try_alone(Transaction.on(begun, kernel.names))

    async with kernel.database.async_engine.connect() as connection:
        yield await bounded(connection.run_sync(locked), seconds=seconds)


def _wait(tx: Transaction, *, each: Pass, now: datetime) -> timedelta:
    """Return how long it is until the pass is due; nothing, or less, where it is. During a hold it is not due."""
    if heartbeat(tx).held_at is not None:
        return min(each.interval, _AFTER_FAILURE)
    last = last_run(tx, each.name)
    if last is None or last.at > now:  # a clock that went back says nothing
        return timedelta(0)
    return last.at + each.interval - now


def _told(each: Pass) -> None:
    # as text: a host's log set-up may render an exception with its locals, and so with its secrets
    _log.warning("a periodic pass failed, and is done again later", **{"pass": each.name}, traceback=format_exc())
