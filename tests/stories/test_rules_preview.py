"""Does a preview show what then happens: moved, left out, paused and ended ones too (P82)?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from postdate import Context, Invalid, Postdate, Status
from postdate.testing.travel import travel
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from datetime import datetime

    from postdate import RecurringRule
    from postdate.clock import ManualClock

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
NINE = NOON - 3 * HOUR
"""Of the day that the tests begin on: past already."""


@pytest.fixture
def ran(app: Postdate) -> list[datetime]:
    """Register a type that says when it ran."""
    said: list[datetime] = []

    @app.action("post")
    async def post(ctx: Context, payload: dict[str, str]) -> None:
        said.append(ctx.now)

    return said


async def daily(app: Postdate, **asked: Any) -> RecurringRule:
    return await app.create_rule("post", {}, **{"cron": "0 9 * * *", "tz": "UTC", **asked})


async def shown(app: Postdate, rule: RecurringRule, n: int = 4, **asked: Any) -> list[tuple[Any, Any]]:
    """Return when each upcoming occurrence happens, behind its nominal instant in days from the first day's nine."""
    upcoming = await app.preview_rule(rule.id, n=n, **asked)
    return [((each.nominal_at - NINE) / DAY, each.publish_at) for each in upcoming]


async def test_a_moved_occurrence_stands_where_it_happens_whichever_way_it_was_moved(
    app: Postdate, ran: list[datetime], clock: ManualClock
) -> None:
    rule = await daily(app)
    later, sooner = NINE + 2 * DAY + HOUR, NINE + DAY - HOUR
    await app.move_occurrence(rule.id, NINE + DAY, to=later)
    await app.move_occurrence(rule.id, NINE + 3 * DAY, to=sooner)
    assert await shown(app, rule) == [(3, sooner), (2, NINE + 2 * DAY), (1, later), (4, NINE + 4 * DAY)]
    await travel(app, to=NINE + DAY + HOUR)
    expected = [(2, NINE + 2 * DAY), (1, later), (4, NINE + 4 * DAY), (5, NINE + 5 * DAY)]
    assert await shown(app, rule) == expected, "what was moved from the past is still to come; the third has happened"
    await travel(app, to=NINE + 5 * DAY)
    assert ran == [sooner, *(happens for _, happens in expected)]


async def test_what_was_moved_ahead_of_what_is_looked_at_stands_nowhere_else(
    app: Postdate, ran: list[datetime], clock: ManualClock
) -> None:
    rule = await daily(app)
    await app.move_occurrence(rule.id, NINE + 5 * DAY, to=NINE + 2 * DAY + HOUR)
    since, expected = NINE + 3 * DAY, [(n, NINE + n * DAY) for n in (4, 6, 7)]
    assert await shown(app, rule, n=3, after=since) == expected
    await app.pause_rule(rule.id)
    assert await shown(app, rule, n=3, after=since) == expected, "a pause takes nothing back to where it was"
    clock.move_to(since)
    assert await shown(app, rule, n=3) == expected
    await app.resume_rule(rule.id)
    assert await shown(app, rule, n=3) == expected, "its time passed while the rule was paused"
    await travel(app, to=NINE + 7 * DAY)
    assert ran == [happens for _, happens in expected]


async def test_what_was_done_to_the_actions_themselves_shows_too(
    app: Postdate, ran: list[datetime], clock: ManualClock
) -> None:
    rule = await daily(app)
    first, second, third, *_ = await app.list(status=Status.QUEUED)
    moved = NINE + 3 * DAY + HOUR
    await app.reschedule(first.id, at=moved)
    await app.cancel(second.id)
    assert await shown(app, rule) == [(2, None), (3, NINE + 3 * DAY), (1, moved), (4, NINE + 4 * DAY)]
    left_out = (await app.preview_rule(rule.id, n=1))[0]
    assert (left_out.state, left_out.reason) == ("skipped", "user")
    await app.post_now(third.id)
    await app.tick()
    assert (3, NINE + 3 * DAY) not in await shown(app, rule, n=10)
    await travel(app, to=NINE + 4 * DAY)
    assert ran == [NOON, moved, NINE + 4 * DAY]


