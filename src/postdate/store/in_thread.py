"""How is SQLite worked with from the event loop?

It computes within the calling thread. So a whole transaction goes to a thread, and comes back as one answer; sent
there statement by statement, each would cost more than SQLite takes for it.
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextvars import copy_context
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from postdate.store.bounded import hear

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection, Engine

Result = TypeVar("Result")

GIVEN_UP = "postdate_given_up"
"""Execution option: says whether nobody waits any more for what runs on this connection."""

_NAME = "postdate-database"

_BETWEEN_INTERRUPTS = 0.05

_MOST_AT_ONCE = 8
"""How many calls run at once beside those in turn."""


class Threads:
    """Threads that call functions over connections of their own."""

    def __init__(self, engine: Engine) -> None:
        """Take connections from `engine`."""
        self._engine = engine
        self._pid = os.getpid()
        self._in_turn = ThreadPoolExecutor(1, thread_name_prefix=f"{_NAME}-in-turn")
        self._at_once = ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix=_NAME)

    @property
    def survived(self) -> bool:
        """Whether the threads are in this process: a fork leaves them behind."""
        return self._pid == os.getpid()

    async def call(self, function: Callable[[Connection], Result], *, in_turn: bool) -> Result:
        """Call the function in a thread. Calls in turn do not meet: SQLite would let one wait, and sleep too long.

        Where the awaiting task is cancelled, what runs is interrupted, and awaited until the task is cancelled again.
        Whatever becomes of it then, it begins no transaction any more.
        """
        call = _Call(self._engine, function)
        executor = self._in_turn if in_turn else self._at_once
        submitted = executor.submit(copy_context().run, call)
        answer = asyncio.wrap_future(submitted)
        answer.add_done_callback(hear)
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            if submitted.cancel():
                raise
            while not answer.done():  # between two statements there is nothing to interrupt
                call.give_up()
                await asyncio.wait([answer], timeout=_BETWEEN_INTERRUPTS)
            return answer.result()

    def close(self) -> None:
        """Let go of the threads once they have nothing to do."""
        for executor in (self._in_turn, self._at_once):
            executor.shutdown(wait=False)


class _Call(Generic[Result]):
    def __init__(self, engine: Engine, function: Callable[[Connection], Result]) -> None:
        self._engine = engine
        self._function = function
        self._driver: Any = None
        self._driving = Lock()
        self._is_given_up = False

    def __call__(self) -> Result:
        here = os.getpid(), self
        _under_way.add(here)
        try:
            return self._called()
        finally:
            _under_way.discard(here)

    def _called(self) -> Result:
        with self._engine.connect() as connection:
            self._driver = connection.connection.driver_connection
            try:
                return self._function(connection.execution_options(**{GIVEN_UP: lambda: self._is_given_up}))
            except StopIteration as error:  # which a future does not take
                raise RuntimeError("a function over a connection raised StopIteration") from error
            finally:
                with self._driving:  # the connection is another call's next
                    self._driver = None

    def give_up(self) -> None:
        """Let the statement that runs just now fail, and the next transaction, too.

        What waits for another program's transaction to end cannot be interrupted: it is refused when it has waited.
        """
        self._is_given_up = True
        with self._driving:
            if self._driver is not None:
                self._driver.interrupt()


_under_way: set[tuple[int, _Call[Any]]] = set()
"""The calls that run in threads, each with its process: a fork takes along what it knows of others."""


def calls_under_way() -> int:
    """Return how many calls run in threads of this process."""
    return sum(process == os.getpid() for process, _ in tuple(_under_way))


def require_wanted(connection: Connection) -> None:
    """Raise `CancelledError` where nobody waits any more for what would run in this transaction."""
    given_up = connection.get_execution_options().get(GIVEN_UP)
    if given_up is not None and given_up():
        raise CancelledError
