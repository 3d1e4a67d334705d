"""When do the occurrences of recurring rules fire, and what comes of those that could not?"""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from postdate import Context, Postdate, Reason, RecurringRule, RuleOccurrence, Status
from postdate.engine.dispatch import Dispatcher
from postdate.store.occurrences import lines_of
from postdate.testing.factories import make_workspace
from postdate.testing.travel import travel
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from postdate.clock import ManualClock
    from postdate.domain.misfire import Misfire

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
NEW_YORK = "America/New_York"


@pytest.fixture
def ran(app: Postdate) -> list[tuple[datetime, str]]:
    """Register a type that writes down when it runs, and for which nominal instant."""
    said: list[tuple[datetime, str]] = []

    @app.action("post")
    async def post(ctx: Context, payload: dict[str, str]) -> None:
        said.append((ctx.now, ctx.action.occurrence))

    return said


def local(instants: list[tuple[datetime, str]], zone: str) -> list[str]:
    return [f"{at.astimezone(ZoneInfo(zone)):%a %H:%M}" for at, _ in instants]


async def test_every_tuesday_at_nine_for_twelve_weeks_fires_twelve_times_at_nine_over_a_change_of_the_clocks(
    app: Postdate, clock: ManualClock, ran: list[tuple[datetime, str]]
) -> None:
    """P82. Twelve actions of one thing and target: each is its own for the guard (P-i5)."""
    clock.move_to(datetime(2026, 2, 3, 12, tzinfo=UTC))
    rule = await app.create_rule(
        "post",
        {"thing_id": "digest"},
        rrule="FREQ=WEEKLY;BYDAY=TU;COUNT=12",
        start="2026-02-10T09:00",
        tz=NEW_YORK,
        target="instagram",
    )
    assert rule.describe() == "every Tuesday at 09:00, 12 times"
    journey = await travel(app, to=datetime(2026, 8, 1, tzinfo=UTC))
    assert local(ran, NEW_YORK) == ["Tue 09:00"] * 12
    assert {at.hour for at, _ in ran} == {13, 14}, "in UTC it moves"
    assert len({occurrence for _, occurrence in ran}) == 12
    assert journey.counts == Counter({Status.PUBLISHED: 12})
    assert (await app.get_rule(rule.id)).status == "ended"


async def test_sc41_daily_at_nine_in_new_york_follows_the_clocks(
    app: Postdate, clock: ManualClock, ran: list[tuple[datetime, str]]
) -> None:
    clock.move_to(datetime(2026, 3, 6, 20, tzinfo=UTC))
    await app.create_rule("post", {}, rrule="FREQ=DAILY", start="2026-03-01T09:00", tz=NEW_YORK)
    await travel(app, to=datetime(2026, 3, 9, 20, tzinfo=UTC))
    assert [f"{at:%m-%dT%H:%MZ}" for at, _ in ran] == ["03-07T14:00Z", "03-08T13:00Z", "03-09T13:00Z"]


async def test_sc26_a_cron_rule_made_at_noon_fires_first_on_the_next_morning(
    app: Postdate, ran: list[tuple[datetime, str]]
) -> None:
    await app.create_rule("post", {}, cron="0 9 * * *", tz="UTC")
    await app.tick()
    assert ran == []
    await travel(app, to=NOON + DAY)
    assert [at for at, _ in ran] == [NOON + 21 * HOUR]


async def test_sc42_what_begins_three_days_later_repeats_from_there_and_not_from_its_making(
    app: Postdate, clock: ManualClock, ran: list[tuple[datetime, str]]
) -> None:
    clock.move_to(NOON.replace(hour=14, minute=32))
    await app.create_rule("post", {}, rrule="FREQ=WEEKLY", start="2026-03-11T08:00", tz="Europe/Lisbon")
    await app.create_rule("post", {}, every=7 * DAY, start="2026-03-11T08:00+00:00")
    await travel(app, to=NOON + 32 * DAY)
    assert local(ran, "Europe/Lisbon")[:6] == ["Wed 08:00"] * 6
    assert len(ran) == 10


async def test_sc27_a_weekly_rule_fires_once_a_week_though_processes_come_and_go(
    app: Postdate, database_url: str, clock: ManualClock, ran: list[tuple[datetime, str]]
) -> None:
    """Due decisions come from rows: each process here is new, some know no rule's type."""
    await app.create_rule("post", {}, rrule="FREQ=WEEKLY", start="2026-03-09T12:00", tz="UTC")
    await app.create_rule("post", {}, rrule="FREQ=WEEKLY", start="2026-03-10T12:00", tz="UTC")
    for _ in range(2 * 7):
        clock.advance(DAY)
        stranger = Postdate(database_url, clock=clock)
        await stranger.tick()
        await stranger.close()
        await app.tick()
        await app.close()
    assert local(ran, "UTC") == ["Mon 12:00", "Tue 12:00"] * 2


