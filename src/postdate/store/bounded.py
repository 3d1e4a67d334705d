"""How long may a call to the database take, whatever driver and server do?

The bound is kept here and not by `statement_timeout`: a pooler in transaction mode refuses start-up parameters, and a
server that stands still keeps no time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from postdate.errors import DatabaseTimedOut

if TYPE_CHECKING:
    from collections.abc import Coroutine

Result = TypeVar("Result")

_log = structlog.get_logger("postdate")

_INSISTS = 3
_BETWEEN = 2.0
"""Seconds that the driver has to obey. The first time it asks the server, which may not answer."""


async def bounded(call: Coroutine[Any, Any, Result], *, seconds: float) -> Result:
    """Await a call to the database for so many seconds; raise `DatabaseTimedOut` when it takes longer.

    It may have been committed all the same: nobody heard.
    """
    task = asyncio.ensure_future(call)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        await _cut_off(task)
        raise
    if done:
        return task.result()
    await _cut_off(task)
    if task.done() and not task.cancelled() and task.exception() is None:
        return task.result()  # it had just gone well
    raise DatabaseTimedOut(seconds)


async def _cut_off(task: asyncio.Task[Any]) -> None:
    """Cancel, and insist: a driver waits for a server's word on a query that it asked to be cancelled."""
    for _ in range(_INSISTS):
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=_BETWEEN)
        if done:
            hear(task)
            return
    task.add_done_callback(hear)
    _log.error("a call to the database does not end though it was cut off: its connection is left to itself")


def hear(call: asyncio.Future[Any]) -> None:
    """Look at the error, lest asyncio complain of one that nobody waits for any more."""
    if not call.cancelled():
        call.exception()