async def test_a_paused_rule_shows_what_resuming_it_would_bring(
    app: Postdate, ran: list[datetime], clock: ManualClock
) -> None:
    rule = await daily(app)
    await app.move_occurrence(rule.id, NINE + DAY, to=NOON + DAY)
    await app.skip_occurrence(rule.id, NINE + 2 * DAY)
    await app.pause_rule(rule.id)
    coming = await shown(app, rule)
    assert coming == [(1, NOON + DAY), (2, None), (3, NINE + 3 * DAY), (4, NINE + 4 * DAY)]
    await app.resume_rule(rule.id)
    assert await shown(app, rule) == coming


async def test_a_rule_that_has_ended_shows_nothing_but_what_is_queued(
    app: Postdate, ran: list[datetime], clock: ManualClock
) -> None:
    ended = await daily(app)
    await app.move_occurrence(ended.id, NINE + DAY, to=NOON + DAY)
    await app.end_rule(ended.id)
    assert await shown(app, ended) == []
    assert await shown(app, ended, after=NINE - DAY) == [], "not even what it never came to"
    last = await app.create_rule("post", {}, rrule="FREQ=DAILY;COUNT=1", start=NINE + DAY, tz="UTC")
    await app.move_occurrence(last.id, NINE + DAY, to=NOON + 9 * DAY)
    await travel(app, to=NINE + 3 * DAY)
    assert await shown(app, last) == [(1, NOON + 9 * DAY)], "it is still to come, whether or not its rule has ended"


async def test_what_a_rule_no_longer_has_is_not_left_out_of_it(app: Postdate, ran: list[datetime]) -> None:
    rule = await daily(app)
    await app.skip_occurrence(rule.id, NINE + DAY)
    await app.update_rule(rule.id, cron="0 10 * * *")
    assert [happens for _, happens in await shown(app, rule, n=2)] == [NINE + DAY + HOUR, NINE + 2 * DAY + HOUR]


async def test_as_many_are_shown_as_are_asked_for_however_many_are_elsewhere(
    app: Postdate, ran: list[datetime]
) -> None:
    rule = await daily(app)
    for day in (1, 2, 3):
        await app.move_occurrence(rule.id, NINE + day * DAY, to=NOON + 50 * DAY)
    assert [nominal for nominal, _ in await shown(app, rule, n=3)] == [4, 5, 6]
    assert [nominal for nominal, _ in await shown(app, rule, n=60)][-14:-10] == [50, 1, 2, 3]


async def test_what_runs_beside_the_occurrences_is_none_of_them(app: Postdate, ran: list[datetime]) -> None:
    rule = await daily(app)
    await app.run_now(rule.id)
    assert await shown(app, rule, n=1, after=NOON - timedelta(seconds=1)) == [(1, NINE + DAY)]


async def test_a_rule_says_itself_when_it_fires(app: Postdate, ran: list[datetime]) -> None:
    rule = await daily(app)
    with pytest.raises(Invalid, match="every: must not be given with a rule"):
        await app.preview_rule(rule.id, every=60)
    with pytest.raises(TypeError, match=r"preview_rule\(\) got an unexpected keyword argument 'evry'"):
        await app.preview_rule(evry=60)  # type: ignore[call-arg]


async def test_a_pause_keeps_what_a_person_asked_for_beside_the_occurrences(
    app: Postdate, ran: list[datetime], clock: ManualClock
) -> None:
    """P81: a pause withdraws what the window holds, which resume brings back; nothing would bring these back."""
    rule = await app.create_rule("post", {"thing_id": "digest"}, cron="0 9 * * *", tz="UTC")
    await travel(app, to=NINE + DAY)
    (published,) = await app.list(status=Status.PUBLISHED)
    again, wished = await app.post_now(published.id), await app.run_now(rule.id)
    await app.pause_rule(rule.id)
    assert {each.id for each in await app.list(status=Status.QUEUED)} == {again.id, wished.id}
    clock.advance(HOUR)
    await app.run_now(rule.id)
    await travel(app, to=NINE + 3 * DAY)
    assert ran == [NINE + DAY, *[NINE + DAY + HOUR] * 3]


async def test_ending_a_rule_takes_along_what_has_not_begun(
    app: Postdate, ran: list[datetime], clock: ManualClock
) -> None:
    """SC32: the run that goes on is recorded; no further run."""
    rule = await daily(app)
    await app.run_now(rule.id)
    await app.end_rule(rule.id)
    await travel(app, to=NINE + 3 * DAY)
    assert ran == []
