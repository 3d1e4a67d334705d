"""How does a synchronous test let time pass?"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Self

from postdate.engine.loop import TickReport
from postdate.store.queue import next_due

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from types import TracebackType

    from postdate.app import Postdate
    from postdate.clock import ManualClock


class RunDue:
    """`run_due(after=timedelta(days=1))` moves the clock and fires what falls due on the way, each at its instant.

    Retries are fired too. It works beside whatever the test has running: on connections of its own, in an event loop
    of its own, which lasts as long as the `with` block.
    """

    def __init__(self, clock: ManualClock, *apps: Postdate) -> None:
        self.apps: list[Postdate] = list(apps)
        """Whose actions are fired."""
        self._clock = clock
        # A factory of its own keeps the runner from touching what other plugins hold to be the current loop.
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the event loop."""
        self._runner.close()

    def __call__(self, *, after: timedelta = timedelta(0), until: datetime | None = None) -> TickReport:
        """Let `after` pass, or move to `until` (aware), and say how many actions were due on the way.

        Raises `RuntimeError` in a coroutine, and where no app was named; ValueError for a time that is past.
        """
        if _in_a_coroutine():
            raise RuntimeError("in a coroutine: manual_clock.advance(...), then await app.tick()")
        if not self.apps:
            raise RuntimeError("nothing can be due: name your app first, by postdate_app(app)")
        end = self._clock.now() + after if until is None else until
        if end < self._clock.now():
            raise ValueError(f"the clock stands at {self._clock.now()} already")
        return self._runner.run(self._pass_time(end))

    async def _pass_time(self, end: datetime) -> TickReport:
        async with AsyncExitStack() as stack:
            apps = []
            for app in self.apps:
                own = app.on(app.settings.database_url, clock=self._clock)
                stack.push_async_callback(own.close)
                apps.append(own)
            reports = [await app.tick() for app in apps]
            while (due := await _earliest(apps)) is not None and self._clock.now() < due <= end:
                self._clock.move_to(due)
                reports += [await app.tick() for app in apps]
            if self._clock.now() < end:
                self._clock.move_to(end)
                reports += [await app.tick() for app in apps]
        return TickReport(
            now=end,
            due_count=sum(report.due_count for report in reports),
            recovered=sum(report.recovered for report in reports),
        )


async def _earliest(apps: Sequence[Postdate]) -> datetime | None:
    """Return when the next action of these apps is due."""
    found = [await app.kernel.work(partial(next_due, action_types=_names(app)), read_only=True) for app in apps]
    return min((due for due in found if due is not None), default=None)


def _names(app: Postdate) -> list[str]:
    return [action_type.name for action_type in app.kernel.registry]


def _in_a_coroutine() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
