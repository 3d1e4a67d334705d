"""When is a rule over whose last occurrence somebody has moved?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from postdate import Context, Postdate, RuleMoveRefused, Status
from postdate.engine.expand import Expander
from postdate.engine.look import LookReport
from postdate.testing.travel import travel
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from datetime import datetime

    from postdate.clock import ManualClock

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
NINE = NOON + 21 * HOUR
"""When the first of three occurrences is to happen."""


@pytest.fixture
def ran(app: Postdate) -> list[datetime]:
    """Register a type that says when it ran."""
    said: list[datetime] = []

    @app.action("post")
    async def post(ctx: Context, payload: dict[str, str]) -> None:
        said.append(ctx.now)

    return said


async def thrice(app: Postdate, **asked: Any) -> Any:
    return await app.create_rule("post", {}, rrule="FREQ=DAILY;COUNT=3", start=NINE, tz="UTC", **asked)


@pytest.mark.parametrize("overlap", ["allow", "skip"])
async def test_it_goes_on_until_the_moved_one_is_past(app: Postdate, ran: list[datetime], overlap: Any) -> None:
    """P78, P82. Until then there is something to pause, to move once more, and to bring back."""
    rule = await thrice(app, overlap=overlap)
    last, later = NINE + 2 * DAY, NINE + 9 * DAY
    await app.move_occurrence(rule.id, last, to=later)
    await travel(app, to=last + HOUR)
    assert ran == [NINE, NINE + DAY]
    assert (await app.get_rule(rule.id)).status == "active"
    await app.pause_rule(rule.id)
    assert await app.list(status=Status.QUEUED) == []
    await app.resume_rule(rule.id)
    assert (await app.get_rule(rule.id)).status == "active"
    await app.move_occurrence(rule.id, last, to=later + HOUR)
    await travel(app, to=later + HOUR)
    assert ran == [NINE, NINE + DAY, later + HOUR]
    await travel(app, to=later + 2 * HOUR)
    assert (await app.get_rule(rule.id)).status == "ended"
    with pytest.raises(RuleMoveRefused):
        await app.move_occurrence(rule.id, last, to=later + DAY)


async def test_moved_to_earlier_it_is_over_when_the_rule_says(app: Postdate, ran: list[datetime]) -> None:
    rule = await thrice(app)
    await app.move_occurrence(rule.id, NINE + 2 * DAY, to=NOON + HOUR)
    await travel(app, to=NINE + 2 * DAY - HOUR)
    assert ran == [NOON + HOUR, NINE, NINE + DAY]
    assert (await app.get_rule(rule.id)).status == "active"
    await travel(app, to=NINE + 2 * DAY)
    assert (await app.get_rule(rule.id)).status == "ended"
    assert len(ran) == 3


async def test_the_expander_looks_at_it_when_that_is_past_and_not_before(
    app: Postdate, ran: list[datetime], clock: ManualClock
) -> None:
    rule = await thrice(app)
    await app.move_occurrence(rule.id, NINE + 2 * DAY, to=NINE + 9 * DAY)
    clock.move_to(NINE + 2 * DAY)
    assert await Expander(app.kernel).run_once(clock.now()) == LookReport(looked=1)
    assert (await app.get_rule(rule.id)).look_at == NINE + 9 * DAY
    clock.move_to(NINE + 9 * DAY)
    assert await Expander(app.kernel).run_once(clock.now()) == LookReport(looked=1, ended=1)
