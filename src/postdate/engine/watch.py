"""How does the engine keep hearing of what other processes queue?

Nothing here is needed to be correct: what is missed, the next tick finds.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from postdate.engine.waits import Waits
from postdate.store.changes import follow_changes

if TYPE_CHECKING:
    from collections.abc import Callable

    from postdate.store.database import Database
    from postdate.store.names import Names

_log = structlog.get_logger("postdate")

_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 30.0


async def watch(database: Database, names: Names, changed: Callable[[], None]) -> None:
    """Call `changed` whenever another process may have queued something, until cancelled; reconnect as needed."""
    waits = Waits(_FIRST_PAUSE, _LONGEST_PAUSE)

    def heard() -> None:
        waits.reset()
        changed()

    while True:
        failure = None
        try:
            await follow_changes(database, names, heard)
        except Exception as error:  # noqa: BLE001 - logged, and the tick goes on without it
            failure = error
        pause = waits.next()
        if failure is not None:
            _log.warning("cannot hear of inserts elsewhere; the tick still finds them", error=str(failure), pause=pause)
        await asyncio.sleep(pause)
