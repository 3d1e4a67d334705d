"""When does the alarm ring that more than one hand sets?"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from postdate.clock import ManualClock
from postdate.engine.alarm import AHEAD, Alarm

NOON = datetime(2026, 3, 8, 12, tzinfo=UTC)
CENTURY = timedelta(days=36_500)


async def settled() -> None:
    """Let the loop come to what other threads asked of it."""
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.fixture
async def alarm() -> Alarm:
    return Alarm(ManualClock(NOON))


async def test_the_earliest_of_several_instants_rings(alarm: Alarm) -> None:
    alarm.set(NOON + CENTURY)
    await settled()
    alarm.set(NOON)
    assert await alarm.wait(at_most=20)


async def test_it_rings_a_little_ahead_so_that_what_is_due_is_claimed_by_then(alarm: Alarm) -> None:
    alarm.set(NOON + AHEAD)
    await settled()
    assert await alarm.wait(at_most=20)


async def test_a_later_instant_puts_off_nothing(alarm: Alarm) -> None:
    alarm.set(NOON + AHEAD + timedelta(milliseconds=1))
    alarm.set(NOON + CENTURY)
    assert await alarm.wait(at_most=20)


async def test_what_has_rung_is_over_and_the_next_is_set_anew(alarm: Alarm) -> None:
    alarm.set(NOON)
    assert await alarm.wait(at_most=20)
    assert not await alarm.wait(at_most=0)
    alarm.set(NOON + AHEAD + timedelta(milliseconds=1))  # later than the one that has rung
    assert await alarm.wait(at_most=20)


def test_setting_it_when_its_loop_is_over_does_nothing() -> None:
    """A verb in another thread may come a moment too late, and must not fail over it."""

    async def made() -> Alarm:
        return Alarm(ManualClock(NOON))

    asyncio.run(made()).set(NOON)
