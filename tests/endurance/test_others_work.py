"""Is what this engine does not run, or cannot hear of, left alone, told and found in time?"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from postdate import Context, NewAction, Postdate, Published, Reason, Settings, Status
from postdate.clock import ManualClock
from postdate.engine import recover
from postdate.store.queue import claim_due
from tests.endurance.conftest import running, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from structlog.typing import EventDict

    from postdate.store.transaction import Transaction

NOON = datetime(2027, 3, 14, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
async def app(database_url: str, clock: ManualClock) -> AsyncIterator[Postdate]:
    app = Postdate(database_url, clock=clock)
    yield app
    await app.close()


async def idle(ctx: Context, payload: dict[str, object]) -> None: ...


async def die(app: Postdate, action_type: str) -> None:
    """Claim everything that is due of a type, as a worker that then vanishes."""

    def claim(tx: Transaction) -> None:
        claim_due(
            tx, action_type=action_type, now=NOON, limit=100, lease_token=uuid4(), lease_until=NOON, worker="gone"
        )

    await app.kernel.work(claim)


async def test_what_waits_to_be_asked_about_keeps_no_other_lost_lease_from_being_settled(
    app: Postdate, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of it than a batch, all lost before the other, and one slot to ask in."""
    monkeypatch.setattr(recover, "_BATCH", 5)
    asked: list[int] = []

    async def lookup(ctx: Context, payload: dict[str, object]) -> Published:
        asked.append(1)
        return Published()

    app.action("answerable", concurrency=1, lookup=lookup)(idle)
    app.action("plain")(idle)
    for name, count in (("answerable", 20), ("plain", 12)):
        await app.schedule_many([NewAction(action_type=name, payload={"n": n}, at=NOON) for n in range(count)])
        await die(app, name)
    recovered = (await app.tick()).recovered
    plain = await app.list(action_type="plain")
    assert {(one.status, one.reason) for one in plain} == {(Status.FAILED, Reason.UNCONFIRMED)}
    assert recovered == 12 + len(asked)
    assert 1 <= len(asked) <= 3, "one in each batch"


async def test_what_is_of_another_type_and_has_its_hour_is_settled_once_however_many_wait_for_a_slot(
    app: Postdate, clock: ManualClock
) -> None:
    """A type with a look-up and no free slot is not taken for somebody else's."""

    async def lookup(ctx: Context, payload: dict[str, object]) -> Published:
        return Published()

    app.action("answerable", concurrency=1, lookup=lookup)(idle)
    app.action("theirs")(idle)
    for name in ("answerable", "answerable", "theirs"):
        await app.schedule(name, {}, at=NOON)
    await die(app, "answerable")
    await die(app, "theirs")
    clock.advance(timedelta(hours=2))
    assert (await app.tick(types=["answerable"])).recovered == 2
    waiting = await app.list(action_type="answerable", status="submitted")
    assert [one.reason for one in waiting] == [None]


def told(logs: list[EventDict]) -> list[tuple[str, int]]:
    return [(log["action_type"], log["actions"]) for log in logs if "nobody runs it here" in log["event"]]


async def test_what_nobody_runs_here_is_told_once_an_hour_with_its_number(app: Postdate, clock: ManualClock) -> None:
    app.action("ours")(idle)
    app.action("theirs")(idle)
    app.action("gone")(idle)
    for name, count in (("theirs", 3), ("gone", 2), ("ours", 1)):
        for n in range(count):
            await app.schedule(name, {"n": n}, at=NOON)
    await app.schedule("theirs", {}, at=NOON + timedelta(days=1))
    async with app._engine(["ours"]) as engine, engine._working():
        with capture_logs() as logs:
            await engine.tick(clock.now())
            await engine.tick(clock.advance(timedelta(minutes=59)))
        assert told(logs) == []
        with capture_logs() as logs:
            await engine.tick(clock.advance(timedelta(minutes=2)))
            await engine.tick(clock.advance(timedelta(minutes=58)))
        assert told(logs) == [("gone", 2), ("theirs", 3)]
        with capture_logs() as logs:
            await engine.tick(clock.advance(timedelta(minutes=3)))
        assert told(logs) == [("gone", 2), ("theirs", 3)]


async def test_without_listening_no_connection_is_kept_and_the_next_tick_finds_what_others_schedule(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def followed(*_: object) -> None:
        raise AssertionError("it listens")

    monkeypatch.setattr("postdate.engine.watch.follow_changes", followed)
    monkeypatch.setattr("postdate.engine.loop.TICK", timedelta(milliseconds=200))
    app = Postdate(database_url, settings=Settings(listen=False))
    elsewhere = Postdate(database_url)
    fired: list[str] = []

    async def act(ctx: Context, payload: dict[str, str]) -> None:
        fired.append(payload["thing_id"])

    for each in (app, elsewhere):
        each.action("act")(act)
    with capture_logs() as logs:
        async with running(app):
            await app.schedule("act", {"thing_id": "own"}, at=NOON - timedelta(days=3650))
            await until(lambda: fired == ["own"])
            await asyncio.to_thread(
                elsewhere.sync.schedule, "act", {"thing_id": "other"}, at=NOON - timedelta(days=3650)
            )
            await until(lambda: fired == ["own", "other"])
    assert not logs
    await app.close()
    await elsewhere.close()
