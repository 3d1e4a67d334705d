"""How fast does a queue empty, and in how much memory?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from postdate.bench.crew import Crew, Drained, Task, by_hand, with_engine
from postdate.bench.figure import Figure, compared
from postdate.bench.goals import goal
from postdate.bench.raw import raw_loop
from postdate.bench.subject import posts
from postdate.clock import host_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from postdate.bench.place import Place

BATCH = 500
"""How many the hand-written loop takes at once."""

_FILL = 5_000
_LONG_AGO = timedelta(minutes=30)
_LARGE_BATCHES = (1_000, 2_000)


def drain_figures(place: Place, *, rows: int, rounds: int, processes: int) -> Iterator[Figure]:
    """Measure the drain of one process, of one with larger batches, and of several, all in turns with the raw loop."""
    ours = Task(place=place, rows=rows, batch=BATCH)
    ways = {
        "raw": _Way(by_hand, ours),
        "drain": _Way(with_engine, ours),
        **{f"drain_batch_{batch}": _Way(with_engine, replace(ours, batch=batch)) for batch in _LARGE_BATCHES},
        **({f"drain_{processes}": _Way(with_engine, ours, processes)} if processes > 1 else {}),
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    with Crew(processes) as crew:
        for _ in range(rounds):
            for name, way in ways.items():
                rates[name].append(rows / _drained(crew, way).seconds)
    for name in list(ways)[1:]:
        other = rates["raw" if name == "drain" else "drain"]
        yield compared(name, rates[name], other, unit="actions/s", goal=goal(place.kind, name))


def memory_figures(place: Place, *, rows: int) -> Iterator[Figure]:
    """Measure the most memory that a process has which drains a long queue."""
    with Crew(1) as crew:
        drained = _drained(crew, _Way(with_engine, Task(place=place, rows=rows, batch=BATCH)))
    yield Figure(name="memory", value=drained.peak_mb, unit="MB", goal=goal(place.kind, "memory"))


@dataclass(frozen=True)
class _Way:
    """A way to drain."""

    worker: Callable[[Task, Any], None]
    task: Task
    processes: int = 1


def _drained(crew: Crew, way: _Way) -> Drained:
    """Fill the queue anew and drain it."""
    place, rows = way.task.place, way.task.rows
    place.empty()
    with raw_loop(place) as loop:
        for first in range(0, rows, _FILL):
            loop.insert(posts(first, min(_FILL, rows - first)), host_time() - _LONG_AGO)
    return crew.drain(way.worker, way.task, processes=way.processes)
