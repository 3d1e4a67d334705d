"""How long does a pass of the reconciler take, with nothing to do and with much, and in how much memory?"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, text

from postdate.bench.crew import Crew, Task
from postdate.bench.figure import Figure
from postdate.bench.goals import goal
from postdate.bench.subject import ACTION_TYPE, TARGET, application
from postdate.clock import ManualClock, host_time
from postdate.sources import SqlSource
from postdate.store.types import Instant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import BindParameter

    from postdate.bench.place import Place

_ONE_CHANGES_OF = 10
"""A third of what changes is new, a third has moved, and a third is not wanted any more."""
_AHEAD, _LONG_AGO = timedelta(days=30), timedelta(hours=1)
_AT_ONCE = 5_000


def reconcile_figures(place: Place, *, rows: int) -> Iterator[Figure]:
    """Measure a pass over a full queue that needs nothing, one with changes, and the memory of the process."""
    upstream, task = _Upstream(place), Task(place=place, rows=rows, batch=1)
    upstream.fill(rows)
    with Crew(1) as crew:
        crew.drain(first_pass, task, processes=1)
        idle = crew.drain(later_pass, task, processes=1)
        upstream.change(rows)
        changed = crew.drain(later_pass, task, processes=1)
    for name, value, unit in (
        ("reconcile_idle", idle.seconds, "s"),
        ("reconcile_changes", changed.seconds, "s"),
        ("reconcile_memory", changed.peak_mb, "MB"),
    ):
        yield Figure(name=name, value=value, unit=unit, goal=goal(place.kind, name))


def first_pass(task: Task, seat: Any) -> None:
    """Schedule everything, long enough ago that it may be withdrawn."""
    asyncio.run(_reconcile(task, seat, clock=ManualClock(host_time() - _LONG_AGO)))


def later_pass(task: Task, seat: Any) -> None:
    """Make the queue follow what has changed."""
    asyncio.run(_reconcile(task, seat))


async def _reconcile(task: Task, seat: Any, *, clock: ManualClock | None = None) -> None:
    app = application(task.place, concurrency=1, ran=lambda _: None)
    if clock is not None:
        app.kernel.clock = clock
    app.source("bench", _Upstream(task.place).source, workspaces=[task.place.workspace])
    await app.kernel.work(app.kernel.now, read_only=True)  # connects
    seat.wait_for_the_others()
    (done,) = (await app.reconcile()).parts
    if done.failed is None and done.refused == done.clashed == 0:
        seat.handled[seat.number] = done.inserted + done.replaced + sum(done.kept.values())
    await app.close()


class _Upstream:
    """A table of posts that should be scheduled."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._table = f"{place.names.qualifier(place.kind)}bench_upstream"

    @property
    def source(self) -> SqlSource:
        """What says that they should be."""
        at = "at" if self._place.kind == "postgresql" else "strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000000.0, 'unixepoch')"
        constant = f"'{ACTION_TYPE}' as action_type, '{TARGET}' as target, 'The café opens again' as text"
        return SqlSource(
            desired_sql=f"select {constant}, thing as thing_id, {at} as at from {self._table}",  # noqa: S608
            parents_sql=f"select thing as thing_id, false as finished from {self._table} where thing in :thing_ids",  # noqa: S608
        )

    def fill(self, rows: int) -> None:
        """Want so many posts."""
        instant = "timestamptz" if self._place.kind == "postgresql" else "integer"
        with self._place.begun() as tx:
            tx.execute(text(f"create table {self._table} (thing text primary key, at {instant} not null)"))
        self._add(0, rows)

    def change(self, rows: int) -> None:
        """Want a thirtieth more, another one at another time, and a third one no more."""
        few = max(1, rows // _ONE_CHANGES_OF // 3)
        gone = [f"post-{number}" for number in range(few)]
        moved = [f"post-{number}" for number in range(few, 2 * few)]
        with self._place.begun() as tx:
            among: BindParameter[Any] = bindparam("things", expanding=True)
            tx.execute(text(f"delete from {self._table} where thing in :things").bindparams(among), {"things": gone})  # noqa: S608
            at = bindparam("at", type_=Instant)
            move = text(f"update {self._table} set at = :at where thing in :things").bindparams(at, among)  # noqa: S608
            tx.execute(move, {"at": host_time() + 2 * _AHEAD, "things": moved})
        self._add(rows, few)

    def _add(self, first: int, count: int) -> None:
        at = host_time() + _AHEAD
        insert = text(f"insert into {self._table} values (:thing, :at)").bindparams(bindparam("at", type_=Instant))  # noqa: S608
        with self._place.begun() as tx:
            for start in range(first, first + count, _AT_ONCE):
                numbers = range(start, min(start + _AT_ONCE, first + count))
                tx.execute(insert, [{"thing": f"post-{number}", "at": at} for number in numbers])
