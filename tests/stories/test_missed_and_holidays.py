"""Whose missed occurrences are told, since when, and what does a calendar do that has no days any more?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from postdate import Context, Postdate, Status
from postdate.testing.travel import travel
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from postdate.clock import ManualClock

A_DAY = timedelta(days=1)
NINE = NOON - timedelta(hours=3)


@pytest.fixture(autouse=True)
def _registered(app: Postdate) -> None:
    @app.action("post")
    async def post(ctx: Context, payload: dict[str, object]) -> None: ...


async def test_what_was_missed_is_told_of_one_rule_or_of_all_and_from_an_instant_on(
    app: Postdate, clock: ManualClock
) -> None:
    """SC34: those that did not run in their time; the latest first."""
    morning = await app.create_rule("post", {}, cron="0 9 * * *", tz="UTC", misfire="skip")
    evening = await app.create_rule("post", {}, cron="0 21 * * *", tz="UTC", misfire="skip")
    clock.advance(2 * A_DAY + timedelta(hours=2))  # nothing ran; the last morning is five hours ago
    await app.tick()
    mornings = [NINE + 2 * A_DAY, NINE + A_DAY]
    evenings = [NINE + 1.5 * A_DAY, NINE + 0.5 * A_DAY]

    async def missed(**asked: object) -> list[object]:
        return [one.nominal_at for one in await app.missed(**asked)]  # type: ignore[arg-type]

    assert await missed() == sorted([*mornings, *evenings], reverse=True)
    assert await missed(rule=morning.id) == mornings
    assert await missed(rule=evening.id) == evenings
    assert await missed(since=NINE + A_DAY) == [mornings[0], evenings[0], mornings[1]]
    assert await missed(rule=evening.id, since=NINE + A_DAY) == [evenings[0]]
    assert await missed(limit=1) == [mornings[0]]


async def test_a_calendar_that_is_emptied_holds_nothing_back_any_more(app: Postdate, clock: ManualClock) -> None:
    await app.set_holidays("team", ["2026-03-10"])
    await app.create_rule("post", {}, cron="0 9 * * *", tz="UTC", holidays="team")
    assert NINE + 2 * A_DAY not in {each.publish_at for each in await app.list(status=Status.QUEUED)}
    await app.set_holidays("team", [])
    await travel(app, to=NOON + 3 * A_DAY)
    fired = await app.list(status=Status.PUBLISHED)
    assert [each.publish_at for each in fired] == [NINE + day * A_DAY for day in (1, 2, 3)]
