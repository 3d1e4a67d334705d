"""Does nine in Lisbon stay nine in Lisbon when the rules of the zone change, or the workspace moves?"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import insert, text, update
from structlog.testing import capture_logs

from postdate import (
    Context,
    Doubt,
    Intent,
    Invalid,
    InvalidWallTime,
    MoveRefused,
    Postdate,
    Reason,
    Settings,
    Status,
)
from postdate.engine import shifts
from postdate.engine.follow import follow
from postdate.engine.shifts import Walk
from postdate.engine.zones import ZonePass, ZoneReport
from postdate.store.passes import last_run
from postdate.store.queue import claim_due
from postdate.testing.factories import make_profile, make_workspace
from postdate.testing.travel import travel
from tests.stories.conftest import NOON
from tests.zone_rules import rules_in_force

if TYPE_CHECKING:
    from pathlib import Path

    from postdate import Action
    from postdate.clock import ManualClock
    from postdate.store.transaction import Transaction

LISBON, TOKYO, NEW_YORK = "Europe/Lisbon", "Asia/Tokyo", "America/New_York"
NINE = "2026-07-01T09:00"
IN_LISBON, IN_TOKYO = datetime(2026, 7, 1, 8, tzinfo=UTC), datetime(2026, 7, 1, 0, tzinfo=UTC)
NO_SUMMER = {LISBON: "WET0"}
IN_WINTER_TIME = datetime(2026, 7, 1, 9, tzinfo=UTC)
NEW, NEWER = "2099a", "2099b"
A_MINUTE, A_DAY = timedelta(minutes=1), timedelta(days=1)


@pytest.fixture
def ran(app: Postdate) -> list[datetime]:
    """Register a type that says when it ran."""
    said: list[datetime] = []

    @app.action("mail")
    async def mail(ctx: Context, payload: dict[str, Any]) -> None:
        said.append(ctx.now)

    return said


@pytest.fixture(autouse=True)
def _registered(ran: list[datetime]) -> None:
    """Every test schedules mail."""


async def nine(app: Postdate, tz: str | None = LISBON, **asked: Any) -> Action:
    return await app.schedule("mail", asked.pop("payload", {}), at=asked.pop("at", NINE), tz=tz, **asked)


async def walked(app: Postdate, *, later: timedelta = A_MINUTE) -> ZoneReport:
    return await ZonePass(app.kernel).run_once(app.kernel.clock.now() + later)


async def successor(app: Postdate, old: Action) -> Action:
    (new,) = [each for each in await app.list(limit=1000) if each.replaces_id == old.id]
    return new


def moved(app: Postdate, workspace: UUID, tz: str | None) -> None:
    with app.kernel.transaction(None) as tx:
        table = tx.tables.workspaces
        settings = {} if tz is None else {"account_timezone": tz}
        tx.execute(update(table).where(table.c.id == workspace).values(settings=settings))


# --- other rules ------------------------------------------------------------------------------------------


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
            _insert_bare(tx, action_id, tz=tz, wall_time=wall_time)
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


def _insert_bare(tx: Transaction, action_id: UUID, **values: str) -> None:
    values |= {"id": str(action_id), "action_type": "mail", "gap": "forward", "fold": "first"}
    due = "1782892800000000" if tx.is_sqlite else "timestamptz '2026-07-01 08:00Z'"
    view = f"{'' if tx.is_sqlite else 'postdate.'}scheduled_actions"
    named = ", ".join(f":{name}" if name != "id" or tx.is_sqlite else "cast(:id as uuid)" for name in values)
    tx.execute(
        text(f"insert into {view} (publish_at, payload, {', '.join(values)}) values ({due}, '{{}}', {named})"), values
    )


# --- owners who move --------------------------------------------------------------------------------------


async def test_what_was_scheduled_in_the_zone_of_a_workspace_moves_with_it_and_what_named_its_own_stays(
    app: Postdate, clock: ManualClock, ran: list[datetime]
) -> None:
    workspace, other = (make_workspace(app, account_timezone=LISBON) for _ in range(2))
    its = await nine(app, None, workspace=workspace)
    named, others = await nine(app, LISBON, workspace=workspace), await nine(app, None, workspace=other)
    assert its.intent == Intent(wall_time=NINE, tz=LISBON, gap="forward", fold="first", tz_source="owner")
    await app.tick()
    moved(app, workspace, TOKYO)
    clock.advance(A_MINUTE)
    await app.tick()
    new = await successor(app, its)
    assert (new.publish_at, new.intent) == (IN_TOKYO, Intent(**{**vars(its.intent), "tz": TOKYO}))
    assert (await app.history(new.id))[0].detail["note"] == (
        f"{NINE} in {TOKYO}, no longer {LISBON}, is another instant now"
    )
    assert {(await app.get(each.id)).status for each in (named, others)} == {Status.QUEUED}
    await travel(app, to=IN_LISBON)
    assert ran == [IN_TOKYO, IN_LISBON, IN_LISBON]


async def test_a_person_who_moves_takes_along_what_is_theirs_outside_of_workspaces_with_a_zone(app: Postdate) -> None:
    person = make_profile(app, tz=LISBON)
    office = make_workspace(app, account_timezone=LISBON)
    own, at_work = await nine(app, None, user=person), await nine(app, None, user=person, workspace=office)
    in_a_zoneless_one = await nine(app, None, user=person, workspace=make_workspace(app))
    with app.kernel.transaction(None) as tx:
        profiles = tx.tables.profiles
        tx.execute(update(profiles).where(profiles.c.id == person).values(tz=NEW_YORK))
    assert (await walked(app)).followed == 2
    for each in (own, in_a_zoneless_one):
        assert (await successor(app, each)).publish_at == datetime(2026, 7, 1, 13, tzinfo=UTC)
    assert await app.get(at_work.id) == at_work


async def test_an_owner_who_names_no_zone_any_more_or_one_with_the_same_clocks_moves_nothing(app: Postdate) -> None:
    vague, close_by = (make_workspace(app, account_timezone=LISBON) for _ in range(2))
    kept = [await nine(app, None, workspace=workspace) for workspace in (vague, close_by)]
    moved(app, vague, None)
    moved(app, close_by, "Europe/London")
    assert (await walked(app)).followed == 0
    assert [await app.get(each.id) for each in kept] == kept


async def test_rules_shift_what_an_owner_has_by_the_zone_that_is_theirs_now(app: Postdate, tmp_path: Path) -> None:
    workspace = make_workspace(app, account_timezone=LISBON)
    its = await nine(app, None, workspace=workspace)
    moved(app, workspace, "Europe/London")
    with rules_in_force(tmp_path, NEW, {LISBON: "WET0"}):
        assert (await walked(app)).followed == 0
    with rules_in_force(tmp_path, NEWER, {"Europe/London": "GMT0"}):
        assert (await walked(app)).followed == 1
    assert (await successor(app, its)).publish_at == IN_WINTER_TIME


async def test_the_hosts_own_word_on_a_zone_is_followed_and_one_that_fails_stops_nobody_else(
    database_url: str, clock: ManualClock
) -> None:
    here: dict[UUID | None, str] = {}

    def zone_of(workspace: UUID | None, user: UUID) -> str | None:
        return here[workspace]

    app = Postdate(database_url, clock=clock, zone_of=zone_of)
    app.action("mail")(_nothing)
    broken, moving = make_workspace(app), make_workspace(app)
    here |= {broken: LISBON, moving: LISBON}
    kept, follows = await nine(app, None, workspace=broken), await nine(app, None, workspace=moving)
    del here[broken]
    here[moving] = TOKYO
    report = await walked(app)
    assert (report.followed, report.problems) == (1, [f"zone_of workspace {broken}: KeyError: {broken!r}"])
    assert (await successor(app, follows)).publish_at == IN_TOKYO
    assert await app.get(kept.id) == kept
    await app.close()


async def _nothing(ctx: Context, payload: dict[str, Any]) -> None:
    """Do nothing."""


async def test_an_owner_is_looked_at_once_a_minute_and_what_stays_only_once(app: Postdate) -> None:
    workspace = make_workspace(app, account_timezone=LISBON)
    await nine(app, None, workspace=workspace, zone_policy="pin")
    zone_pass = ZonePass(app.kernel)
    moved(app, workspace, TOKYO)
    looks = [(await zone_pass.run_once(NOON + minutes * A_MINUTE)).looked for minutes in (0, 1, 2)]
    assert looks == [1, 0, 0]
    moved(app, workspace, NEW_YORK)
    assert (await zone_pass.run_once(NOON + 3 * A_MINUTE)).looked == 1


# --- policies, and a person's word ------------------------------------------------------------------------


async def test_the_call_decides_then_the_type_then_the_setting(database_url: str, clock: ManualClock) -> None:
    app = Postdate(database_url, settings=Settings(zone_policy="ask"), clock=clock)
    app.action("mail")(_nothing)
    app.action("alarm", zone_policy="pin")(_nothing)
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


# --- what would change, before anything does --------------------------------------------------------------


async def test_a_check_tells_what_would_change_and_changes_nothing(app: Postdate, tmp_path: Path) -> None:
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


# --- what recurs ------------------------------------------------------------------------------------------

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


async def test_a_rule_that_another_program_only_names_keeps_nothing_from_being_followed(
    app: Postdate, tmp_path: Path
) -> None:
    stray, unheard_of = uuid4(), uuid4()
    with app.kernel.transaction(None) as tx:
        for action_id, rule in ((stray, "no uuid"), (unheard_of, str(uuid4()))):
            _insert_bare(tx, action_id, tz=LISBON, wall_time=NINE, origin="recurring", origin_id=rule)
    with rules_in_force(tmp_path, NEW, NO_SUMMER):
        assert (await walked(app)).followed == 2


# --- races, failures, and a lot of it ---------------------------------------------------------------------


async def shifted(app: Postdate, now: datetime) -> list[Any]:
    walk = Walk(app.kernel, now=now)
    await app.kernel.work(walk.begin, read_only=True)
    found: list[Any] = []
    while (some := await app.kernel.work(walk.following, read_only=True)) is not None:
        found += some
    return found


async def test_a_claim_that_came_first_keeps_its_action(app: Postdate, tmp_path: Path) -> None:
    old, other = await nine(app), await nine(app, at="2026-07-02T09:00")
    with rules_in_force(tmp_path, NEW, NO_SUMMER):
        both = await shifted(app, NOON)

        def claim(tx: Transaction) -> list[Any]:
            lease: dict[str, Any] = {"lease_token": uuid4(), "lease_until": IN_LISBON + A_DAY, "worker": "somebody"}
            return claim_due(tx, action_type="mail", now=IN_LISBON, limit=1, **lease)

        (claimed,) = await app.kernel.work(claim)
        assert claimed.action.id == old.id
        followed, refused = await follow(app.kernel, both, now=NOON)
        assert (followed, refused) == ({other.id}, [])
        assert (await app.get(old.id)).status is Status.SUBMITTED
        assert len(await app.list()) == 3


async def test_a_row_that_another_transaction_has_locked_is_passed_over_and_followed_by_the_next_run(
    postgres_url: str, clock: ManualClock, tmp_path: Path
) -> None:
    app = Postdate(postgres_url, clock=clock)
    app.action("mail")(_nothing)
    locked, free = await nine(app), await nine(app)
    with rules_in_force(tmp_path, NEW, NO_SUMMER):
        async with app.kernel.database.async_engine.begin() as connection:
            lock = text("select from postdate.queue where action_id = :id for update")
            await connection.execute(lock, {"id": locked.id})
            report = await walked(app)
            assert (report.followed, report.passed_over) == (1, 1)
        report = await walked(app)
        assert (report.by_rules, report.followed, report.passed_over) == (True, 1, 0)
    assert {(await successor(app, each)).publish_at for each in (locked, free)} == {IN_WINTER_TIME}
    await app.close()


async def test_two_passes_at_once_replace_each_action_once(app: Postdate, database_url: str, tmp_path: Path) -> None:
    olds = [await nine(app) for _ in range(20)]
    other = Postdate(database_url, clock=app.kernel.clock)
    other.kernel.registry = app.kernel.registry
    with rules_in_force(tmp_path, NEW, NO_SUMMER):
        reports = await asyncio.gather(walked(app), walked(other))
        await walked(app)
    assert sum(report.followed for report in reports) <= len(olds)
    queued = await app.list(status="queued")
    assert {action.replaces_id for action in queued} == {old.id for old in olds}
    assert len(queued) == len(olds)
    await other.close()


async def test_one_whose_replacement_is_refused_stays_and_holds_no_other_back(app: Postdate, tmp_path: Path) -> None:
    """Its thing went out meanwhile, by an outcome that was brought here."""
    barred = await nine(app, payload={"thing_id": "post-1"})
    free = await nine(app, payload={"thing_id": "post-2"})
    with app.kernel.transaction(None) as tx:
        outcome = {"action_id": uuid4(), "user_id": barred.user_id, "status": "published", "finished_at": NOON}
        tx.execute(insert(tx.tables.outcomes).values(**outcome, attempt_count=1, key=barred.key))
    with rules_in_force(tmp_path, NEW, NO_SUMMER):
        report = await walked(app)
    assert (report.followed, report.refused) == (1, 1)
    assert (await app.get(barred.id)).status is Status.QUEUED
    assert (await successor(app, free)).publish_at == IN_WINTER_TIME


async def test_however_much_there_is_only_a_batch_is_in_memory(
    app: Postdate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shifts, "_READ", 3)
    people = [make_profile(app, tz=LISBON) for _ in range(4)]
    offices = [make_workspace(app, account_timezone=LISBON) for _ in range(4)]
    olds = [await nine(app, at=f"2026-07-{day:02}T09:00") for day in range(1, 8)]
    olds += [await nine(app, None, user=person) for person in people]
    olds += [await nine(app, None, workspace=office) for office in offices]
    olds += [await nine(app, None, user=people[0], workspace=office) for office in offices]
    with app.kernel.transaction(None) as tx:
        tx.execute(update(tx.tables.profiles).values(tz=TOKYO))
        tx.execute(update(tx.tables.workspaces).values(settings={"account_timezone": TOKYO}))
    biggest = 0
    following = Walk.following

    def measured(walk: Walk, tx: Transaction) -> Any:
        nonlocal biggest
        found = following(walk, tx)
        biggest = max(biggest, len(found or ()))
        return found

    monkeypatch.setattr(Walk, "following", measured)
    with rules_in_force(tmp_path, NEW, NO_SUMMER):
        report = await walked(app)
    assert (report.followed, biggest) == (len(olds), 3)
    assert {action.replaces_id for action in await app.list(status="queued")} == {old.id for old in olds}


async def test_the_hook_hears_of_what_was_replaced(app: Postdate, tmp_path: Path) -> None:
    heard: list[tuple[UUID, Any]] = []

    def settled(connection: object, actions: Any) -> None:
        heard.extend((action.id, action.reason) for action in actions)

    app.action("told", settled=settled)(_nothing)
    old = await app.schedule("told", {}, at=NINE, tz=LISBON)
    with rules_in_force(tmp_path, NEW, NO_SUMMER):
        await walked(app)
    assert heard == [(old.id, Reason.RESCHEDULED)]


async def test_the_version_gone_by_is_kept_with_the_last_run(app: Postdate, tmp_path: Path) -> None:
    with rules_in_force(tmp_path, NEW, {}):
        await walked(app, later=timedelta(0))
    found = await app.kernel.work(lambda tx: last_run(tx, "zones"), read_only=True)
    assert found is not None
    assert found.state == {"tzdata": NEW, "by_rules_at": NOON.isoformat()}
