"""How do many runs begin without holding everybody else up?"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from postdate.engine.run import Run

PORTION = 25
"""How many runs begin without the event loop doing anything else."""


class Beginning:
    """Begins runs in portions, between which others have their turn: the next claim, what writes, other tasks."""

    def __init__(self) -> None:
        """Start with nothing to begin."""
        self._runs: deque[Run] = deque()
        self._rest: asyncio.Task[None] | None = None

    async def add(self, runs: Iterable[Run]) -> None:
        """Begin the first of these, and the rest as time goes on."""
        self._runs.extend(runs)
        if self._rest is None or self._rest.done():
            self._begin_portion()
            self._rest = asyncio.create_task(self._begin_rest())
        await asyncio.sleep(0)

    async def until(self, enough: Callable[[], bool]) -> None:
        """Wait until there is enough, at most until all have begun."""
        while self._rest is not None and not (self._rest.done() or enough()):  # noqa: ASYNC110 - each turn of the event loop brings the next portion
            await asyncio.sleep(0)

    async def end(self) -> None:
        """Wait until all have begun."""
        if self._rest is not None:
            await self._rest

    def end_at_once(self) -> None:
        """Begin what has not begun, also for who is being cancelled: a run that may not begin gives its claim back."""
        while self._runs:
            self._begin_portion()

    async def _begin_rest(self) -> None:
        while self._runs:
            await asyncio.sleep(0)
            self._begin_portion()

    def _begin_portion(self) -> None:
        for _ in range(min(PORTION, len(self._runs))):
            self._runs.popleft().call()
