"""Does nine in Lisbon stay nine in Lisbon when the rules of the zone change?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from postdate import Doubt, InvalidWallTime, Postdate, Reason, Status
from postdate.testing.factories import make_workspace
from postdate.testing.travel import travel
from tests.stories.conftest import NOON
from tests.stories.nine import (
    A_DAY,
    A_MINUTE,
    IN_LISBON,
    IN_WINTER_TIME,
    LISBON,
    NEW,
    NEWER,
    NINE,
    NO_SUMMER,
    TOKYO,
    insert_bare,
    nine,
    registered_mail,
    successor,
    walked,
)
from tests.zone_rules import rules_in_force

if TYPE_CHECKING:
    from pathlib import Path

    from postdate.clock import ManualClock


@pytest.fixture(autouse=True)
def ran(app: Postdate) -> list[datetime]:
    """Every test schedules mail; this is when it ran."""
    return registered_mail(app)


async def test_an_action_follows_its_wall_time_to_the_instant_that_new_rules_give_it_and_fires_once(
    app: Postdate, clock: ManualClock, ran: list[datetime], tmp_path: Path
) -> None:
    old = await nine(
        app, payload={"thing_id": "post-1", "text": "Olá"}, target="instagram", expires_at=NOON.replace(year=2027)
    )
    await app.tick()
    assert (await app.get(old.id)).publish_at == IN_LISBON
    with rules_in_force(tmp_path, NEW, NO_SUMMER):
        clock.advance(A_MINUTE)
        await app.tick()
        left, new = await app.get(old.id), await successor(app, old)
        assert (left.status, left.reason, left.publish_at) == (Status.CANCELLED, Reason.RESCHEDULED, IN_LISBON)
        assert (new.status, new.publish_at, new.intent) == (Status.QUEUED, IN_WINTER_TIME, old.intent)
        same = ("workspace_id", "user_id", "action_type", "target_key", "payload", "occurrence", "expires_at", "key")
        assert [getattr(new, name) for name in same] == [getattr(old, name) for name in same]
        told = (await app.history(new.id))[0]
        assert (told.actor, told.detail["replaces"]) == ("engine", str(old.id))
        assert told.detail["note"] == f"{NINE} in {LISBON} is another instant now"
        journey = await travel(app, to=IN_WINTER_TIME + A_DAY)
    assert ran == [IN_WINTER_TIME]
    assert [fired.action.id for fired in journey.fired] == [new.id]


async def test_rules_that_leave_an_instant_alone_leave_its_action_alone(app: Postdate, tmp_path: Path) -> None:
    winter, instant = await nine(app, at="2026-12-01T09:00"), await app.schedule("mail", {}, at=IN_LISBON)
    other = await nine(app, TOKYO)
    with rules_in_force(tmp_path, NEW, NO_SUMMER):
        report = await walked(app)
    assert (report.by_rules, report.looked, report.followed) == (True, 2, 0)
    for untouched in (winter, instant, other):
        assert await app.get(untouched.id) == untouched


async def test_everything_is_gone_over_daily_and_at_once_by_newer_rules_but_not_by_older_ones(
    app: Postdate, tmp_path: Path
) -> None:
    """Else two processes with different rules would move it to and fro."""
    reports = []

    async def look(hours: float) -> None:
        reports.append((await walked(app, later=timedelta(hours=hours))).by_rules)

    with rules_in_force(tmp_path, NEW, {}):
        await look(0)
        await look(23)
        await look(24)
    with rules_in_force(tmp_path, NEWER, NO_SUMMER):
        old = await nine(app)
        await look(25)
    with rules_in_force(tmp_path, NEW, {LISBON: "WET0WEST,M3.5.0/1,M10.5.0"}):
        await look(26)
        await look(26 + 24)
        assert (await app.get(old.id)).publish_at == IN_WINTER_TIME
        await look(26 + 48)  # nobody with the newer ones has looked for two days: they were taken back
        assert (await successor(app, old)).publish_at == IN_LISBON
    assert reports == [True, False, True, True, False, False, True]


async def test_what_was_scheduled_by_older_rules_elsewhere_is_found_within_a_day(app: Postdate, tmp_path: Path) -> None:
    with rules_in_force(tmp_path, NEW, NO_SUMMER):
        await walked(app, later=timedelta(0))
    elsewhere = await nine(app)
    assert elsewhere.publish_at == IN_LISBON
    with rules_in_force(tmp_path, NEW, NO_SUMMER):
        assert (await walked(app)).followed == 0
        assert (await walked(app, later=A_DAY)).followed == 1


async def test_a_wall_time_that_falls_into_a_gap_now_is_moved_on_or_asked_about(app: Postdate, tmp_path: Path) -> None:
    """Tokyo's clocks are put forward from two to three on the last Sunday of June."""
    half_past_two = "2026-06-28T02:30"
    forward = await nine(app, TOKYO, at=half_past_two)
    refusing = await nine(app, TOKYO, at=half_past_two, gap="reject")
    with rules_in_force(tmp_path, NEW, {TOKYO: "JST-8JDT,M6.5.0,M9.5.0"}):
        assert (await walked(app)).asked == 1
        assert (await successor(app, forward)).publish_at == datetime(2026, 6, 27, 18, 30, tzinfo=UTC)
        (shift,) = (await app.check_zones()).shifts
        assert (shift.intended.action_id, shift.means, shift.doubt) == (refusing.id, None, Doubt.GAP)
        with pytest.raises(InvalidWallTime):
            await app.follow_zone(refusing.id)
        pinned = await app.pin_zone(refusing.id)
        assert pinned.publish_at == refusing.publish_at
        assert (await app.check_zones()).counts == {"pin": 1}


