"""How fast are actions scheduled, one by one and many at once?"""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING

from postdate.bench.figure import Figure, MeasurementFailed, compared
from postdate.bench.goals import goal
from postdate.bench.raw import raw_loop
from postdate.bench.subject import ACTION_TYPE, TARGET, Post, application, new_action, posts
from postdate.clock import host_time, monotonic
from postdate.errors import PostdateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from postdate.app import Postdate
    from postdate.bench.place import Place
    from postdate.bench.raw import RawLoop

    _Schedule = Callable[[Sequence[Post]], None]

_MANY = 1_000
_SINGLES = 25
_ROWS_PER_SINGLE = 10
"""One by one takes its time: a tenth of the rows will do."""
_AHEAD = timedelta(days=30)


def enqueue_figures(place: Place, *, rows: int) -> Iterator[Figure]:
    """Measure `schedule_many` and `schedule`, each in turns with the raw loop, a set of posts at a time."""
    app = application(place, concurrency=1, ran=lambda _: None)
    try:
        with raw_loop(place) as loop:
            scheduling = _Scheduling(app, place, loop)
            for name, ours, raw, rows_of_it, size in (
                ("schedule_many", scheduling.many, scheduling.raw_many, rows, _MANY),
                ("schedule", scheduling.singly, scheduling.raw_singly, -(-rows // _ROWS_PER_SINGLE), _SINGLES),
            ):
                place.empty()
                rates = _rates(ours, raw, rows=rows_of_it, size=size)
                yield compared(name, *rates, unit="actions/s", goal=goal(place.kind, name))
    finally:
        app.kernel.database.close_sync()


class _Scheduling:
    """The ways to schedule a set of posts."""

    def __init__(self, app: Postdate, place: Place, loop: RawLoop) -> None:
        self._app = app
        self._place = place
        self._loop = loop
        self._at = host_time() + _AHEAD

    def many(self, wanted: Sequence[Post]) -> None:
        """Schedule them with one call."""
        news = [new_action(self._place, post, self._at) for post in wanted]
        for answer in self._app.sync.schedule_many(news):
            if isinstance(answer, PostdateError):
                raise MeasurementFailed(str(answer))

    def singly(self, wanted: Sequence[Post]) -> None:
        """Schedule them with a call each."""
        workspace, user = self._place.workspace, self._place.user
        for post in wanted:
            self._app.sync.schedule(ACTION_TYPE, post, at=self._at, target=TARGET, workspace=workspace, user=user)

    def raw_many(self, wanted: Sequence[Post]) -> None:
        """Insert them in one transaction."""
        self._loop.insert(wanted, self._at)

    def raw_singly(self, wanted: Sequence[Post]) -> None:
        """Insert them in a transaction each."""
        for post in wanted:
            self._loop.insert([post], self._at)


def _rates(ours: _Schedule, raw: _Schedule, *, rows: int, size: int) -> tuple[list[float], list[float]]:
    """Schedule in turns, a set of this size at a time, and return how many actions a second each set made of it."""
    number = count()
    size = min(size, rows)
    rates: tuple[list[float], list[float]] = [], []
    for warming in (True, *[False] * (rows // size)):
        for schedule, kept in zip((ours, raw), rates, strict=True):
            wanted = posts(size * next(number), size)
            began = monotonic()
            schedule(wanted)
            if not warming:
                kept.append(size / (monotonic() - began))
    return rates
