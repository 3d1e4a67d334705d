"""Is the engine stopping?"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


class Stopping:
    """What a long handler looks at to end in time: true once the engine stops.

    `if ctx.stopping:` works anywhere. An async handler may `await ctx.stopping`; a plain function waits by
    `ctx.stopping.within(seconds)` where it would sleep.
    """

    def __init__(self) -> None:
        """Start with nobody stopping."""
        self._for_threads = threading.Event()
        self._for_tasks = asyncio.Event()

    def __bool__(self) -> bool:
        """Whether the engine is stopping. Safe from any thread."""
        return self._for_threads.is_set()

    def __await__(self) -> Generator[object, None, None]:
        """Wait until the engine stops, in its event loop."""
        yield from self._for_tasks.wait().__await__()

    def within(self, seconds: float) -> bool:
        """Wait at most so many seconds for the engine to stop, in a thread, and say whether it does."""
        return self._for_threads.wait(seconds)

    def begin(self) -> None:
        """Let it be known. To be called in the engine's event loop."""
        self._for_threads.set()
        self._for_tasks.set()
