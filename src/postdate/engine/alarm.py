"""When must the engine look next?"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from postdate.clock import Clock

AHEAD = timedelta(milliseconds=30)
"""How long before an action is due the alarm rings: about what a claim takes where database and host have been idle."""

NEAR = AHEAD + timedelta(milliseconds=1)
"""Within this the alarm has rung, however inaccurate the timer: how far ahead an engine claims that goes on."""


class Alarm:
    """An in-memory timer that rings a little before the next action is due, so that it is claimed by then.

    Anybody may pull it forward, from any thread.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._rings = asyncio.Event()
        self._due: datetime | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set(self, due: datetime) -> None:
        """Ring `AHEAD` of `due` (UTC) at the latest. Safe from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._set, due)

    def ring(self) -> None:
        """Ring now."""
        self._rings.set()

    async def wait(self, *, at_most: float) -> bool:
        """Wait for the alarm or for `at_most` seconds; say whether it rang."""
        try:
            await asyncio.wait_for(self._rings.wait(), at_most)
        except TimeoutError:
            return False
        self._clear()
        return True

    def _clear(self) -> None:
        self._rings.clear()
        self._due = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, due: datetime) -> None:
        if self._due is not None and self._due <= due:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        wait = (due - self._clock.now() - AHEAD).total_seconds()
        self._timer = self._loop.call_later(max(wait, 0.0), self._rings.set)
