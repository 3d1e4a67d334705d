"""Does what was scheduled in the zone of an owner move with the owner?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import update

from postdate import Intent, Postdate, Status
from postdate.engine.zones import ZonePass
from postdate.testing.factories import make_profile, make_workspace
from postdate.testing.travel import travel
from tests.stories.conftest import NOON
from tests.stories.nine import (
    A_MINUTE,
    IN_LISBON,
    IN_TOKYO,
    IN_WINTER_TIME,
    LISBON,
    NEW,
    NEW_YORK,
    NEWER,
    NINE,
    TOKYO,
    moved,
    nine,
    nothing,
    registered_mail,
    successor,
    walked,
)
from tests.zone_rules import rules_in_force

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

    from postdate.clock import ManualClock


@pytest.fixture(autouse=True)
def ran(app: Postdate) -> list[datetime]:
    """Every test schedules mail; this is when it ran."""
    return registered_mail(app)


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


async def test_an_owner_who_names_no_zone_any_more_or_one_with_the_same_clocks_movesnothing(app: Postdate) -> None:
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
    app.action("mail")(nothing)
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


async def test_an_owner_is_looked_at_once_a_minute_and_what_stays_only_once(app: Postdate) -> None:
    workspace = make_workspace(app, account_timezone=LISBON)
    await nine(app, None, workspace=workspace, zone_policy="pin")
    zone_pass = ZonePass(app.kernel)
    moved(app, workspace, TOKYO)
    looks = [(await zone_pass.run_once(NOON + minutes * A_MINUTE)).looked for minutes in (0, 1, 2)]
    assert looks == [1, 0, 0]
    moved(app, workspace, NEW_YORK)
    assert (await zone_pass.run_once(NOON + 3 * A_MINUTE)).looked == 1
