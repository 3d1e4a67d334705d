"""How long after its instant does an action run?"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from postdate.bench.figure import Figure
from postdate.bench.goals import goal
from postdate.bench.subject import application, new_action, posts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from postdate.bench.place import Place
    from postdate.context import Context

_BUSY = 200
"""Actions a second."""
_CONCURRENCY = 100
_LEAD = timedelta(seconds=1)


def lateness_figures(place: Place, *, rows: int) -> Iterator[Figure]:
    """Measure actions one second apart, `rows` of them, and then as many seconds of a busy queue."""
    yield from _percentiles(place, "lateness", _lateness(place, rows=rows, per_second=1))
    yield from _percentiles(place, "lateness_busy", _lateness(place, rows=rows * _BUSY, per_second=_BUSY))


def _percentiles(place: Place, name: str, late: Sequence[float]) -> Iterator[Figure]:
    for percent in (50, 99):
        told = f"{name}_p{percent}"
        yield Figure(name=told, value=_percentile(late, percent), unit="ms", goal=goal(place.kind, told))


def _lateness(place: Place, *, rows: int, per_second: int) -> list[float]:
    """Return how late each run began, in milliseconds by the database's clock."""
    place.empty()
    return asyncio.run(_measured(place, rows=rows, per_second=per_second))


async def _measured(place: Place, *, rows: int, per_second: int) -> list[float]:
    late: list[float] = []
    stop = asyncio.Event()

    def ran(ctx: Context) -> None:
        late.append((app.kernel.clock.now() - ctx.action.publish_at) / timedelta(milliseconds=1))
        if len(late) == rows:
            stop.set()

    app = application(place, concurrency=_CONCURRENCY, ran=ran)
    try:
        await app.tick(types=[])  # connects, and reads the clock
        first = app.kernel.clock.now() + _LEAD
        instants = [first + timedelta(seconds=number / per_second) for number in range(rows)]
        wanted = zip(posts(0, rows), instants, strict=True)
        await app.schedule_many([new_action(place, post, at) for post, at in wanted])
        await app.run(stop)
    finally:
        await app.close()
    return late


def _percentile(values: Sequence[float], percent: int) -> float:
    """Return the smallest of the values that so many of a hundred do not exceed."""
    return sorted(values)[-(-len(values) * percent // 100) - 1]
