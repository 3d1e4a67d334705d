"""How do several processes drain one queue at once, and how long does that take?

They are new interpreters, started once: what is measured later is what a process does that has been running for long.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import resource
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from postdate.bench import raw
from postdate.bench.figure import MeasurementFailed
from postdate.bench.subject import application
from postdate.clock import monotonic
from postdate.engine.own_process import set_up_process

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from types import TracebackType

    from postdate.bench.place import Place
    from postdate.context import Context

_LOOK_EVERY = 0.005
_SPAWNED = multiprocessing.get_context("spawn")  # forked, one would inherit this process's connections and memory


@dataclass(frozen=True, kw_only=True)
class Task:
    """What each process is told to drain."""

    place: Place
    rows: int
    """How many are due in all."""
    batch: int
    """How many are taken at once."""

    @property
    def slots(self) -> int:
        """How many an engine has: so many more that it claims the next batch while the last one runs.

        On SQLite all of the next: there the claim computes in a thread beside the event loop.
        """
        return self.batch * 2 if self.place.kind == "sqlite" else self.batch * 8 // 5


@dataclass(frozen=True, kw_only=True)
class Drained:
    """How a queue was drained."""

    seconds: float
    peak_mb: float
    """The most memory that one of the processes has had since it was started, in MB."""


@dataclass(frozen=True, kw_only=True)
class _Seat:
    """What a process has to talk with the others."""

    number: int
    handled: Any
    """How many each process has handled so far: shared memory."""
    orders: Connection

    def wait_for_the_others(self) -> None:
        """Say that this one is ready, and wait until all are."""
        self.orders.send(None)
        self.orders.recv()


def with_engine(task: Task, seat: _Seat) -> None:
    """Drain with the engine, until nobody has anything left to handle."""
    asyncio.run(_run_engine(task, seat))


async def _run_engine(task: Task, seat: _Seat) -> None:
    def ran(_: Context) -> None:
        seat.handled[seat.number] += 1

    app = application(task.place, concurrency=task.slots, ran=ran)
    await app.tick(types=[])  # connects
    seat.wait_for_the_others()
    stop = asyncio.Event()
    running = asyncio.create_task(app.run(stop))
    while sum(seat.handled) < task.rows and not running.done():  # noqa: ASYNC110 - other processes send no event
        await asyncio.sleep(_LOOK_EVERY)
    stop.set()
    await running
    await app.close()


def by_hand(task: Task, seat: _Seat) -> None:
    """Drain with the hand-written loop."""
    with raw.raw_loop(task.place) as loop:
        seat.wait_for_the_others()
        seat.handled[seat.number] = raw.drain(loop, task.batch)


class Crew:
    """Processes that drain together, as long as the `with` block lasts."""

    def __init__(self, size: int) -> None:
        self._handled = _SPAWNED.Array("q", size, lock=False)
        self._pipes: list[Connection] = []
        self._processes = []
        for number in range(size):
            here, there = _SPAWNED.Pipe()
            seat = _Seat(number=number, handled=self._handled, orders=there)
            self._pipes.append(here)
            self._processes.append(_SPAWNED.Process(target=_serve, args=(seat,), daemon=True))

    def __enter__(self) -> Self:
        """Start the processes."""
        for process in self._processes:
            process.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Let the processes end; at once where something went wrong."""
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            if error is None:
                pipe.send(None)
            else:
                process.terminate()
            process.join()
            process.close()
            pipe.close()

    def drain(self, worker: Callable[[Task, _Seat], None], task: Task, *, processes: int) -> Drained:
        """Let so many of the processes drain what is due.

        Raises `MeasurementFailed` where one of them fails, or where they do not handle each action once.
        """
        chosen = self._pipes[:processes]
        for number in range(len(self._pipes)):
            self._handled[number] = 0
        try:
            for pipe in chosen:
                pipe.send((worker, task))
            for pipe in chosen:
                pipe.recv()
            began = monotonic()
            for pipe in chosen:
                pipe.send(None)
            ended = [pipe.recv() for pipe in chosen]
        except (EOFError, OSError):
            raise MeasurementFailed("a process ended before its time") from None
        if sum(self._handled) != task.rows:
            raise MeasurementFailed(f"{sum(self._handled)} of {task.rows} actions were handled")
        return Drained(seconds=max(end for end, _ in ended) - began, peak_mb=max(peak for _, peak in ended))


def _serve(seat: _Seat) -> None:
    """Do what is ordered until there is nothing more to do, set up as a worker of ours."""
    set_up_process()
    while (order := seat.orders.recv()) is not None:
        worker, task = order
        worker(task, seat)
        seat.orders.send((monotonic(), _peak_mb()))


def _peak_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3  # bytes there, KiB elsewhere
