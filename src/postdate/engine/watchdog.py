"""Does the engine still move?

Looked at from a thread of its own, since what holds the engine up may hold up its event loop: a handler that blocks it,
or a call that never returns.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread, get_ident
from traceback import format_stack
from typing import TYPE_CHECKING

import structlog

from postdate.clock import monotonic
from postdate.errors import EngineStuck

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_log = structlog.get_logger("postdate")

LATE_AFTER = 60.0
"""Seconds without a sign of life, after one was to be expected, that are worth a line in the log."""

_LONGEST_LOOK = 5.0


class Watchdog:
    """Hears of each step of the engine, and tells when none comes: once as a warning, once as an error."""

    def __init__(self, *, stuck_after: float, stuck: Callable[[EngineStuck], None]) -> None:
        """`stuck` is called from another thread when nothing has moved for `stuck_after` seconds; 0 is never."""
        self._stuck_after = stuck_after or float("inf")
        self._late_after = min(LATE_AFTER, self._stuck_after / 2)
        self._stuck = stuck
        self._expected = monotonic()
        self._watched = get_ident()

    def moved(self, *, next_within: float = 0.0) -> None:
        """Note that the engine goes on; after `next_within` seconds the next sign of life is to be expected."""
        self._expected = monotonic() + next_within

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the thread that this is called in, as long as the block takes."""
        self._watched = get_ident()
        self.moved()
        over = Event()
        Thread(target=self._watch, args=(over,), name="postdate-watchdog", daemon=True).start()
        try:
            yield
        finally:
            over.set()

    def _watch(self, over: Event) -> None:
        told_late = told_stuck = False
        every = min(_LONGEST_LOOK, self._late_after / 4)
        looked = monotonic()
        while not over.wait(every):
            before, looked = looked, monotonic()
            stood_still = looked - before - every
            if stood_still > every:  # the whole process did, or its host: that is nobody's fault
                self._expected += stood_still
            silent = looked - self._expected
            if silent >= self._stuck_after and not told_stuck:
                told_stuck = True
                self._log_if_possible(silent)
                self._stuck(EngineStuck(silent))
            elif silent >= self._late_after and not told_late:
                told_late = True
                _log.warning("the engine is late", seconds=round(silent), at=self._where())
            elif silent < self._late_after and told_late:
                told_late = told_stuck = False
                _log.info("the engine goes on")

    def _log_if_possible(self, silent: float) -> None:
        """Log from one more thread: what is stuck may hold the lock of the log."""
        tell = partial(_log.error, "the engine is stuck", seconds=round(silent), at=self._where())
        telling = Thread(target=tell, name="postdate-watchdog-log", daemon=True)
        telling.start()
        telling.join(_LONGEST_LOOK)

    def _where(self) -> str:
        """Return what the watched thread is doing: the line that blocks the event loop, or the loop itself."""
        frame = sys._current_frames().get(self._watched)  # noqa: SLF001 - documented, for this purpose
        return "".join(format_stack(frame, limit=8)) if frame is not None else ""
