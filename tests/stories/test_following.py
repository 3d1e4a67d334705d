"""What does the engine's ear for changes hear, and does it let go of everything when it is told to stop?"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import aiosqlite
from sqlalchemy import create_engine, text

from postdate.store import changes
from postdate.store.changes import follow_changes
from postdate.store.database import Database
from postdate.store.names import Names
from tests.stories.conftest import until

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


async def test_on_sqlite_a_commit_of_another_connection_is_heard_and_a_look_without_one_wakes_nobody(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[int] = []
    looks = 0

    execute = aiosqlite.Connection.execute

    def counted(connection: aiosqlite.Connection, *asked: Any) -> Any:
        nonlocal looks
        looks += 1
        return execute(connection, *asked)

    async def some_looks() -> None:
        seen = looks
        await until(lambda: looks > seen + 3)

    monkeypatch.setattr(aiosqlite.Connection, "execute", counted)
    monkeypatch.setattr(changes, "_LOOK_EVERY", 0.0)
    other = create_engine(sqlite_url)
    following = asyncio.create_task(follow_changes(Database(sqlite_url), Names(), lambda: heard.append(looks)))
    await until(lambda: heard)
    for commits in (1, 2):
        await some_looks()
        assert len(heard) == commits
        with other.begin() as connection:
            connection.execute(text("create table if not exists other (id integer)"))
            connection.execute(text("insert into other values (1)"))
        await until(lambda already=commits: len(heard) > already)  # type: ignore[misc]
    following.cancel()
    await asyncio.wait([following])
    other.dispose()