async def test_a_zone_that_is_none_is_told_and_keeps_no_other_from_being_followed(
    app: Postdate, tmp_path: Path
) -> None:
    """Other programs may write what they like beside the instant."""
    good = await nine(app)
    odd, unreadable = uuid4(), uuid4()
    with app.kernel.transaction(None) as tx:
        for action_id, tz, wall_time in ((odd, "Mars/Base", NINE), (unreadable, LISBON, "nine")):
            insert_bare(tx, action_id, tz=tz, wall_time=wall_time)
    with rules_in_force(tmp_path, NEW, NO_SUMMER):
        report = await walked(app)
        checked = await app.check_zones()
    assert (report.followed, report.asked) == (1, 2)
    assert {shift.intended.action_id: shift.doubt for shift in checked.shifts} == {
        odd: Doubt.ZONE,
        unreadable: Doubt.WALL_TIME,
    }
    assert (await successor(app, good)).publish_at == IN_WINTER_TIME
    assert (await app.get(odd)).status is Status.QUEUED


async def test_a_check_tells_what_would_change_and_changesnothing(app: Postdate, tmp_path: Path) -> None:
    workspace = make_workspace(app, account_timezone=LISBON)
    its, other = await nine(app, None, workspace=workspace), await nine(app)
    with rules_in_force(tmp_path, NEW, {}):
        await walked(app)
    with rules_in_force(tmp_path, NEWER, NO_SUMMER):
        checked, only = await app.check_zones(limit=1), await app.check_zones(workspace=workspace)
        synced = app.sync.check_zones()
    assert (checked.tzdata, checked.gone_by, checked.looked, checked.counts) == (NEWER, NEW, 2, {"follow": 2})
    assert len(checked.shifts) == 1
    assert [shift.intended.action_id for shift in only.shifts] == [its.id]
    assert [(shift.intended.publish_at, shift.means) for shift in synced.shifts] == [(IN_LISBON, IN_WINTER_TIME)] * 2
    assert [await app.get(each.id) for each in (its, other)] == [its, other]


JUNE = datetime(2026, 6, 1, 12, tzinfo=UTC)


async def test_the_occurrences_of_a_rule_follow_and_stay_the_same_occurrences(
    app: Postdate, clock: ManualClock, ran: list[datetime], tmp_path: Path
) -> None:
    """What was skipped stays skipped, what was moved keeps its wall time, and none is made once more."""
    clock.move_to(JUNE)
    rule = await app.create_rule(
        "mail", {"thing_id": "digest", "text": "as ever"}, rrule="FREQ=DAILY", start="2026-06-02T09:00", tz=LISBON
    )
    await app.skip_occurrence(rule.id, "2026-06-04T09:00")
    await app.move_occurrence(rule.id, "2026-06-05T09:00", to="2026-06-05T15:00")
    await app.override_occurrence(rule.id, "2026-06-06T09:00", {"text": "special"})
    await travel(app, to=JUNE + A_DAY)
    assert ran == [datetime(2026, 6, 2, 8, tzinfo=UTC)]
    with rules_in_force(tmp_path, NEW, NO_SUMMER):
        assert (await walked(app)).followed > 10
        assert (await app.check_zones()).counts == {}
        await travel(app, to=JUNE + 2 * A_DAY)
        await app.pause_rule(rule.id)
        await app.resume_rule(rule.id)
        await travel(app, to=JUNE + 20 * A_DAY)
        published = await app.list(status="published", limit=1000)
    wanted = [datetime(2026, 6, day, 15 if day == 5 else 9, tzinfo=UTC) for day in range(3, 22) if day != 4]
    assert ran[1:] == wanted
    assert [action.publish_at for action in published if action.payload["text"] == "special"] == [wanted[2]]
    assert len({action.occurrence for action in published}) == len(published)


async def test_a_rule_that_another_program_only_names_keepsnothing_from_being_followed(
    app: Postdate, tmp_path: Path
) -> None:
    stray, unheard_of = uuid4(), uuid4()
    with app.kernel.transaction(None) as tx:
        for action_id, rule in ((stray, "no uuid"), (unheard_of, str(uuid4()))):
            insert_bare(tx, action_id, tz=LISBON, wall_time=NINE, origin="recurring", origin_id=rule)
    with rules_in_force(tmp_path, NEW, NO_SUMMER):
        assert (await walked(app)).followed == 2
