"""What becomes of a rule's window when somebody pauses the rule, changes it, or decides about one occurrence?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import func, select

from postdate import (
    Action,
    ActionType,
    Context,
    Invalid,
    InvalidPayload,
    InvalidRule,
    InvalidZone,
    MoveRefused,
    OccurrenceNotFound,
    OverlapTaken,
    Postdate,
    Reason,
    RuleMoveRefused,
    RuleNotFound,
    Status,
    UnknownActionType,
)
from postdate.testing.factories import make_profile, make_workspace
from postdate.testing.travel import travel
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from postdate.clock import ManualClock

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
NINE = NOON - 3 * HOUR
"""Of the day that the tests begin on: past already."""


@pytest.fixture
def ran(app: Postdate) -> list[str]:
    """Register a type that says when it ran."""
    said: list[str] = []

    @app.action("post")
    async def post(ctx: Context, payload: dict[str, str]) -> None:
        said.append(f"{ctx.now:%m-%dT%H:%M} {payload['text']}")

    return said


async def daily(app: Postdate, **asked: Any) -> Any:
    return await app.create_rule("post", {"text": "hello"}, **{"cron": "0 9 * * *", "tz": "UTC", **asked})


async def queued(app: Postdate) -> list[Action]:
    return await app.list(status=Status.QUEUED, limit=1000)


def due(actions: list[Action]) -> list[datetime]:
    return [each.publish_at for each in actions]


async def test_p_t13_the_window_is_materialised_once_and_moves_with_the_days(
    app: Postdate, ran: list[str], clock: ManualClock
) -> None:
    rule = await app.create_rule("post", {"text": ""}, rrule="FREQ=WEEKLY;BYDAY=TU", start="2026-03-10T09:00", tz="UTC")
    assert due(await queued(app)) == [NINE + 2 * DAY, NINE + 9 * DAY], "of a weekly rule there are two in 14 days"
    for _ in range(2):
        await app.tick()
        assert len(await queued(app)) == 2
    await travel(app, to=NOON + 5 * DAY)
    assert due(await queued(app)) == [NINE + 9 * DAY, NINE + 16 * DAY]
    moved_on = await app.get_rule(rule.id)
    assert moved_on.last_materialized_at > rule.last_materialized_at


async def test_ends_at_cuts_the_window_and_ends_the_rule(app: Postdate, ran: list[str], clock: ManualClock) -> None:
    rule = await daily(app, ends_at=NINE + 2 * DAY)
    assert due(await queued(app)) == [NINE + DAY, NINE + 2 * DAY]
    await travel(app, to=NOON + DAY)
    assert (await app.get_rule(rule.id)).status == "active"
    await travel(app, to=NOON + 3 * DAY)
    assert (await app.get_rule(rule.id)).status == "ended"
    assert len(ran) == 2
    with pytest.raises(RuleMoveRefused, match=r"cannot pause rule .*: it is ended"):
        await app.pause_rule(rule.id)


async def test_each_occurrence_says_which_rule_and_which_wall_time_it_is(app: Postdate, ran: list[str]) -> None:
    workspace, user = make_workspace(app, account_timezone="Europe/Lisbon"), make_profile(app)
    rule = await daily(app, tz=None, workspace=workspace, user=user, target="instagram")
    assert rule.tz == "Europe/Lisbon"
    first, *_ = await queued(app)
    assert (first.origin, first.origin_id, first.occurrence) == ("recurring", str(rule.id), "2026-03-09T09:00:00Z")
    assert (first.workspace_id, first.user_id, first.target_key) == (workspace, user, "instagram")
    assert first.intent is not None
    assert (first.intent.wall_time, first.intent.tz) == ("2026-03-09T09:00:00", "Europe/Lisbon")


async def test_a_pause_withdraws_the_window_and_resume_brings_back_what_is_still_to_come(
    app: Postdate, ran: list[str], clock: ManualClock
) -> None:
    rule = await daily(app)
    before = await queued(app)
    await app.pause_rule(rule.id, actor="ana", note="a crisis")
    assert (await app.pause_rule(rule.id)).version == 2, "idempotent"
    withdrawn = [await app.get(each.id) for each in before]
    assert {(each.status, each.reason) for each in withdrawn} == {(Status.CANCELLED, Reason.RULE_CHANGED)}
    await travel(app, to=NOON + 2 * DAY)
    assert ran == []
    await app.resume_rule(rule.id)
    assert (await app.resume_rule(rule.id)).status == "active"
    assert due(await queued(app)) == [NINE + n * DAY for n in range(3, 17)], "what passed meanwhile is no misfire"
    assert await app.missed(rule=rule.id) == []
    await travel(app, to=NOON + 4 * DAY)
    assert ran == ["03-11T09:00 hello", "03-12T09:00 hello"]
    told = await app.rule_history(rule.id)
    assert [(each.cause, each.actor) for each in told] == [
        ("rule_created", "api"),
        ("rule_paused", "ana"),
        ("rule_resumed", "api"),
    ]
    assert told[1].detail == {"note": "a crisis"}


async def test_an_edit_replaces_the_window_and_editing_back_brings_it_back(
    app: Postdate, ran: list[str], clock: ManualClock
) -> None:
    rule = await daily(app)
    evening = await app.update_rule(rule.id, cron="0 21 * * *")
    assert (evening.id, evening.version, evening.tz) == (rule.id, 2, "UTC")
    assert due(await queued(app)) == [NINE + 12 * HOUR + n * DAY for n in range(14)]
    await app.update_rule(rule.id, cron="0 9 * * *", payload={"text": "changed"})
    assert due(await queued(app)) == [NINE + n * DAY for n in range(1, 15)]
    await travel(app, to=NOON + DAY)
    assert ran == ["03-09T09:00 changed"]
    changed = [each.detail["changed"] for each in await app.rule_history(rule.id) if each.cause == "rule_changed"]
    assert changed == [["cron"], ["cron", "payload"]], "by the names of the arguments"


async def test_sc30_after_moving_seven_to_nine_in_the_evening_nothing_fires_before_nine(
    app: Postdate, ran: list[str], clock: ManualClock
) -> None:
    """With catch-up on, and a restart in between: a slot that never was is none that was missed."""
    rule = await daily(app, cron="0 19 * * *", misfire="all", grace=10)
    clock.move_to(NOON + 6 * HOUR)
    await app.update_rule(rule.id, cron="0 21 * * *")
    clock.move_to(NOON + 8 * HOUR)
    await app.tick()
    assert ran == []
    await travel(app, to=NOON + 10 * HOUR)
    assert ran == ["03-08T21:00 hello"]


async def test_sc32_ending_a_rule_during_a_run_lets_the_run_end_and_be_recorded(
    app: Postdate, clock: ManualClock
) -> None:
    @app.action("long")
    async def long(ctx: Context, payload: dict[str, str]) -> str:
        await app.end_rule(rule.id, actor="ana")
        return "done"

    rule = await app.create_rule("long", {}, cron="0 13 * * *", tz="UTC")
    await travel(app, to=NOON + 3 * DAY)
    (only,) = await app.list(status=Status.PUBLISHED)
    assert (only.publish_at, only.provider_id) == (NOON + HOUR, "done")
    assert await queued(app) == []
    assert (await app.get_rule(rule.id)).status == "ended"


async def test_a_skipped_occurrence_stays_out_whatever_happens_to_the_rule(
    app: Postdate, ran: list[str], clock: ManualClock
) -> None:
    """The second is beyond the window: it is kept in the ledger until it would be materialised."""
    rule = await daily(app)
    for at in (NINE + 2 * DAY, NINE + 16 * DAY):
        skipped = await app.skip_occurrence(rule.id, at, actor="ana")
        assert await app.skip_occurrence(rule.id, at) == skipped, "idempotent"
    await app.pause_rule(rule.id)
    await app.resume_rule(rule.id)
    await app.update_rule(rule.id, payload={"text": "changed"})
    upcoming = await app.preview_rule(rule.id, n=17)
    left_out = [each.nominal_at for each in upcoming if each.publish_at is None]
    assert left_out == [NINE + 2 * DAY, NINE + 16 * DAY]
    clock.move_to(NOON + 3 * DAY)
    await app.tick()
    assert due(await queued(app)) == [NINE + n * DAY for n in range(4, 18) if n != 16]
    with pytest.raises(OccurrenceNotFound, match=r"no occurrence of rule .* at '2026-03-26T10:00"):
        await app.skip_occurrence(rule.id, "2026-03-26T10:00")
    with pytest.raises(MoveRefused, match="it is published"):
        await app.skip_occurrence(rule.id, NINE + 3 * DAY)


async def test_a_moved_occurrence_fires_where_it_was_moved_and_stays_the_same_occurrence(
    app: Postdate, ran: list[str], clock: ManualClock
) -> None:
    rule = await daily(app)
    moved = await app.move_occurrence(rule.id, "2026-03-09T09:00", to="2026-03-09T15:30")
    far = await app.move_occurrence(rule.id, NINE + 20 * DAY, to=NINE + 3 * DAY + 2 * HOUR)
    assert moved.occurrence == "2026-03-09T09:00:00Z"
    assert moved.replaces_id is not None
    assert far.replaces_id is None
    await app.update_rule(rule.id, payload={"text": "changed"})
    await app.pause_rule(rule.id)
    assert await queued(app) == [], "of a paused rule nothing fires"
    await app.resume_rule(rule.id)
    await travel(app, to=NOON + 3 * DAY)
    assert ran == [
        "03-09T15:30 changed",
        "03-10T09:00 changed",
        "03-11T09:00 changed",
        "03-11T11:00 changed",
    ]
    clock.move_to(NOON + 7 * DAY)
    await app.tick()
    assert NINE + 19 * DAY in due(await queued(app))
    assert NINE + 20 * DAY not in due(await queued(app)), "it was moved away"
    with pytest.raises(MoveRefused):
        await app.move_occurrence(rule.id, NINE + DAY, to=NOON + 30 * DAY)


async def test_an_action_that_was_rescheduled_goes_with_its_occurrence(app: Postdate, ran: list[str]) -> None:
    rule = await daily(app)
    first, *_ = await queued(app)
    await app.reschedule(first.id, at=NOON + 8 * DAY)
    await app.skip_occurrence(rule.id, NINE + DAY)
    assert NOON + 8 * DAY not in due(await queued(app))


async def test_one_occurrence_can_say_something_else(app: Postdate, ran: list[str], clock: ManualClock) -> None:
    rule = await daily(app)
    await app.override_occurrence(rule.id, NINE + 2 * DAY, {"text": "a special day"})
    await app.override_occurrence(rule.id, NINE + 15 * DAY, {"text": "later"})
    clock.move_to(NOON + DAY)
    await app.tick()
    assert [each.payload["text"] for each in await queued(app)] == ["a special day", *["hello"] * 12, "later"]
    await app.override_occurrence(rule.id, NINE + 2 * DAY, None)
    assert (await queued(app))[0].payload == {"text": "hello"}
    with pytest.raises(InvalidPayload):
        await app.override_occurrence(rule.id, NINE + 2 * DAY, {"thing_id": ""})


async def test_what_one_occurrence_says_changes_neither_when_it_happens_nor_whether(
    app: Postdate, ran: list[str], clock: ManualClock
) -> None:
    rule = await daily(app)
    moved, cancelled, *_ = await queued(app)
    await app.reschedule(moved.id, at=NINE + DAY + HOUR)
    await app.cancel(cancelled.id)
    for day in (1, 2):
        await app.override_occurrence(rule.id, NINE + day * DAY, {"text": "special"})
    await travel(app, to=NINE + 3 * DAY)
    assert ran == ["03-09T10:00 special", "03-11T09:00 hello"]


async def test_a_target_that_the_payload_cannot_go_to_is_refused_in_a_change_too(app: Postdate) -> None:
    def admit(payload: dict[str, str], target: str | None) -> None:
        if target == "myspace":
            raise Invalid(field="target", rule="is no network of ours", value=target)

    app.include(ActionType(name="post", handler=lambda ctx, payload: None, admit=admit))
    rule = await daily(app, target="instagram")
    with pytest.raises(Invalid, match="target: is no network of ours"):
        await app.update_rule(rule.id, target="myspace")
    assert (await app.update_rule(rule.id, target=None)).target_key is None


async def test_this_and_following_goes_on_under_a_new_rule(app: Postdate, ran: list[str], clock: ManualClock) -> None:
    rule = await app.create_rule(
        "post", {"text": "hello"}, rrule="FREQ=WEEKLY;BYDAY=TU;COUNT=4", start="2026-03-10T09:00", tz="Europe/Berlin"
    )
    await app.skip_occurrence(rule.id, "2026-03-31T09:00")
    new = await app.update_rule(rule.id, following="2026-03-24T09:00", payload={"text": "changed"}, actor="ana")
    assert (new.split_from, new.version) == (rule.id, 1)
    await travel(app, to=NOON + 24 * DAY)
    assert ran == ["03-10T08:00 hello", "03-17T08:00 hello", "03-24T08:00 changed"], "four, and one of them skipped"
    assert {(await app.get_rule(each)).status for each in (rule.id, new.id)} == {"ended"}
    split = (await app.rule_history(rule.id))[-1]
    assert (split.cause, split.detail["into"]) == ("rule_split", str(new.id))


async def test_following_another_rule_from_an_occurrence_on_counts_from_there(
    app: Postdate, ran: list[str], clock: ManualClock
) -> None:
    rule = await daily(app)
    await app.move_occurrence(rule.id, NINE + 4 * DAY, to=NINE + 5 * DAY + HOUR)
    new = await app.update_rule(rule.id, following=NINE + 3 * DAY, rrule="FREQ=DAILY;INTERVAL=2;COUNT=2")
    assert (new.kind, new.starts_wall) == ("rrule", "2026-03-11T09:00:00")
    await travel(app, to=NOON + 6 * DAY)
    assert [said[3:8] for said in ran] == ["09T09", "10T09", "11T09", "13T09", "13T10"]
    with pytest.raises(RuleMoveRefused):
        await app.update_rule(rule.id, following=NINE + 3 * DAY)


async def test_this_and_following_from_the_first_on_is_all(app: Postdate, ran: list[str]) -> None:
    rule = await daily(app)
    same = await app.update_rule(rule.id, following=NINE + DAY, payload={"text": "changed"})
    assert (same.id, same.version) == (rule.id, 2)
    with pytest.raises(Invalid, match="must be an occurrence that is still to come"):
        await app.update_rule((await daily(app, ends_at=NINE + DAY)).id, following=NOON + 2 * DAY)


async def test_a_rule_can_be_run_now_beside_its_occurrences(app: Postdate, ran: list[str], clock: ManualClock) -> None:
    rule = await app.create_rule("post", {"text": "hello", "thing_id": "digest"}, cron="0 9 * * *", tz="UTC")
    await app.run_now(rule.id, actor="ana")
    await travel(app, to=NOON + DAY)
    assert ran == ["03-08T12:00 hello", "03-09T09:00 hello"]


async def test_where_runs_must_not_overlap_running_now_takes_the_place_of_the_next_or_is_refused(
    app: Postdate, ran: list[str], clock: ManualClock
) -> None:
    refused: list[OverlapTaken] = []

    @app.action("long")
    async def long(ctx: Context, payload: dict[str, str]) -> None:
        try:
            await app.run_now(rule.id)
        except OverlapTaken as error:
            refused.append(error)

    rule = await app.create_rule("long", {}, every=HOUR, overlap="skip")
    await app.run_now(rule.id)
    assert due(await queued(app)) == [NOON]
    await travel(app, to=NOON + 2 * HOUR)
    assert len(await app.list(status=Status.PUBLISHED)) == len(refused) == 3


async def test_holidays_are_left_out_and_naming_one_later_withdraws_what_is_queued(
    app: Postdate, ran: list[str], clock: ManualClock
) -> None:
    await app.set_holidays("team", {"2026-03-10": "Founders' day"})
    rule = await daily(app, holidays="team")
    assert due(await queued(app))[:2] == [NINE + DAY, NINE + 3 * DAY]
    await app.set_holidays("team", ["2026-03-11"])
    clock.advance(timedelta(minutes=1))
    await app.tick()
    assert due(await queued(app))[:3] == [NINE + DAY, NINE + 2 * DAY, NINE + 4 * DAY]
    assert await app.holidays("team") == {"2026-03-11": None}
    assert (await app.preview_rule(rule.id, n=3))[2].nominal_at == NINE + 4 * DAY
    with pytest.raises(Invalid, match="must be days of the calendar"):
        await app.set_holidays("team", ["2026-02-30"])


async def test_a_dense_rule_is_materialised_a_part_at_a_time_and_misses_nothing(
    app: Postdate, ran: list[str], clock: ManualClock
) -> None:
    await app.create_rule("post", {"text": ""}, cron="*/10 * * * *", tz="UTC")
    assert len(await queued(app)) == 200, "not all of the 2016"
    clock.advance(20 * HOUR)
    await app.tick()
    assert len(await queued(app)) >= 200


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
