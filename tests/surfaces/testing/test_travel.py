"""Does a journey through time fire what a running engine would have fired, and tell what it was?"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from postdate import Context, Deferred, InvalidInstant, Misconfigured, NotSent, Postdate, Reason, Rejected, Status
from postdate.clock import ManualClock
from postdate.testing.moves import LEASE, claim
from postdate.testing.travel import JourneyTooLong, travel

if TYPE_CHECKING:
    from collections.abc import Iterator

NINE = datetime(2027, 3, 1, 9, tzinfo=UTC)
A_DAY = timedelta(days=1)
FOUR_WEEKS = timedelta(weeks=4)


@pytest.fixture
def app(database_url: str) -> Iterator[Postdate]:
    app = Postdate(database_url, clock=ManualClock(NINE))
    yield app
    app.kernel.database.close_sync()


def daily(app: Postdate) -> None:
    """Remind every day: each run schedules the next."""

    @app.action("daily")
    def remind(ctx: Context, payload: dict[str, object]) -> None:
        app.sync.schedule("daily", {}, at=ctx.now + A_DAY)


def test_four_weeks_of_a_daily_action_pass_in_28_runs_each_at_its_instant(app: Postdate) -> None:
    daily(app)
    app.sync.schedule("daily", {}, at=NINE)
    journey = asyncio.run(travel(app, to=NINE + FOUR_WEEKS - A_DAY))
    assert [run.at for run in journey.fired] == [NINE + n * A_DAY for n in range(28)]
    assert all(run.at == run.action.publish_at for run in journey.fired)
    assert (journey.began, journey.now) == (NINE, NINE + FOUR_WEEKS - A_DAY)
    assert (journey.passes, journey.due_count, journey.counts) == (28, 28, {Status.PUBLISHED: 28})
    assert app.kernel.clock.now() == journey.now
    assert [action.publish_at for action in app.sync.list(status="queued")] == [NINE + FOUR_WEEKS]


async def test_retries_are_told_one_by_one_and_their_action_once(app: Postdate) -> None:
    @app.action("stubborn", auto_attempts=3)
    async def stubborn(ctx: Context, payload: dict[str, object]) -> None:
        raise NotSent("not today")

    action = await app.schedule("stubborn", {}, at=NINE + A_DAY)
    journey = await travel(app, to=NINE + 2 * A_DAY)
    assert [run.attempt for run in journey.fired] == [1, 2, 3]
    assert all(earlier.at < later.at for earlier, later in pairwise(journey.fired))
    assert [run.action.status for run in journey.fired] == [Status.QUEUED, Status.QUEUED, Status.FAILED]
    (ended,) = journey.actions
    assert (ended.id, ended.reason) == (action.id, Reason.EXHAUSTED)
    await app.close()


async def test_a_journey_reads_as_a_line_for_each_run(app: Postdate) -> None:
    @app.action("post")
    async def post(ctx: Context, payload: dict[str, str]) -> None:
        if ctx.target is None:
            raise Rejected("no target")

    await app.schedule("post", {"thing_id": "digest"}, target="instagram", at=NINE + A_DAY)
    await app.schedule("post", {}, at=NINE + 2 * A_DAY)
    assert str(await travel(app, to=NINE + 3 * A_DAY)).splitlines() == [
        "2027-03-02T09:00:00Z post attempt 1: published, thing digest, target instagram",
        "2027-03-03T09:00:00Z post attempt 1: failed (rejected), no target",
        "2 fired from 2027-03-01T09:00:00Z to 2027-03-04T09:00:00Z",
    ]
    await app.close()


def test_nothing_is_early_and_what_is_past_its_time_is_found_but_not_run(app: Postdate) -> None:
    ran = []
    app.action("act")(lambda ctx, payload: ran.append(ctx.now))
    app.sync.schedule("act", {}, at=NINE - A_DAY, expires_at=NINE - A_DAY)
    app.sync.schedule("act", {}, at=NINE + A_DAY)
    journey = asyncio.run(travel(app, to=NINE + A_DAY - timedelta(microseconds=1)))
    assert (journey.due_count, journey.fired, ran) == (1, (), [])
    assert asyncio.run(travel(app, to=NINE + A_DAY)).due_count == 1
    assert ran == [NINE + A_DAY]


def test_the_lease_of_a_worker_that_died_is_ended_on_the_way(app: Postdate) -> None:
    ran = []
    app.action("act", idempotent=True)(lambda ctx, payload: ran.append(ctx.now))
    assert claim(app, app.sync.schedule("act", {}, at=NINE))
    journey = asyncio.run(travel(app, to=NINE + A_DAY))
    assert journey.recovered == 1
    (run,) = journey.fired
    assert (run.attempt, run.action.status) == (2, Status.PUBLISHED)
    assert NINE + LEASE < run.at < NINE + timedelta(hours=1)


def test_what_one_app_schedules_for_another_at_once_is_fired_at_the_same_instant(database_url: str) -> None:
    clock, ran = ManualClock(NINE), []
    front, back = (Postdate(database_url, clock=clock) for _ in range(2))
    both = Postdate(database_url, clock=clock)
    for app in (back, both):
        app.action("deliver")(lambda ctx, payload: ran.append(ctx.now))

    @front.action("order")
    def order(ctx: Context, payload: dict[str, object]) -> None:
        both.sync.schedule("deliver", {}, at=ctx.now)

    front.sync.schedule("order", {}, at=NINE + A_DAY)
    journey = asyncio.run(travel(back, front, to=NINE + 2 * A_DAY))
    assert ran == [NINE + A_DAY]
    assert [run.action.action_type for run in journey.fired] == ["order", "deliver"]
    for app in (front, back, both):
        app.kernel.database.close_sync()


def test_an_action_that_puts_itself_off_for_ever_ends_the_journey(app: Postdate) -> None:
    @app.action("lazy")
    def lazy(ctx: Context, payload: dict[str, object]) -> None:
        raise Deferred(ctx.now)

    app.sync.schedule("lazy", {}, at=NINE)
    with pytest.raises(JourneyTooLong) as ended:
        asyncio.run(travel(app, to=NINE + A_DAY, most_passes=5))
    assert ended.value.reached == app.kernel.clock.now() < NINE + timedelta(seconds=6)


def test_what_cannot_be_travelled_is_refused(app: Postdate, database_url: str) -> None:
    live = Postdate(database_url)
    elsewhere = Postdate(database_url, clock=ManualClock(NINE))
    for apps in ((), (live,), (app, elsewhere)):
        with pytest.raises(Misconfigured, match="clock"):
            asyncio.run(travel(*apps, to=NINE + A_DAY))
    with pytest.raises(InvalidInstant, match="stands at"):
        asyncio.run(travel(app, to=NINE - A_DAY))
    with pytest.raises(InvalidInstant, match="naive"):
        asyncio.run(travel(app, to=datetime(2027, 4, 1)))  # noqa: DTZ001 - that is what is refused
