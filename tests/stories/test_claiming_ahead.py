"""Does what an engine waits for begin at its instant: claimed by then, and not a moment before?"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import select

from postdate import Context, Postdate, Status
from postdate.engine.alarm import AHEAD
from tests.stories.conftest import NOON, running, until

if TYPE_CHECKING:
    from postdate.clock import ManualClock

SOON = NOON + AHEAD / 2


@pytest.fixture
def ran(app: Postdate) -> list[datetime]:
    at: list[datetime] = []

    @app.action("act")
    async def act(ctx: Context, payload: dict[str, object]) -> None:
        at.append(ctx.now)

    return at


async def claimed(app: Postdate) -> None:
    while not await app.list(status=Status.SUBMITTED):
        await asyncio.sleep(0)


async def test_it_is_claimed_ahead_and_begins_at_its_instant(
    app: Postdate, clock: ManualClock, ran: list[datetime]
) -> None:
    """P35: the alarm fires to the millisecond; a claim alone takes longer."""
    action = await app.schedule("act", {}, at=SOON)
    async with running(app):
        await claimed(app)
        clock.move_to(SOON - timedelta(microseconds=1))
        assert (await app.get(action.id)).submitted_at == SOON
        assert ran == []
        clock.move_to(SOON)
        await until(lambda: ran)
    assert ran == [SOON]
    assert (await app.get(action.id)).attempt_count == 1


async def test_what_is_claimed_ahead_goes_back_when_the_engine_stops_before_its_instant(
    app: Postdate, ran: list[datetime]
) -> None:
    action = await app.schedule("act", {}, at=SOON)
    async with running(app):
        await claimed(app)
    back = await app.get(action.id)
    assert (back.status, back.attempt_count, ran) == (Status.QUEUED, 0, [])


async def test_what_is_due_shortly_after_is_claimed_with_it(
    app: Postdate, clock: ManualClock, ran: list[datetime]
) -> None:
    """P35: in one round, for where instants come close upon each other none may wait for the next."""
    later = SOON + AHEAD / 4
    for instant in (SOON, later):
        await app.schedule("act", {}, at=instant)
    async with running(app):
        await claimed(app)
        tokens = await app.kernel.work(lambda tx: tx.execute(select(tx.tables.queue.c.lease_token)).scalars().all())
        assert len(tokens) == 2
        assert len(set(tokens)) == 1
        clock.move_to(SOON)
        await until(lambda: ran)
        assert ran == [SOON]
        clock.move_to(later)
        await until(lambda: len(ran) == 2)
    assert ran == [SOON, later]


async def test_a_claim_ahead_that_is_handed_back_unheard_does_not_begin_early_either(
    app: Postdate, clock: ManualClock, ran: list[datetime], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is handed back is due when it was before."""
    action = await app.schedule("act", {}, at=SOON)
    lost: list[Any] = []
    work = app.kernel.work

    async def unheard(function: Any, *, read_only: bool = False) -> Any:
        answer = await work(function, read_only=read_only)
        if getattr(answer, "runnable", ()) and not lost:
            lost.append(answer)
            raise ConnectionResetError("lost after the commit")
        return answer

    monkeypatch.setattr(app.kernel, "work", unheard)
    monkeypatch.setattr("postdate.engine.loop._PAUSE_AFTER_ERROR", 0.0)
    async with running(app):
        while len(await app.history(action.id)) < 2:
            await asyncio.sleep(0)
        while (await app.get(action.id)).status is Status.QUEUED:
            await asyncio.sleep(0)
        clock.move_to(SOON)
        await until(lambda: ran)
    assert ran == [SOON]


async def test_nothing_is_claimed_ahead_by_a_single_pass(app: Postdate, ran: list[datetime]) -> None:
    action = await app.schedule("act", {}, at=SOON)
    assert (await app.tick()).due_count == 0
    assert ((await app.get(action.id)).status, ran) == (Status.QUEUED, [])


async def test_what_is_claimed_ahead_goes_back_when_the_engine_is_cancelled_before_its_instant(
    app: Postdate, ran: list[datetime]
) -> None:
    """Not only by its stop event: a host may end its tasks."""
    action = await app.schedule("act", {}, at=SOON)
    engine = asyncio.create_task(app.run(asyncio.Event()))
    await claimed(app)
    engine.cancel()
    await asyncio.wait([engine])
    back = await app.get(action.id)
    assert (back.status, back.attempt_count, ran) == (Status.QUEUED, 0, [])


async def test_what_is_due_meanwhile_waits_for_nobody(app: Postdate, ran: list[datetime]) -> None:
    """P35: not for the instant of another action, and though it came in after that was claimed."""
    await app.schedule("act", {}, at=SOON)
    async with running(app):
        await claimed(app)
        now = await app.schedule("act", {}, at=NOON)
        await until(lambda: ran)
        assert ran == [NOON]
        assert (await app.get(now.id)).submitted_at == NOON


async def test_by_a_clock_that_is_set_back_meanwhile_it_does_not_begin_early_either(
    app: Postdate, clock: ManualClock, ran: list[datetime]
) -> None:
    action = await app.schedule("act", {}, at=SOON)
    async with running(app):
        await claimed(app)
        clock.move_to(NOON - timedelta(minutes=5))
        while (await app.get(action.id)).status is not Status.QUEUED:
            await asyncio.sleep(0)
        back = await app.get(action.id)
        assert (back.next_attempt_at, back.attempt_count, ran) == (None, 0, [])
        clock.move_to(SOON)
        await app.schedule("act", {}, at=SOON)  # which makes the engine look
        await until(lambda: len(ran) == 2)
    assert ran == [SOON, SOON]
