"""How does an engine run beside a server, in its event loop, and who hears that it failed?"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from traceback import format_exception
from typing import TYPE_CHECKING

import structlog

from postdate.clock import monotonic
from postdate.engine.waits import Waits
from postdate.errors import EngineCancelled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from postdate.engine.loop import Engine

_log = structlog.get_logger("postdate")

_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 30.0


class Background:
    """An engine in a task of its own, which is begun again whenever it fails.

    An error in a pass is the engine's own affair: it logs it and tries again. What arrives here has ended the engine.
    """

    def __init__(self, opened: Callable[[], AbstractAsyncContextManager[Engine]]) -> None:
        self._opened = opened
        self._stop = asyncio.Event()
        self._began = asyncio.Event()
        self._engine: Engine | None = None
        self._failure: Exception | None = None

    @property
    def error(self) -> Exception | None:
        """What the engine, or its last pass, failed with; None while all goes well."""
        if self._failure is None and self._engine is not None:
            return self._engine.error
        return self._failure

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run within the block, which is entered when the engine has begun.

        Raises what keeps the engine from beginning; and after the block what it failed with last, if it is still down.
        """
        task = asyncio.create_task(self._keep_running(), name="postdate-engine")
        beginning = asyncio.create_task(self._began.wait())
        try:
            await asyncio.wait([task, beginning], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                yield
        finally:
            beginning.cancel()
            self._stop.set()
            await asyncio.wait([task])
        if self._failure is not None:
            raise self._failure

    async def _keep_running(self) -> None:
        waits = Waits(_FIRST_PAUSE, _LONGEST_PAUSE)
        while not self._stop.is_set():
            began = monotonic()
            try:
                async with self._opened() as self._engine:
                    await self._engine.run(self._stop, began=self._begun)
            except asyncio.CancelledError:
                if not self._stop.is_set():
                    self._failed(EngineCancelled())
                raise
            except Exception as error:  # noqa: BLE001 - logged, kept, and the engine is begun again
                if not self._began.is_set():
                    self._failure = error
                    return
                self._failed(error)
                if monotonic() - began > _LONGEST_PAUSE:  # it did work in between
                    waits.reset()
                await self._stopped_within(waits.next())

    def _begun(self) -> None:
        self._failure = None
        self._began.set()

    def _failed(self, error: Exception) -> None:
        self._failure = error
        # as text: a host's log set-up may render an exception with its locals, and so with its secrets
        _log.error("the engine failed", traceback="".join(format_exception(error)))

    async def _stopped_within(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return