async def test_sc38_nothing_falls_between_the_last_pass_of_one_instance_and_the_first_of_another(
    app: Postdate, database_url: str, clock: ManualClock, ran: list[tuple[datetime, str]]
) -> None:
    other = Postdate(database_url, clock=clock)
    other.kernel.registry = app.kernel.registry
    await app.create_rule("post", {}, cron="*/30 * * * *", tz="UTC")
    for number in range(12):
        clock.advance(timedelta(seconds=155))
        await (app if number < 3 else other).tick()
    await other.close()
    assert [occurrence for _, occurrence in ran] == ["2026-03-08T12:30:00Z"]


@pytest.mark.parametrize(
    ("misfire", "fired"),
    [("skip", []), ("once", ["2026-03-10T09:00:00Z"]), ("all", ["2026-03-09T09:00:00Z", "2026-03-10T09:00:00Z"])],
)
async def test_sc34_after_two_days_down_a_daily_rule_follows_its_misfire_policy(
    app: Postdate, clock: ManualClock, ran: list[tuple[datetime, str]], misfire: Misfire, fired: list[str]
) -> None:
    """Whatever it does, nothing is dropped in silence."""
    rule = await app.create_rule("post", {"thing_id": "digest"}, cron="0 9 * * *", tz="UTC", misfire=misfire)
    clock.advance(2 * DAY)
    await app.tick()
    assert [occurrence for _, occurrence in ran] == fired
    missed = await app.missed(rule=rule.id)
    assert len(missed) == 2 - len(fired)
    left_out = [await app.get(str(one.action_id)) for one in missed]
    assert [(one.status, one.reason) for one in left_out] == [(Status.CANCELLED, Reason.SKIPPED)] * len(missed)
    assert all("missed" in str(one.last_error) for one in left_out)
    await travel(app, to=NOON + 3 * DAY)
    assert ran[-1][0] == NOON + 3 * DAY - 3 * HOUR, "and from then on it fires in its time"


@pytest.mark.parametrize(("misfire", "count"), [("skip", 0), ("once", 1), ("all", 46)])
async def test_what_was_missed_beyond_the_window_follows_the_policy_too(
    app: Postdate, clock: ManualClock, ran: list[tuple[datetime, str]], misfire: Misfire, count: int
) -> None:
    """After 46 days most of it was never materialised."""
    rule = await app.create_rule("post", {}, cron="0 9 * * *", tz="UTC", misfire=misfire)
    clock.advance(46 * DAY)
    await app.tick()
    assert len(ran) == count
    assert len(await app.missed(rule=rule.id)) == 46 - count
    if misfire == "once":
        assert ran[0][1] == "2026-04-23T09:00:00Z", "the latest"


async def test_a_rule_that_cannot_be_read_any_more_stops_no_claim(
    app: Postdate, clock: ManualClock, ran: list[tuple[datetime, str]]
) -> None:
    broken = await app.create_rule("post", {}, every=18 * DAY)
    await app.create_rule("post", {}, every=10 * DAY)
    clock.advance(17 * DAY)
    await app.tick()
    with app.kernel.transaction(None) as tx:
        r = tx.tables.recurring_schedules
        tx.execute(r.update().where(r.c.id == broken.id).values(rrule="soon", last_materialized_at=clock.now()))
    clock.advance(4 * DAY)
    await app.tick()
    assert [occurrence[:10] for _, occurrence in ran] == ["2026-03-18", "2026-03-26", "2026-03-28"]


async def test_within_the_grace_late_is_not_missed(
    app: Postdate, clock: ManualClock, ran: list[tuple[datetime, str]]
) -> None:
    for grace in (HOUR, 5 * HOUR):
        await app.create_rule("post", {}, cron="0 9 * * *", tz="UTC", misfire="skip", grace=grace)
    clock.advance(25 * HOUR)
    await app.tick()
    assert len(ran) == 1


async def test_sc34_a_row_that_is_ninety_seconds_late_runs(
    app: Postdate, clock: ManualClock, ran: list[tuple[datetime, str]]
) -> None:
    await app.create_rule("post", {}, cron="0 13 * * *", tz="UTC", misfire="skip")
    clock.move_to(NOON + HOUR + timedelta(seconds=90))
    await app.tick()
    assert len(ran) == 1


