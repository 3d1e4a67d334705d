"""What becomes of a rule's window when somebody pauses the rule, changes it or ends it?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from postdate import ActionType, Context, Invalid, Postdate, Reason, RuleMoveRefused, Status
from postdate.testing.factories import make_profile, make_workspace
from postdate.testing.travel import travel
from tests.stories.conftest import NOON
from tests.stories.daily import DAY, HOUR, NINE, daily, due, queued, registered_post

if TYPE_CHECKING:
    from postdate.clock import ManualClock


@pytest.fixture
def ran(app: Postdate) -> list[str]:
    """What was said, and when."""
    return registered_post(app)


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
