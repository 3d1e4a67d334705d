"""Which rules can be made, whose are they, and what stops nobody else?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import func, select

from postdate import Invalid, InvalidPayload, InvalidRule, InvalidZone, Postdate, RuleNotFound, UnknownActionType
from postdate.testing.factories import make_profile, make_workspace
from postdate.testing.travel import travel
from tests.stories.conftest import NOON
from tests.stories.daily import DAY, HOUR, NINE, daily, queued, registered_post

if TYPE_CHECKING:
    from postdate.clock import ManualClock


@pytest.fixture
def ran(app: Postdate) -> list[str]:
    """What was said, and when."""
    return registered_post(app)


async def test_one_workspaces_broken_rule_is_reported_and_stops_nobody_else(
    app: Postdate, ran: list[str], clock: ManualClock
) -> None:
    broken, fine = await daily(app), await daily(app)
    with app.kernel.transaction(None) as tx:
        r = tx.tables.recurring_schedules
        tx.execute(r.update().where(r.c.id == broken.id).values(tz="Mars/Phobos"))
    clock.advance(2 * DAY)
    await app.tick()
    assert "Mars/Phobos" in str((await app.get_rule(broken.id)).last_error)
    assert (await app.get_rule(fine.id)).last_materialized_at > NOON + 15 * DAY
    await app.update_rule(broken.id, tz="UTC")
    assert (await app.get_rule(broken.id)).last_error is None


async def test_an_override_that_is_no_object_stops_nobody_else_either(
    app: Postdate, ran: list[str], clock: ManualClock
) -> None:
    broken, fine = await daily(app), await daily(app)
    name = f"{NOON + 15 * DAY - 3 * HOUR:%FT%TZ}"
    with app.kernel.transaction(None) as tx:
        r = tx.tables.recurring_schedules
        tx.execute(r.update().where(r.c.id == broken.id).values(overrides={name: ["hello"]}))
    clock.advance(2 * DAY)
    await app.tick()
    assert (await app.get_rule(broken.id)).last_error is not None
    assert (await app.get_rule(fine.id)).last_materialized_at > NOON + 15 * DAY
    await app.override_occurrence(broken.id, name, None)
    clock.advance(HOUR)
    await app.tick()
    assert len(await queued(app)) == 2 * 14, "and it goes on where it was mended"


async def test_a_rule_whose_type_is_unknown_here_is_materialised_all_the_same(
    app: Postdate, database_url: str, ran: list[str], clock: ManualClock
) -> None:
    await daily(app)
    stranger = Postdate(database_url, clock=clock)
    clock.advance(2 * DAY)
    await stranger.tick()
    await stranger.close()
    assert len(await queued(app)) == 16


async def test_deleting_an_owner_deletes_its_rules_and_all_that_came_of_them(app: Postdate, ran: list[str]) -> None:
    workspace, user = make_workspace(app), make_profile(app)
    theirs, hers = await daily(app, workspace=workspace), await daily(app, user=user)
    with app.kernel.transaction(None) as tx:
        t = tx.tables
        tx.execute(t.workspaces.delete().where(t.workspaces.c.id == workspace))
        tx.execute(t.profiles.delete().where(t.profiles.c.id == user))
        for table in (t.recurring_schedules, t.rule_occurrences, t.actions, t.queue, t.action_events):
            assert tx.execute(select(func.count()).select_from(table)).scalar() == 0, table.name
    for rule in (theirs, hers):
        with pytest.raises(RuleNotFound):
            await app.get_rule(rule.id)


async def test_a_rule_exists_if_and_only_if_the_callers_transaction_commits(app: Postdate, ran: list[str]) -> None:
    async with app.kernel.database.async_engine.connect() as connection:
        await daily(app, connection=connection)
        await connection.rollback()
    assert (await app.list_rules(), await queued(app)) == ([], [])


async def test_rules_are_listed_by_owner_and_status_a_page_at_a_time(app: Postdate, ran: list[str]) -> None:
    workspace = make_workspace(app)
    made = [await daily(app, workspace=workspace) for _ in range(3)]
    await daily(app)
    await app.pause_rule(made[1].id)
    ids = [rule.id for rule in made]
    assert [rule.id for rule in await app.list_rules(workspace=workspace, limit=2)] == ids[:2]
    assert [rule.id for rule in await app.list_rules(workspace=workspace, after=ids[1])] == ids[2:]
    assert [rule.id for rule in await app.list_rules(status="paused")] == [ids[1]]


async def test_a_preview_is_what_then_fires(app: Postdate, ran: list[str], clock: ManualClock) -> None:
    asked: dict[str, Any] = {"rrule": "FREQ=MONTHLY;BYDAY=-1FR", "start": "2026-03-01T17:00", "tz": "Asia/Tokyo"}
    before = [each.publish_at for each in await app.preview_rule(n=3, **asked)]
    rule = await app.create_rule("post", {"text": ""}, **asked)
    assert [each.publish_at for each in await app.preview_rule(rule.id, n=3)] == before
    await travel(app, to=NOON + 82 * DAY)
    assert ran == [f"{at:%m-%dT%H:%M} " for at in before if at is not None]


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({}, Invalid),
        ({"cron": "0 9 * * *", "every": DAY, "tz": "UTC"}, Invalid),
        ({"cron": "0 9 * *", "tz": "UTC"}, InvalidRule),
        ({"rrule": "FREQ=DAILY;COUNT=0", "tz": "UTC"}, InvalidRule),
        ({"rrule": "FREQ=DAILY"}, InvalidZone),
        ({"rrule": "FREQ=DAILY", "tz": "Mars/Phobos"}, InvalidZone),
        ({"every": timedelta(milliseconds=1)}, InvalidRule),
        ({"every": "an hour"}, InvalidRule),
        ({"every": 1e30}, InvalidRule),
        ({"cron": "0 9 * * *", "tz": "UTC", "exdates": ["2026-03-10"]}, Invalid),
        ({"cron": "0 9 * * *", "tz": "UTC", "misfire": "never"}, Invalid),
        ({"cron": "0 9 * * *", "tz": "UTC", "grace": 0}, Invalid),
        ({"cron": "0 9 * * *", "tz": "UTC", "overlap": "queue"}, Invalid),
        ({"cron": "0 9 * * *", "tz": "UTC", "ends_at": "2025-01-01T00:00"}, Invalid),
        ({"rrule": "FREQ=DAILY", "tz": "UTC", "start": 7}, InvalidRule),
    ],
)
async def test_what_makes_no_sense_is_refused_and_says_why(
    app: Postdate, ran: list[str], asked: dict[str, Any], error: type[Invalid]
) -> None:
    with pytest.raises(error):
        await app.create_rule("post", {"text": ""}, **asked)
    assert await app.list_rules() == []


@pytest.mark.parametrize("form", [{"rrule": "FREQ=DAILY"}, {"cron": "0 9 * * *"}, {"every": 3600}])
async def test_a_start_beyond_the_calendar_is_refused_by_its_name(
    app: Postdate, ran: list[str], form: dict[str, Any]
) -> None:
    with pytest.raises(Invalid) as refused:
        await app.create_rule("post", {"text": ""}, **form, start="9999-12-31T23:59", tz="America/New_York")
    assert refused.value.field == "start"


async def test_a_type_that_nobody_knows_and_a_payload_that_breaks_its_rules_are_refused(
    app: Postdate, ran: list[str]
) -> None:
    with pytest.raises(UnknownActionType):
        await app.create_rule("fax", {}, cron="0 9 * * *", tz="UTC")
    with pytest.raises(InvalidPayload):
        await app.create_rule("post", {"text": float("nan")}, cron="0 9 * * *", tz="UTC")


async def test_datetimes_begin_a_rule_as_text_does(app: Postdate, ran: list[str]) -> None:
    instants: list[datetime | str] = [
        "2026-03-10T09:00",
        datetime(2026, 3, 10, 9),  # noqa: DTZ001 - a wall time
        datetime(2026, 3, 10, 8, tzinfo=UTC),
        "2026-03-10T08:00Z",
    ]
    for start in instants:
        rule = await app.create_rule("post", {"text": ""}, rrule="FREQ=WEEKLY", start=start, tz="Europe/Berlin")
        assert (rule.starts_wall, rule.starts_at) == ("2026-03-10T09:00:00", NINE + 2 * DAY - HOUR)
