"""How does the database tell that something was queued elsewhere?"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiosqlite

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from postdate.store.database import Database
    from postdate.store.names import Names

_LOOK_EVERY = 1.0


async def follow_changes(database: Database, names: Names, changed: Callable[[], None]) -> None:
    """Call `changed` once following, and then whenever something may have been queued; until cancelled, or an error."""
    if database.is_sqlite:
        await _follow_data_version(str(database.url.database), changed)
    else:
        await _follow_notifications(database, names.channel, changed)


async def _follow_notifications(database: Database, channel: str, changed: Callable[[], None]) -> None:
    import psycopg  # noqa: PLC0415 - an extra: SQLite needs none

    conninfo = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
    bounds: dict[str, Any] = database.libpq_bounds
    async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True, **bounds) as connection:
        await connection.execute(f"listen {channel}")
        changed()
        async for _ in connection.notifies():
            changed()


async def _follow_data_version(path: str, changed: Callable[[], None]) -> None:
    """`PRAGMA data_version` rises with every commit of another connection, and reads no table."""
    async with _opened(path) as connection:
        seen = None
        while True:
            cursor = await connection.execute("PRAGMA data_version")
            version = await cursor.fetchone()
            if version != seen:
                seen = version
                changed()
            await asyncio.sleep(_LOOK_EVERY)


@asynccontextmanager
async def _opened(path: str) -> AsyncIterator[aiosqlite.Connection]:
    """Open the file; where that is cancelled, wait for the driver's thread, which would outlive the event loop."""
    opening = asyncio.ensure_future(aiosqlite.connect(path, isolation_level=None))
    try:
        connection = await asyncio.shield(opening)
    except asyncio.CancelledError:
        await (await opening).close()
        raise
    try:
        yield connection
    finally:
        await connection.close()
