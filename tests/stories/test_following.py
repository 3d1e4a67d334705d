"""Does the engine's ear for changes let go of everything when it is told to stop, whatever it is doing just then?"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from postdate.store.changes import follow_changes
from postdate.store.database import Database
from postdate.store.names import Names

if TYPE_CHECKING:
    import pytest


def test_no_thread_outlives_the_event_loop(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver's thread that answers a closed loop dies of it, and takes a test elsewhere with it."""
    broken: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: broken.append(args.exc_value))
    before = set(threading.enumerate())

    async def follow(turns: int) -> None:
        following = asyncio.create_task(follow_changes(Database(sqlite_url), Names(), lambda: None))
        for _ in range(turns):
            await asyncio.sleep(0)
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following

    for turns in (*range(5), *range(5), *range(5), 20, 200):
        asyncio.run(follow(turns))
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    assert broken == []
