"""Which runs have taken longer than their type allows?"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable


class TimeLimit:
    """Calls back for what takes longer than so many seconds.

    Who began first is over first, so one timer does for all: nearly every run ends long before, and a timer for each
    would cost more than running it.
    """

    def __init__(self, seconds: float) -> None:
        """Start with nothing that is limited."""
        self.seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._limited: dict[Hashable, tuple[float, Callable[[], None]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, what: Hashable, over: Callable[[], None]) -> None:
        """Call `over()` unless `end` is called in time. Nothing may be in here twice."""
        self._limited[what] = self._loop.time() + self.seconds, over
        if self._timer is None:
            self._timer = self._loop.call_later(self.seconds, self._look)

    def end(self, what: Hashable) -> None:
        """Let it be; nothing happens where its time is over already."""
        self._limited.pop(what, None)

    def _look(self) -> None:
        self._timer = None
        while self._limited:
            what, (until, over) = next(iter(self._limited.items()))
            if until > self._loop.time():
                self._timer = self._loop.call_at(until, self._look)
                return
            del self._limited[what]
            over()
