"""Does every run come to an outcome, and give its slot back, whatever its handler does?"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, model_validator

from postdate import (
    ActionType,
    Context,
    Deferred,
    InvalidPayload,
    NotSent,
    Postdate,
    Published,
    Reason,
    Rejected,
    Status,
)
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from postdate.clock import ManualClock


class Gone(Rejected):
    """An outcome of a host's, which forgets to tell its parent anything."""

    def __init__(self, code: int) -> None:
        self.code = code


class Later(Deferred):
    """A deferral to no instant."""

    def __init__(self) -> None:
        self.error = b"\x00"  # type: ignore[assignment]


class Broken(Rejected):
    """An outcome that cannot say what it is."""

    @property
    def error(self) -> str:  # type: ignore[override]
        raise RuntimeError("no words")

    def __init__(self, code: int) -> None: ...


class Receipt(Published):
    """A success of a host's, which says more than ours."""

    carrier = "pigeon"


class NoException(BaseException):
    """What `except Exception` lets through."""


async def gone(ctx: Context, payload: dict[str, object]) -> None:
    raise Gone(410)


async def later(ctx: Context, payload: dict[str, object]) -> None:
    raise Later


async def broken(ctx: Context, payload: dict[str, object]) -> None:
    raise Broken(410)


async def receipt(ctx: Context, payload: dict[str, object]) -> Published:
    return Receipt(provider_id="feather-1")


async def no_exception(ctx: Context, payload: dict[str, object]) -> None:
    raise NoException("awaited")


def no_exception_in_a_thread(ctx: Context, payload: dict[str, object]) -> None:
    raise NoException("called")


def cancelled_in_a_thread(ctx: Context, payload: dict[str, object]) -> None:
    raise asyncio.CancelledError("of a loop of its own")


async def yields_awaited(ctx: Context, payload: dict[str, object]) -> AsyncIterator[int]:
    yield 1


def yields(ctx: Context, payload: dict[str, object]) -> Iterator[int]:
    yield 1


async def leaves_work_behind(ctx: Context, payload: dict[str, object]) -> object:
    return asyncio.get_running_loop().create_future()


async def returns_a_class(ctx: Context, payload: dict[str, object]) -> object:
    return NotSent


@pytest.mark.parametrize(
    ("handler", "status", "reason", "said"),
    [
        (gone, Status.FAILED, Reason.REJECTED, "410"),
        (later, Status.QUEUED, None, r"b'\x00'"),
        (broken, Status.FAILED, Reason.REJECTED, "410"),
        (no_exception, Status.FAILED, Reason.UNCONFIRMED, "NoException: awaited"),
        (no_exception_in_a_thread, Status.FAILED, Reason.UNCONFIRMED, "NoException: called"),
        (cancelled_in_a_thread, Status.FAILED, Reason.UNCONFIRMED, "CancelledError: of a loop of its own"),
        (yields_awaited, Status.QUEUED, None, "generator"),
        (yields, Status.QUEUED, None, "generator"),
        (leaves_work_behind, Status.FAILED, Reason.UNCONFIRMED, "await"),
        (returns_a_class, Status.FAILED, Reason.UNCONFIRMED, "class NotSent"),
    ],
)
async def test_an_odd_handlers_run_is_settled_at_once_and_holds_nobody_up(
    app: Postdate, handler: Any, status: Status, reason: Reason | None, said: str
) -> None:
    app.action("odd", concurrency=1)(handler)
    done: list[str] = []

    @app.action("plain")
    async def plain(ctx: Context, payload: dict[str, object]) -> None:
        done.append("plain")

    odd = [await app.schedule("odd", {}, at=NOON) for _ in range(2)]
    other = await app.schedule("plain", {}, at=NOON)
    await asyncio.wait_for(app.tick(), 20)
    for action in odd:  # the second needs the slot of the first
        found = await app.get(action.id)
        assert (found.status, found.reason, found.attempt_count) == (status, reason, 1)
        assert said in (found.last_error or "")
    assert (await app.get(other.id)).status is Status.PUBLISHED


async def test_a_success_of_the_hosts_own_kind_is_one(app: Postdate) -> None:
    """P28: with the provider's id."""
    app.action("odd")(receipt)
    action = await app.schedule("odd", {}, at=NOON)
    await asyncio.wait_for(app.tick(), 20)
    found = await app.get(action.id)
    assert (found.status, found.provider_id) == (Status.PUBLISHED, "feather-1")


async def test_a_run_that_gets_no_thread_was_not_sent(app: Postdate, monkeypatch: pytest.MonkeyPatch) -> None:
    class NoThread(Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    @app.action("act", concurrency=1)
    def act(ctx: Context, payload: dict[str, object]) -> None: ...

    actions = [await app.schedule("act", {}, at=NOON) for _ in range(2)]
    with monkeypatch.context() as patched:
        patched.setattr("postdate.engine.run.Thread", NoThread)
        for _ in actions:
            await app.tick()
    for action in actions:
        found = await app.get(action.id)
        assert (found.status, found.last_error) == (Status.QUEUED, "can't start new thread")


async def test_a_payload_whose_validator_breaks_is_not_sent_and_gives_its_slot_back(app: Postdate) -> None:
    class Post(BaseModel):
        n: int = 0

        @model_validator(mode="after")
        def broken(self) -> Post:
            raise TypeError("no such thing")

    app.action("act")(returns_a_class)
    actions = [await app.schedule("act", {"n": n}, at=NOON) for n in range(2)]
    changed = app.on(app.settings.database_url, clock=app.kernel.clock)
    changed.kernel.registry = type(app.kernel.registry)()

    @changed.action("act", payload=Post, concurrency=1)
    async def act(ctx: Context, post: Post) -> None: ...

    await changed.tick()
    for action in actions:
        found = await app.get(action.id)
        assert (found.status, found.attempt_count) == (Status.QUEUED, 1)
        assert "TypeError: no such thing" in (found.last_error or "")
    with pytest.raises(InvalidPayload, match="TypeError: no such thing"):
        await changed.schedule("act", {}, at=NOON)
    await changed.close()


async def test_a_run_is_not_started_once_its_lease_ran_out(app: Postdate, clock: ManualClock) -> None:
    """A handler that blocks the event loop, or a process that was stopped: others may have taken the run over."""
    started: list[str] = []

    async def blocking(ctx: Context, payload: dict[str, object]) -> None:
        started.append(str(ctx.action.id))
        clock.advance(timedelta(hours=1))

    app.include(ActionType(name="act", handler=blocking))
    first, second = [await app.schedule("act", {}, at=NOON) for _ in range(2)]
    await app.tick()
    assert (await app.get(first.id)).status is Status.PUBLISHED
    found = await app.get(second.id)
    assert (found.status, found.attempt_count) == (Status.QUEUED, 0)
    assert started == [str(first.id)]
