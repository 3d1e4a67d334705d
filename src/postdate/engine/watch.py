"""Who tells the engine that another process has queued something?

Nothing here is needed to be correct: what a watcher misses, the next tick finds.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog
from sqlalchemy import text

from postdate.store.database import READ_ONLY

if TYPE_CHECKING:
    from collections.abc import Callable

    from postdate.store.database import Database
    from postdate.store.names import Names

_log = structlog.get_logger("postdate")

_LONGEST_PAUSE = 30.0
_LOOK_EVERY = 1.0


async def watch(database: Database, names: Names, changed: Callable[[], None]) -> None:
    """Call `changed` whenever another process may have queued something, until cancelled."""
    follow = _follow_data_version if database.is_sqlite else _follow_notifications
    pause = 1.0
    while True:
        try:
            await follow(database, names, changed)
        except Exception as error:  # noqa: BLE001 - the tick goes on without it
            _log.warning("cannot watch for inserts, the tick still finds them", error=str(error), pause=pause)
        changed()  # something may have been missed meanwhile
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


async def _follow_notifications(database: Database, names: Names, changed: Callable[[], None]) -> None:
    import psycopg  # noqa: PLC0415 - an extra: SQLite needs none

    conninfo = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
    async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as connection:
        await connection.execute(f"listen {names.channel}")
        changed()
        async for _ in connection.notifies():
            changed()


async def _follow_data_version(database: Database, _names: Names, changed: Callable[[], None]) -> None:
    """`PRAGMA data_version` rises with every commit of another connection, and reads no table."""
    async with database.async_engine.connect() as connection:
        await connection.execution_options(**{READ_ONLY: True}, isolation_level="AUTOCOMMIT")
        seen = None
        while True:
            version = (await connection.execute(text("PRAGMA data_version"))).scalar()
            if version != seen:
                seen = version
                changed()
            await asyncio.sleep(_LOOK_EVERY)
