"""Who decides what becomes of an action whose wall time has shifted?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from postdate import Doubt, Invalid, MoveRefused, Postdate, Settings, Status
from postdate.testing.factories import make_workspace
from tests.stories.conftest import NOON
from tests.stories.nine import (
    A_DAY,
    IN_LISBON,
    IN_TOKYO,
    LISBON,
    NEW_YORK,
    NINE,
    TOKYO,
    moved,
    nine,
    nothing,
    registered_mail,
    successor,
    walked,
)

if TYPE_CHECKING:
    from postdate.clock import ManualClock


@pytest.fixture(autouse=True)
def ran(app: Postdate) -> list[datetime]:
    """Every test schedules mail; this is when it ran."""
    return registered_mail(app)


async def test_the_call_decides_then_the_type_then_the_setting(database_url: str, clock: ManualClock) -> None:
    app = Postdate(database_url, settings=Settings(zone_policy="ask"), clock=clock)
    app.action("mail")(nothing)
    app.action("alarm", zone_policy="pin")(nothing)
    workspace = make_workspace(app, account_timezone=LISBON)
    asked: dict[str, Any] = {"workspace": workspace, "at": NINE}
    by_setting = await app.schedule("mail", {}, **asked)
    by_type = await app.schedule("alarm", {}, **asked)
    by_call = await app.schedule("alarm", {}, **asked, zone_policy="follow")
    moved(app, workspace, TOKYO)
    report = await walked(app)
    assert (report.followed, report.pinned, report.asked) == (1, 1, 1)
    courses = {shift.intended.action_id: shift.course for shift in (await app.check_zones()).shifts}
    assert courses == {by_setting.id: "ask", by_type.id: "pin"}
    assert (await successor(app, by_call)).intent.zone_policy == "follow"  # type: ignore[union-attr]
    with pytest.raises(Invalid, match="zone_policy: must be one of follow, ask, pin"):
        await app.schedule("mail", {}, **asked, zone_policy="maybe")  # type: ignore[arg-type]
    await app.close()


async def test_what_would_fire_at_once_or_never_waits_for_a_persons_word(
    app: Postdate, clock: ManualClock, ran: list[datetime]
) -> None:
    """A slip in a workspace's settings must not publish anything."""
    workspace = make_workspace(app, account_timezone=LISBON)
    past = await nine(app, None, workspace=workspace, at="2026-03-08T18:00")
    expiring = await nine(app, None, workspace=workspace, at="2026-03-09T12:00", expires_at=NOON + A_DAY)
    moved(app, workspace, TOKYO)
    with capture_logs() as logs:
        assert (await walked(app)).asked == 1
    assert [line["actions"] for line in logs if line["log_level"] == "warning"] == [1]
    (shift,) = (await app.check_zones()).shifts
    assert (shift.intended.action_id, shift.doubt) == (past.id, Doubt.PAST)
    assert (await successor(app, expiring)).publish_at == datetime(2026, 3, 9, 3, tzinfo=UTC)
    new = await app.follow_zone(past.id, actor="somebody", note="yes, now")
    assert (new.publish_at, new.replaces_id) == (datetime(2026, 3, 8, 9, tzinfo=UTC), past.id)
    await app.tick()
    assert ran == [NOON]


async def test_one_that_would_expire_first_is_asked_about(app: Postdate) -> None:
    workspace = make_workspace(app, account_timezone=TOKYO)
    expiring = await nine(app, None, workspace=workspace, at="2026-03-09T12:00", expires_at=NOON + A_DAY)
    moved(app, workspace, NEW_YORK)
    assert (await walked(app)).asked == 1
    (shift,) = (await app.check_zones()).shifts
    assert (shift.intended.action_id, shift.doubt) == (expiring.id, Doubt.EXPIRED)


async def test_a_pin_holds_until_it_is_taken_away(app: Postdate) -> None:
    workspace = make_workspace(app, account_timezone=LISBON)
    pinned = await app.pin_zone((await nine(app, None, workspace=workspace)).id)
    assert await app.pin_zone(pinned.id) == pinned
    moved(app, workspace, TOKYO)
    assert ((await walked(app)).pinned, (await app.get(pinned.id)).status) == (1, Status.QUEUED)
    followed = await app.follow_zone(pinned.id)
    assert followed.publish_at == IN_TOKYO
    assert await app.follow_zone(followed.id) == followed
    moved(app, workspace, LISBON)
    assert (await walked(app)).followed == 1


async def test_only_what_is_queued_by_a_wall_time_can_be_decided_about(app: Postdate) -> None:
    instant, gone = await app.schedule("mail", {}, at=IN_LISBON), await nine(app)
    await app.cancel(gone.id)
    for verb in (app.follow_zone, app.pin_zone):
        with pytest.raises(Invalid, match="by a wall time"):
            await verb(instant.id)
        with pytest.raises(MoveRefused):
            await verb(gone.id)


async def test_a_reschedule_keeps_where_the_zone_came_from_and_the_policy(app: Postdate) -> None:
    workspace = make_workspace(app, account_timezone=LISBON)
    its = await nine(app, None, workspace=workspace, zone_policy="ask")
    later = await app.reschedule(its.id, at="2026-07-02T09:00")
    assert later.intent is not None
    assert (later.intent.tz_source, later.intent.zone_policy) == ("owner", "ask")
    named = await app.reschedule(later.id, at="2026-07-02T09:00", tz=TOKYO, zone_policy="follow")
    assert named.intent is not None
    assert (named.intent.tz_source, named.intent.zone_policy) == ("call", "follow")
