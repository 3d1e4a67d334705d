"""Does a clock that steps, forward or back, make anything fire twice, early or never?"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from postdate import Context, Invalid, NotSent, Postdate, Status
from postdate.engine.alarm import Alarm
from tests.stories.conftest import NOON, running, until

if TYPE_CHECKING:
    from postdate.clock import ManualClock
    from postdate.testing.chaos.worker import SteppedClock

STEPS = [timedelta(minutes=5), timedelta(minutes=-5), timedelta(hours=-2), timedelta(days=3)]
AN_HOUR = timedelta(hours=1)


@pytest.mark.parametrize("step", STEPS, ids=str)
async def test_a_step_during_a_run_makes_it_fire_neither_twice_nor_in_vain(
    app: Postdate, clock: ManualClock, step: timedelta
) -> None:
    """SC33, SC34: the lease may seem over, or not even begun; the run settles by its token."""
    ran: list[str] = []

    @app.action("act", timeout=10)
    async def act(ctx: Context, payload: dict[str, str]) -> None:
        ran.append(payload["thing_id"])
        clock.advance(step)

    action = await app.schedule("act", {"thing_id": "first"}, at=NOON)
    await app.tick()
    assert (await app.get(action.id)).status is Status.PUBLISHED
    clock.move_to(NOON)
    for _ in range(3):
        await app.tick()
        clock.advance(AN_HOUR)
    assert ran == ["first"]


@pytest.mark.parametrize("step", STEPS, ids=str)
async def test_a_step_during_a_run_keeps_what_is_due_later_from_being_early(
    app: Postdate, clock: ManualClock, step: timedelta
) -> None:
    """SC33, SC34."""
    started: list[tuple[str, datetime]] = []

    @app.action("act")
    async def act(ctx: Context, payload: dict[str, str]) -> None:
        started.append((payload["thing_id"], ctx.now))
        if payload["thing_id"] == "first":
            clock.advance(step)

    await app.schedule("act", {"thing_id": "first"}, at=NOON)
    later = await app.schedule("act", {"thing_id": "later"}, at=NOON + AN_HOUR)
    await app.tick()
    clock.move_to(max(clock.now(), NOON + AN_HOUR))
    await app.tick()
    assert [name for name, _ in started] == ["first", "later"]
    assert started[1][1] >= later.publish_at


@pytest.mark.parametrize("step", STEPS, ids=str)
async def test_a_retry_waits_by_the_clock_that_there_is_when_it_is_written(
    app: Postdate, clock: ManualClock, step: timedelta
) -> None:
    """SC33: an hour of back-off stays one, and never grows by the step."""
    attempts: list[datetime] = []

    @app.action("act", auto_attempts=2)
    async def act(ctx: Context, payload: dict[str, object]) -> None:
        attempts.append(ctx.now)
        if ctx.attempt == 1:
            clock.advance(step)
            raise NotSent("busy", retry_after=3600)

    action = await app.schedule("act", {}, at=NOON)
    await app.tick()
    assert (await app.get(action.id)).next_attempt_at == NOON + step + AN_HOUR
    clock.move_to(NOON + step + AN_HOUR)
    await app.tick()
    assert attempts == [NOON, NOON + step + AN_HOUR]


async def test_a_running_engine_whose_clock_steps_back_goes_on_and_repeats_nothing(
    live: Postdate, stepped: SteppedClock
) -> None:
    """SC33: two hours back in the middle of a run; what is due by the new time fires at once."""
    ran: list[str] = []

    @live.action("act")
    async def act(ctx: Context, payload: dict[str, str]) -> None:
        ran.append(payload["thing_id"])
        if payload["thing_id"] == "first":
            stepped.off -= timedelta(hours=2)

    async with running(live):
        await until(lambda: live.kernel.wake)
        began = await live.kernel.read_clock()
        await live.schedule("act", {"thing_id": "first"}, at=began)
        await until(lambda: ran)
        held_back = await live.schedule("act", {"thing_id": "by the old time"}, at=began + timedelta(minutes=1))
        await live.schedule("act", {"thing_id": "second"}, at=stepped.now())
        await until(lambda: len(ran) == 2)
        assert (await live.get(held_back.id)).status is Status.QUEUED
        stepped.off += timedelta(hours=3)
        await live.schedule("act", {"thing_id": "third"}, at=stepped.now())
        await until(lambda: len(ran) == 4)
    assert ran[:2] == ["first", "second"]
    assert sorted(ran[2:]) == ["by the old time", "third"]


async def test_an_alarm_centuries_away_neither_rings_nor_breaks(clock: ManualClock) -> None:
    """SC59: 25 days are more milliseconds than 32 bits hold; the last instant is more seconds than a timer takes."""
    alarm = Alarm(clock)
    for due in (*(NOON + timedelta(days=days) for days in (60, 25)), datetime.max.replace(tzinfo=UTC)):
        alarm.set(due)
        await asyncio.sleep(0)
        assert not await alarm.wait(at_most=0)


async def test_what_is_far_away_waits_and_a_running_engine_does_not_mind(live: Postdate) -> None:
    """SC59."""
    ran: list[str] = []

    @live.action("act")
    async def act(ctx: Context, payload: dict[str, str]) -> None:
        ran.append(payload["thing_id"])

    now = await live.kernel.read_clock()
    days = {f"in {days} days": now + timedelta(days=days) for days in (25, 60)}
    far = {"in 2100": datetime(2100, 1, 1, tzinfo=UTC), "at the end": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)}
    for name, at in {**far, **days}.items():
        await live.schedule("act", {"thing_id": name}, at=at)
    async with running(live):
        await until(lambda: live.kernel.wake)
        for name in ("first", "second"):
            await live.schedule("act", {"thing_id": name}, at=await live.kernel.read_clock())
            await until(lambda: name in ran)  # noqa: B023 - it is waited for within the turn
    assert ran == ["first", "second"]
    assert len(await live.list(status="queued")) == len(days) + len(far)
    with pytest.raises(Invalid, match="at:"):
        await live.schedule("act", {}, at="10000-01-01T00:00:00Z")
