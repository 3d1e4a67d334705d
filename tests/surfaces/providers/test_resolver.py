"""Do names that are never resolved keep others waiting?"""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from threading import Event, active_count
from typing import TYPE_CHECKING, Any

import pytest

from postdate.domain.outcome import NotSent
from postdate.providers.http import http_client
from postdate.providers.resolver import AT_ONCE, SystemResolver
from postdate.providers.webhook import CallWebhook, Webhook
from postdate.settings import Settings
from tests.surfaces.providers.contexts import context

if TYPE_CHECKING:
    from collections.abc import Iterator

SLOW = 20
"""As many as run at once of one action type."""


@pytest.fixture
def dawdling(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Let names that begin with `slow` go unanswered until the test ends, and tell which were asked for."""
    ended, asked, system = Event(), [], socket.getaddrinfo

    def getaddrinfo(host: str, *rest: Any, **options: Any) -> Any:
        asked.append(host)
        if host.startswith("slow"):
            ended.wait(60)
            raise socket.gaierror(socket.EAI_AGAIN, "given up")
        return system("127.0.0.1" if host == "quick.test" else host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield asked
    ended.set()


async def test_names_that_nobody_answers_for_take_no_thread_from_the_others(dawdling: list[str]) -> None:
    resolve = SystemResolver()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    waiting = [asyncio.create_task(resolve(f"slow{n}.test", 443)) for n in range(SLOW)]
    assert await asyncio.wait_for(resolve("quick.test", 443), 30) == ["127.0.0.1"]
    assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 30) == "free"
    assert len(dawdling) == SLOW + 1
    for each in waiting:
        each.cancel()
    assert await asyncio.wait_for(resolve("quick.test", 443), 30) == ["127.0.0.1"]


async def test_what_was_given_up_counts_until_the_system_gives_it_up_too(dawdling: list[str]) -> None:
    resolve, before = SystemResolver(at_once=3), active_count()
    for n in range(3):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(resolve(f"slow{n}.test", 443), 0.01)
    with pytest.raises(OSError, match="3 names are being resolved already"):
        await resolve("quick.test", 443)
    assert active_count() <= before + 3


async def test_a_call_that_finds_no_place_is_not_sent_and_tried_again(dawdling: list[str]) -> None:
    resolve = SystemResolver(at_once=1)
    waiting = asyncio.create_task(resolve("slow.test", 443))
    await asyncio.sleep(0)
    async with http_client(Settings(), resolve=resolve) as http:
        with pytest.raises(NotSent, match="1 names are being resolved already"):
            await Webhook().call(context(http), CallWebhook(url="https://quick.test/"))
    waiting.cancel()


async def test_what_the_system_does_not_know_is_told_as_it_says() -> None:
    resolve = SystemResolver()
    with pytest.raises(OSError, match=r"not known|No address|failure"):
        await resolve("nowhere.invalid", 443)
    with pytest.raises(UnicodeError):
        await resolve("a" * 64 + ".test", 443)
    assert await resolve("127.0.0.1", AT_ONCE) == ["127.0.0.1"]
