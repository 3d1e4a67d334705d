"""Does the zone pass get along with others at work, with refusals, and with a lot to do?"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import insert, text, update

from postdate import Postdate, Reason, Status
from postdate.engine import shifts
from postdate.engine.follow import follow
from postdate.engine.shifts import Walk
from postdate.store.passes import last_run
from postdate.store.queue import claim_due
from postdate.testing.factories import make_profile, make_workspace
from tests.stories.conftest import NOON
from tests.stories.nine import (
    A_DAY,
    IN_LISBON,
    IN_WINTER_TIME,
    LISBON,
    NEW,
    NINE,
    NO_SUMMER,
    TOKYO,
    nine,
    nothing,
    registered_mail,
    successor,
    walked,
)
from tests.zone_rules import rules_in_force

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from postdate.clock import ManualClock
    from postdate.store.transaction import Transaction


@pytest.fixture(autouse=True)
def ran(app: Postdate) -> list[datetime]:
    """Every test schedules mail; this is when it ran."""
    return registered_mail(app)


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

        def claim(tx: Transaction) -> Sequence[Any]:
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
    app.action("mail")(nothing)
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

    app.action("told", settled=settled)(nothing)
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
