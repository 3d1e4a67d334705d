"""How does a synchronous test let time pass?"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from postdate.testing.travel import Journey, journey

if TYPE_CHECKING:
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

    def __call__(self, *, after: timedelta = timedelta(0), until: datetime | None = None) -> Journey:
        """Let `after` pass, or move to `until` (aware), and say what happened on the way.

        Raises `RuntimeError` in a coroutine, and where no app was named; what `travel` raises.
        """
        if _in_a_coroutine():
            raise RuntimeError("in a coroutine: await travel(app, to=...)")
        if not self.apps:
            raise RuntimeError("nothing can be due: name your app first, by postdate_app(app)")
        end = self._clock.now() + after if until is None else until
        return self._runner.run(journey(self.apps, self._clock, to=end))


def _in_a_coroutine() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
