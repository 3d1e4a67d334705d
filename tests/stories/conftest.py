"""An app on a clock that the test moves, and one on the real clock whose engine runs."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from postdate import Postdate
from postdate.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

NOON = datetime(2026, 3, 8, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
async def app(database_url: str, clock: ManualClock) -> AsyncIterator[Postdate]:
    app = Postdate(database_url, clock=clock)
    yield app
    await app.close()


@pytest.fixture
async def live(database_url: str) -> AsyncIterator[Postdate]:
    app = Postdate(database_url)
    yield app
    await app.close()


@asynccontextmanager
async def running(app: Postdate) -> AsyncIterator[asyncio.Event]:
    """Run the app's engine within the block; the event stops it earlier."""
    stop = asyncio.Event()
    engine = asyncio.create_task(app.run(stop))
    try:
        yield stop
    finally:
        stop.set()
        await asyncio.wait_for(engine, 20)


async def until(condition: Callable[[], object], *, within: float = 20) -> None:
    """Give way to the event loop until the condition holds."""
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0)
