"""How does a process end although something in it does not?"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from typing import TYPE_CHECKING

import structlog

from postdate.cli.failure import ExitCode
from postdate.clock import monotonic
from postdate.store.in_thread import NAME

if TYPE_CHECKING:
    from typing import NoReturn

    from postdate.errors import EngineStuck

_PATIENCE = 1.0
"""Seconds that what is left behind has to end when the process does; runs have had theirs."""

_log = structlog.get_logger("postdate")


def end_stuck(_error: EngineStuck) -> NoReturn:
    """End at once, from the watchdog's thread: leases keep what was running safe, and a supervisor begins anew."""
    _leave(ExitCode.STUCK)


async def end_tasks(code: ExitCode = ExitCode.DONE) -> None:
    """Cancel what is still there, as asyncio would at the end. What does not obey does not keep the process.

    Nor does a call to the database that goes on in its thread, in a hook that hangs. The process then ends with `code`,
    at once: nothing after the call takes place.
    """
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    deaf = (await asyncio.wait(left, timeout=_PATIENCE))[1] if left else ()
    if deaf:
        _log.error("ending although handlers go on", tasks=sorted(task.get_name() for task in deaf))
        _leave(code)
    if hanging := _hanging_threads():
        _log.error("ending although calls to the database go on", threads=hanging)
        _leave(code)


def _hanging_threads() -> list[str]:
    """Return the threads of the database that have not ended by now, for which Python would wait."""
    until = monotonic() + _PATIENCE
    threads = [each for each in threading.enumerate() if each.name.startswith(NAME)]
    for each in threads:
        each.join(max(until - monotonic(), 0.0))
    return sorted(each.name for each in threads if each.is_alive())


def _leave(code: ExitCode) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