async def test_what_has_to_end_before_the_next_begins_skips_what_fell_due_meanwhile(
    app: Postdate, clock: ManualClock
) -> None:
    """F40's `skip`: the run takes seven hours, and the rule fires every three."""
    began: list[datetime] = []

    @app.action("slow")
    async def slow(ctx: Context, payload: dict[str, str]) -> None:
        began.append(clock.now())
        clock.advance(7 * HOUR)

    rule = await app.create_rule("slow", {}, every=3 * HOUR, overlap="skip", misfire="all")
    assert len(await app.list()) == 1, "one at a time"
    await travel(app, to=NOON + 30 * HOUR)
    assert [(at - NOON) // HOUR for at in began] == [3, 12, 21, 30]
    skipped = [one.nominal_at for one in await ledger(app, rule) if one.reason == "overlap"]
    assert [(at - NOON) // HOUR for at in skipped] == [6, 9, 15, 18, 24, 27, 33, 36], "the last run ends at 37"


async def test_what_a_run_came_to_is_written_before_rules_are_looked_at_however_the_event_loop_deals(
    app: Postdate, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a test's single pass: had the look come first, the next occurrence would be made a minute later, or never."""
    waited_for, began = asyncio.Event(), list[datetime]()
    drain = Dispatcher.drain

    async def draining(dispatcher: Dispatcher, grace: float | None = None) -> None:
        waited_for.set()
        await drain(dispatcher, grace)

    monkeypatch.setattr(Dispatcher, "drain", draining)

    @app.action("slow")
    async def slow(ctx: Context, payload: dict[str, str]) -> None:
        waited_for.clear()
        await waited_for.wait()
        began.append(ctx.now)
        clock.advance(7 * HOUR)

    await app.create_rule("slow", {}, every=3 * HOUR, overlap="skip", misfire="all")
    await travel(app, to=NOON + 30 * HOUR)
    assert [(at - NOON) // HOUR for at in began] == [3, 12, 21, 30]


@pytest.mark.parametrize(("misfire", "fired"), [("skip", []), ("once", [11]), ("all", [9, 10, 11])])
async def test_after_days_down_what_must_not_overlap_follows_the_misfire_policy_one_by_one(
    app: Postdate, clock: ManualClock, misfire: Misfire, fired: list[int]
) -> None:
    """Nothing was at work in those days, so that none is left out for another."""
    began: list[tuple[str, datetime]] = []

    @app.action("slow")
    async def slow(ctx: Context, payload: dict[str, str]) -> None:
        began.append((ctx.action.occurrence, clock.now()))
        clock.advance(HOUR)

    rule = await app.create_rule("slow", {}, cron="0 9 * * *", tz="UTC", overlap="skip", misfire=misfire)
    clock.advance(3 * DAY)
    await travel(app, to=NOON + 3 * DAY + 12 * HOUR)
    assert [occurrence for occurrence, _ in began] == [f"2026-03-{day:02}T09:00:00Z" for day in fired]
    assert [at for _, at in began] == [NOON + 3 * DAY + number * HOUR for number in range(len(fired))]
    assert {one.reason for one in await ledger(app, rule)} <= {None, "missed"}
    clock.advance(timedelta(minutes=1))
    await app.tick()
    assert [each.publish_at for each in await app.list(status=Status.QUEUED)] == [NOON + 4 * DAY - 3 * HOUR]


async def ledger(app: Postdate, rule: RecurringRule) -> list[RuleOccurrence]:
    return await app.kernel.work(lambda tx: lines_of(tx, rule.id, since=NOON), read_only=True)


async def test_where_overlaps_are_allowed_they_happen(app: Postdate, clock: ManualClock) -> None:
    began: list[datetime] = []

    @app.action("slow")
    async def slow(ctx: Context, payload: dict[str, str]) -> None:
        began.append(ctx.now)

    await app.create_rule("slow", {}, every=3 * HOUR)
    await travel(app, to=NOON + 30 * HOUR)
    assert len(began) == 10


async def test_what_quiet_hours_put_off_was_not_missed(
    app: Postdate, clock: ManualClock, ran: list[tuple[datetime, str]]
) -> None:
    workspace = make_workspace(app)
    await app.set_quiet_hours(workspace, "12:30-18:00", tz="UTC")
    rule = await app.create_rule("post", {}, cron="0 13 * * *", tz="UTC", workspace=workspace, misfire="skip")
    await travel(app, to=NOON + 7 * HOUR)
    assert [at for at, _ in ran] == [NOON + 6 * HOUR]
    assert await app.missed(rule=rule.id) == []


async def test_what_a_pause_of_the_workspace_held_up_follows_the_policy_when_it_ends(
    app: Postdate, clock: ManualClock, ran: list[tuple[datetime, str]]
) -> None:
    workspace = make_workspace(app)
    await app.create_rule("post", {}, cron="0 13 * * *", tz="UTC", workspace=workspace)
    await app.pause(workspace=workspace)
    clock.advance(3 * DAY)
    await app.tick()
    assert ran == []
    await app.resume(workspace=workspace)
    await app.tick()
    assert [occurrence for _, occurrence in ran] == ["2026-03-10T13:00:00Z"], "the latest of three"
