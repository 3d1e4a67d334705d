"""How do two transactions meet in a given order, without a sleep?"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import text

from postdate.clock import monotonic

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from sqlalchemy import Connection

    from postdate.testing.conformance.outsider import Outsider

A_WHILE = 30.0
"""Seconds after which a rival that neither waits nor ends is a failure."""

_WAITS = text("select wait_event_type = 'Lock' from pg_stat_activity where pid = :pid")


class Rival:
    """Somebody else's transaction on PostgreSQL, in a thread of its own. It commits when its work is done.

    Within the block `meet` waits until the rival has to wait for a lock of ours, or has ended; leaving the block
    waits for its end. `future` holds what came of it.
    """

    future: Future[Any]

    def __init__(self, outsider: Outsider, work: Callable[[Connection], Any]) -> None:
        self._outsider = outsider
        self._work = work
        self._pid = 0
        self._began = Event()
        self._open = ExitStack()

    def __enter__(self) -> Self:
        """Begin."""
        self.future = self._open.enter_context(ThreadPoolExecutor(1)).submit(self._run)
        assert self._began.wait(A_WHILE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wait for the end."""
        self._open.close()

    def meet(self) -> None:
        """Wait until the rival waits for a lock, or has ended."""
        until = monotonic() + A_WHILE
        with self._outsider.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as watching:
            while not (self.future.done() or watching.scalar(_WAITS, {"pid": self._pid})):
                assert monotonic() < until, "it neither waits nor ends"

    def _run(self) -> Any:
        try:
            with self._outsider.engine.connect() as connection:
                self._pid = connection.scalar(text("select pg_backend_pid()"))
                self._began.set()
                result = self._work(connection)
                connection.commit()
                return result
        finally:
            self._began.set()
