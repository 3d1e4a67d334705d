"""How does a process end although something in it does not?"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

import structlog

from postdate.cli.failure import ExitCode
from postdate.clock import monotonic
from postdate.store.in_thread import calls_under_way

if TYPE_CHECKING:
    from typing import NoReturn

    from postdate.errors import EngineStuck

_PATIENCE = 1.0
"""Seconds that what is left behind has to end when the process does; runs have had theirs."""

_A_LOOK = 0.01

_log = structlog.get_logger("postdate")


def end_stuck(_error: EngineStuck) -> NoReturn:
    """End at once, from the watchdog's thread: leases keep what was running safe, and a supervisor begins anew."""
    _leave(ExitCode.STUCK)


async def end_the_rest(code: ExitCode = ExitCode.DONE) -> None:
    """Cancel the tasks that are still there, as asyncio would at the end. What does not obey does not keep the process.

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
    until = monotonic() + _PATIENCE
    while calls_under_way():  # for whose threads Python would wait
        if monotonic() >= until:
            _log.error("ending although calls to the database go on", calls=calls_under_way())
            _leave(code)
        await asyncio.sleep(_A_LOOK)


def _leave(code: ExitCode) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
