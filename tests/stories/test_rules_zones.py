"""Do people's decisions about single occurrences stay with their wall times when the rules of the zone change?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from postdate import Context, Postdate, Status
from postdate.engine.expand import Expander
from postdate.engine.zones import ZonePass
from postdate.testing.travel import travel
from tests.zone_rules import rules_in_force

if TYPE_CHECKING:
    from pathlib import Path

    from postdate import RecurringRule
    from postdate.clock import ManualClock

LISBON = "Europe/Lisbon"
NO_SUMMER = {LISBON: "WET0"}
NEW, NEWER = "2099a", "2099b"
JUNE = datetime(2026, 6, 1, 12, tzinfo=UTC)
A_MINUTE, A_DAY = timedelta(minutes=1), timedelta(days=1)


@pytest.fixture
def ran(app: Postdate, clock: ManualClock) -> list[tuple[datetime, str]]:
    """Let June begin, and register a type that says when it ran, and what."""
    said: list[tuple[datetime, str]] = []
    clock.move_to(JUNE)

    @app.action("mail")
    async def mail(ctx: Context, payload: dict[str, Any]) -> None:
        said.append((ctx.now, payload["text"]))

    return said


def at(day: int, hour: int) -> datetime:
    return datetime(2026, 6, day, hour, tzinfo=UTC)


async def daily_at_nine(app: Postdate, **asked: Any) -> RecurringRule:
    return await app.create_rule(
        "mail", {"text": "as ever"}, rrule="FREQ=DAILY", start="2026-06-02T09:00", tz=LISBON, **asked
    )


async def decided_about(app: Postdate, rule: RecurringRule, first: int) -> None:
    """Skip the first of three days, move the second from nine to three, and override the third."""
    await app.skip_occurrence(rule.id, f"2026-06-{first:02}T09:00")
    await app.move_occurrence(rule.id, f"2026-06-{first + 1:02}T09:00", to=f"2026-06-{first + 1:02}T15:00")
    await app.override_occurrence(rule.id, f"2026-06-{first + 2:02}T09:00", {"text": "special"})


async def walked(app: Postdate) -> None:
    await ZonePass(app.kernel).run_once(app.kernel.clock.now() + A_MINUTE)


async def test_of_a_paused_rule_they_are_about_the_same_wall_times_when_it_is_resumed(
    app: Postdate, ran: list[tuple[datetime, str]], tmp_path: Path
) -> None:
    """Nothing of it is queued, so that no action tells of the shift."""
    rule = await daily_at_nine(app)
    await decided_about(app, rule, 4)
    await app.pause_rule(rule.id)
    with rules_in_force(tmp_path, NEW, NO_SUMMER):
        await walked(app)
        await walked(app)
        await app.resume_rule(rule.id)
        await travel(app, to=at(8, 0))
    assert ran == [
        (at(2, 9), "as ever"),
        (at(3, 9), "as ever"),
        (at(5, 15), "as ever"),
        (at(6, 9), "special"),
        (at(7, 9), "as ever"),
    ]


async def test_beyond_the_window_too_and_while_nothing_else_has_shifted_yet(
    app: Postdate, ran: list[tuple[datetime, str]], clock: ManualClock, tmp_path: Path
) -> None:
    """The window ends before the clocks change by the new rules: nothing in the queue shifts."""
    clock.move_to(datetime(2026, 6, 1, 12, tzinfo=UTC))
    rule = await daily_at_nine(app)
    await decided_about(app, rule, 24)
    with rules_in_force(tmp_path, NEW, {LISBON: "WET0WEST,M3.5.0/1,M6.3.6/1"}):  # summer ends on 20 June
        await walked(app)
        await travel(app, to=at(28, 0))
    assert [said for said in ran if said[0] >= at(19, 0)] == [
        (at(19, 8), "as ever"),
        *((at(day, 9), "as ever") for day in (20, 21, 22, 23)),
        (at(25, 15), "as ever"),
        (at(26, 9), "special"),
        (at(27, 9), "as ever"),
    ]


async def test_what_the_expander_made_before_the_pass_came_is_withdrawn(
    app: Postdate, ran: list[tuple[datetime, str]], clock: ManualClock, tmp_path: Path
) -> None:
    rule = await daily_at_nine(app)
    await app.skip_occurrence(rule.id, "2026-06-17T09:00")
    with rules_in_force(tmp_path, NEW, NO_SUMMER):
        clock.advance(3 * A_DAY)
        await Expander(app.kernel).run_once(clock.now())
        queued = {each.publish_at: each for each in await app.list(status=Status.QUEUED)}
        assert at(17, 9) in queued
        await walked(app)
        assert (await app.get(queued[at(17, 9)].id)).status is Status.CANCELLED
        await Expander(app.kernel).run_once(clock.now() + A_MINUTE)
        assert at(17, 9) not in {each.publish_at for each in await app.list(status=Status.QUEUED)}


async def test_a_decision_about_a_slot_that_an_edit_took_away_moves_onto_no_other(
    app: Postdate, ran: list[tuple[datetime, str]], tmp_path: Path
) -> None:
    """Nine was eight by UTC. By the new rules that is eight, when it fires now: another one than was left out."""
    rule = await daily_at_nine(app)
    await app.skip_occurrence(rule.id, "2026-06-04T09:00")
    await app.update_rule(rule.id, start="2026-06-02T08:00")
    await app.pause_rule(rule.id)
    with rules_in_force(tmp_path, NEW, NO_SUMMER):
        await walked(app)
        await app.resume_rule(rule.id)
        await travel(app, to=at(5, 0))
        assert [when for when, _ in ran] == [at(2, 8), at(3, 8), at(4, 8)]
        await app.update_rule(rule.id, start="2026-06-02T09:00")
        await app.skip_occurrence(rule.id, "2026-06-06T09:00")
    with rules_in_force(tmp_path, NEWER, {LISBON: "WET0WEST,M3.5.0/1,M10.5.0"}):
        await walked(app)
        await travel(app, to=at(8, 0))
    assert [when for when, _ in ran][3:] == [at(5, 8), at(7, 8)]


async def test_a_moved_occurrence_stays_one_of_the_rule_though_its_old_instant_has_shifted(
    app: Postdate, ran: list[tuple[datetime, str]], tmp_path: Path
) -> None:
    """Moved to where no clock shifted, its action keeps its name; the pause finds it all the same, and the resume."""
    rule = await app.create_rule("mail", {"text": "as ever"}, rrule="FREQ=DAILY", start="2026-06-24T09:00", tz=LISBON)
    await app.move_occurrence(rule.id, "2026-06-24T09:00", to="2026-06-10T15:00")
    with rules_in_force(tmp_path, NEW, {LISBON: "WET0WEST,M3.5.0/1,M6.3.6/1"}):
        await walked(app)
        await app.pause_rule(rule.id)
        assert await app.list(status=Status.QUEUED) == []
        await app.resume_rule(rule.id)
        again = await app.move_occurrence(rule.id, "2026-06-24T09:00", to="2026-06-11T15:00")
        assert [each.id for each in await app.list(status=Status.QUEUED)] == [again.id]
        await travel(app, to=at(26, 0))
    assert [when for when, _ in ran] == [at(11, 14), at(25, 9)]


async def test_of_two_an_hour_apart_each_stays_what_it_was_where_one_comes_to_the_others_instant(
    app: Postdate, ran: list[tuple[datetime, str]], tmp_path: Path
) -> None:
    """Eight by UTC was nine in Lisbon, and is eight: nine is where ten was."""
    rule = await app.create_rule("mail", {"text": "as ever"}, cron="0 9,10 * * *", tz=LISBON)
    await app.skip_occurrence(rule.id, "2026-06-03T10:00")
    await app.override_occurrence(rule.id, "2026-06-04T09:00", {"text": "special"})
    with rules_in_force(tmp_path, NEW, NO_SUMMER):
        await walked(app)
        await travel(app, to=at(5, 0))
    assert ran == [
        (at(2, 9), "as ever"),
        (at(2, 10), "as ever"),
        (at(3, 9), "as ever"),
        (at(4, 9), "special"),
        (at(4, 10), "as ever"),
    ]
