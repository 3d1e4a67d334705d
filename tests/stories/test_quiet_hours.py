"""What becomes of what falls due in the quiet hours of its workspace?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import update

from postdate import (
    Context,
    Invalid,
    InvalidZone,
    OwnerNotFound,
    Postdate,
    QuietHours,
    Reason,
    Settings,
    Status,
    builtin_action_types,
)
from postdate.testing.factories import make_profile, make_workspace
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from uuid import UUID

    from postdate.clock import ManualClock

NEW_YORK = "America/New_York"
NIGHT = datetime(2026, 3, 8, 23, 30, tzinfo=ZoneInfo(NEW_YORK))
MORNING = datetime(2026, 3, 9, 8, tzinfo=ZoneInfo(NEW_YORK))
NOBODY = "0193e000-0000-7000-8000-000000000000"


@pytest.fixture
def ran(app: Postdate) -> list[str]:
    """Register types that say what they ran, and return what they said."""
    said: list[str] = []

    async def act(ctx: Context, payload: dict[str, str]) -> None:
        said.append(f"{ctx.action.action_type} {ctx.action.workspace_id}")

    app.action("mail")(act)
    app.action("text")(act)
    app.action("password", ignores_quiet_hours=True)(act)
    return said


async def at_night(app: Postdate, clock: ManualClock, workspace: UUID | None, *types: str) -> None:
    """Schedule one action of each type for the night, and tick then."""
    for action_type in types:
        await app.schedule(action_type, {}, at=NIGHT, workspace=workspace)
    clock.move_to(NIGHT)
    await app.tick()


async def test_what_falls_due_then_goes_out_when_they_end_and_no_attempt_is_counted(
    app: Postdate, clock: ManualClock, ran: list[str]
) -> None:
    workspace, other = make_workspace(app, account_timezone=NEW_YORK), make_workspace(app)
    await app.set_quiet_hours(workspace, "22:00-08:00")
    await app.schedule("mail", {}, at=NIGHT, workspace=other)
    await at_night(app, clock, workspace, "mail")
    assert ran == [f"mail {other}"]
    (waiting,) = await app.list(workspace=workspace)
    assert (waiting.status, waiting.attempt_count) == (Status.QUEUED, 0)
    assert (waiting.next_attempt_at, waiting.last_error) == (MORNING.astimezone(UTC), "quiet hours")
    told = (await app.history(waiting.id))[-1]
    assert (told.cause, told.actor) == ("deferred", "engine")
    clock.move_to(MORNING - timedelta(microseconds=1))
    await app.tick()
    assert len(ran) == 1
    clock.move_to(MORNING)
    await app.tick()
    assert ran[1:] == [f"mail {workspace}"]
    (done,) = await app.list(workspace=workspace)
    assert (done.status, done.attempt_count) == (Status.PUBLISHED, 1)


async def test_a_type_that_ignores_them_goes_out_all_the_same(
    app: Postdate, clock: ManualClock, ran: list[str]
) -> None:
    workspace = make_workspace(app)
    await app.set_quiet_hours(workspace, "22:00-08:00", tz=NEW_YORK)
    await at_night(app, clock, workspace, "mail", "password")
    assert ran == [f"password {workspace}"]
    with pytest.raises(Invalid, match="ignores quiet hours"):
        await app.set_quiet_hours(workspace, "22:00-08:00", action_type="password", tz=NEW_YORK)


async def test_those_of_one_type_hold_beside_those_of_the_workspace(
    app: Postdate, clock: ManualClock, ran: list[str]
) -> None:
    workspace = make_workspace(app)
    await app.set_quiet_hours(workspace, "22:00-08:00", action_type="text", tz=NEW_YORK)
    await at_night(app, clock, workspace, "mail", "text")
    assert ran == [f"mail {workspace}"]
    await app.set_quiet_hours(workspace, "07:00-10:00", tz=NEW_YORK)
    clock.move_to(MORNING)
    await app.tick()
    assert len(ran) == 1, "the two make one quiet"
    clock.move_to(MORNING + timedelta(hours=2))
    await app.tick()
    assert ran[1:] == [f"text {workspace}"]


async def test_what_is_nobodys_and_what_is_cleared_goes_out(app: Postdate, clock: ManualClock, ran: list[str]) -> None:
    workspace = make_workspace(app)
    await app.set_quiet_hours(workspace, "22:00-08:00", tz=NEW_YORK)
    assert len(await app.clear_quiet_hours(workspace)) == 1
    assert await app.clear_quiet_hours(workspace) == []
    await app.schedule("mail", {}, at=NIGHT)
    await at_night(app, clock, workspace, "mail")
    assert len(ran) == 2


async def test_what_expires_in_them_does_so_in_time(app: Postdate, clock: ManualClock, ran: list[str]) -> None:
    workspace = make_workspace(app)
    await app.set_quiet_hours(workspace, "22:00-08:00", tz=NEW_YORK)
    expires = NIGHT + timedelta(hours=1)
    action = await app.schedule("mail", {}, at=NIGHT, workspace=workspace, expires_at=expires)
    await at_night(app, clock, workspace)
    clock.move_to(expires)
    await app.tick()
    clock.move_to(expires + timedelta(seconds=1))
    await app.tick()
    found = await app.get(action.id)
    assert (found.status, found.reason, ran) == (Status.FAILED, Reason.EXPIRED, [])


@pytest.mark.parametrize("broken", ["Mars/Base", "", None])
async def test_a_zone_that_cannot_be_read_stops_nobody_else_and_wakes_nobody(
    app: Postdate, clock: ManualClock, ran: list[str], broken: str | None
) -> None:
    workspace, other = make_workspace(app, account_timezone=NEW_YORK), make_workspace(app)
    await app.set_quiet_hours(workspace, "22:00-08:00")
    with app.kernel.transaction(None) as tx:
        w = tx.tables.workspaces
        settings = {} if broken is None else {"account_timezone": broken}
        tx.execute(update(w).where(w.c.id == workspace).values(settings=settings))
    await app.schedule("mail", {}, at=NIGHT, workspace=other)
    await at_night(app, clock, workspace, "mail")
    assert ran == [f"mail {other}"]
    (waiting,) = await app.list(workspace=workspace)
    assert "quiet hours that cannot be read: tz" in str(waiting.last_error)
    assert waiting.next_attempt_at == NIGHT.astimezone(UTC) + timedelta(hours=1)
    await app.clear_quiet_hours(workspace)
    clock.advance(timedelta(hours=1))
    await app.tick()
    assert ran[1:] == [f"mail {workspace}"]


async def test_the_apps_own_zones_count_and_its_errors_stop_nobody_else(database_url: str, clock: ManualClock) -> None:
    zones: dict[UUID | None, str] = {}
    said: list[UUID | None] = []
    app = Postdate(database_url, clock=clock, zone_of=lambda workspace, _user: zones[workspace])
    good, bad = make_workspace(app), make_workspace(app, account_timezone=NEW_YORK)
    zones |= {good: NEW_YORK, bad: NEW_YORK}

    @app.action("mail")
    async def mail(ctx: Context, payload: dict[str, str]) -> None:
        said.append(ctx.action.workspace_id)

    for workspace in (good, bad):
        await app.set_quiet_hours(workspace, "22:00-08:00")
    del zones[bad]
    for owner in (good, bad, None):
        await app.schedule("mail", {}, at=NIGHT, workspace=owner)
    clock.move_to(NIGHT)
    await app.tick()
    assert said == [None]
    found = {each.workspace_id: each for each in await app.list(status="queued")}
    assert found[good].next_attempt_at == MORNING.astimezone(UTC)
    assert "zone_of failed: KeyError" in str(found[bad].last_error)
    zones[bad] = ""  # not None, by which it would leave the answer to our own tables
    clock.advance(timedelta(hours=1))
    await app.tick()
    (waiting,) = await app.list(workspace=bad)
    assert "quiet hours that cannot be read: tz" in str(waiting.last_error), "as a wall time could not be"
    with pytest.raises(InvalidZone):
        await app.schedule("mail", {}, at="2027-03-14T09:00", workspace=bad)
    assert said == [None]
    await app.close()


async def test_without_a_zone_of_its_own_a_workspace_is_quiet_in_that_of_the_actions_user(
    app: Postdate, clock: ManualClock, ran: list[str]
) -> None:
    workspace, user = make_workspace(app), make_profile(app, tz=NEW_YORK)
    with pytest.raises(InvalidZone, match="the workspace names no zone"):
        await app.set_quiet_hours(workspace, "22:00-08:00")
    with app.kernel.transaction(None) as tx:
        w = tx.tables.workspaces
        tx.execute(update(w).where(w.c.id == workspace).values(settings={"account_timezone": "UTC"}))
    await app.set_quiet_hours(workspace, "22:00-08:00")
    with app.kernel.transaction(None) as tx:
        tx.execute(update(w).where(w.c.id == workspace).values(settings={}))
    await app.schedule("mail", {}, at=NIGHT, workspace=workspace, user=user)
    await at_night(app, clock, workspace)
    (waiting,) = await app.list(workspace=workspace)
    assert waiting.next_attempt_at == MORNING.astimezone(UTC)


async def test_they_say_what_they_are_and_who_has_set_them(app: Postdate, ran: list[str]) -> None:
    workspace, other = make_workspace(app, account_timezone=NEW_YORK), make_workspace(app)
    weekend = QuietHours.parse("sat,sun 00:00-00:00", tz="Asia/Tokyo")
    kept = await app.set_quiet_hours(workspace, ["mon-fri 22:00-08:00", weekend], actor="ana", note="please")
    assert [str(each.hours) for each in kept] == ["mon,tue,wed,thu,fri 22:00-08:00", "sat,sun 00:00-00:00"]
    assert [each.hours.tz for each in kept] == [None, "Asia/Tokyo"]
    assert {(each.set_at, each.set_by, each.note) for each in kept} == {(NOON, "ana", "please")}
    assert await app.quiet_hours(workspace=workspace) == kept
    (of_type,) = await app.set_quiet_hours(workspace, "09:00-10:00", action_type="mail")
    (of_other,) = await app.set_quiet_hours(other, "09:00-10:00", tz="UTC")
    found = await app.quiet_hours()
    assert len(found) == 4
    assert all(each in found for each in [*kept, of_type, of_other])
    again = await app.set_quiet_hours(workspace, "21:00-08:00")
    assert sorted(await app.quiet_hours(workspace=workspace), key=str) == sorted([*again, of_type], key=str)


@pytest.mark.parametrize(
    "always", ["00:00-00:00", ["08:00-20:00", "20:00-08:00"], ["mon-fri 12:00-12:00", "sat,sun 12:00-12:00"]]
)
async def test_hours_that_leave_no_time_at_all_are_refused_and_the_old_ones_stay(
    app: Postdate, ran: list[str], always: str | list[str]
) -> None:
    workspace = make_workspace(app, account_timezone=NEW_YORK)
    before = await app.set_quiet_hours(workspace, "22:00-08:00")
    with pytest.raises(Invalid, match="must leave some time"):
        await app.set_quiet_hours(workspace, always)
    with pytest.raises(Invalid, match="must leave some time"):
        await app.set_quiet_hours(workspace, "07:00-23:00", action_type="mail")
    assert await app.quiet_hours() == before


async def test_they_need_a_workspace_a_zone_and_a_form(app: Postdate) -> None:
    workspace = make_workspace(app)
    for wrong in ("at night", [], ["22:00-08:00", 7], None):
        with pytest.raises(Invalid):
            await app.set_quiet_hours(workspace, wrong, tz="UTC")  # type: ignore[arg-type]
    with pytest.raises(InvalidZone):
        await app.set_quiet_hours(workspace, "22:00-08:00", tz="Mars/Base")
    with pytest.raises(OwnerNotFound):
        await app.set_quiet_hours(NOBODY, "22:00-08:00", tz="UTC")


async def test_deleting_a_workspace_deletes_its_quiet_hours(app: Postdate) -> None:
    workspace = make_workspace(app)
    await app.set_quiet_hours(workspace, "22:00-08:00", tz="UTC")
    with app.kernel.transaction(None) as tx:
        tx.execute(tx.tables.workspaces.delete().where(tx.tables.workspaces.c.id == workspace))
    assert await app.quiet_hours() == []


def test_of_the_types_that_are_there_only_calls_to_machines_ignore_them() -> None:
    ignoring = {each.name for each in builtin_action_types(Settings()) if each.ignores_quiet_hours}
    assert ignoring == {"call_webhook"}
