"""Is the right lease renewed, and what becomes of a run that has lost its own?"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from sqlalchemy import select, update
from structlog.testing import capture_logs

from postdate import Context, Postdate, Reason, Settings, Status
from postdate.clock import ManualClock
from postdate.engine.dispatch import Dispatcher, Ended
from postdate.engine.renew import Renewal
from postdate.store.leases import Renewed, renew_leases
from postdate.store.queue import claim_due
from tests.endurance.conftest import running, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from uuid import UUID

    import httpx2

    from postdate.domain.action import Claimed
    from postdate.store.transaction import Transaction

NOON = datetime(2027, 3, 14, 12, tzinfo=UTC)
LEASE, MARGIN = timedelta(seconds=60), timedelta(seconds=30)
LASTS = LEASE + MARGIN


class Bench:
    """Claims by hand, runs by a dispatcher, and a renewal whose passes the test makes."""

    def __init__(self, app: Postdate, clock: ManualClock) -> None:
        self.app, self.clock = app, clock
        self.ended: list[Ended] = []
        http: httpx2.AsyncClient = None  # type: ignore[assignment]  # no handler asks for it
        self.dispatcher = Dispatcher(clock=clock, http=http, ended=self.ended.append, has_room=lambda: None)
        self.renewal = Renewal(app.kernel, self.dispatcher, lambda: [ended.claimed for ended in self.ended])

    async def run(self, action_type: str, *, lasts: timedelta = LASTS) -> Claimed:
        """Schedule, claim and start an action; return when its handler has begun."""
        await self.app.schedule(action_type, {}, at=self.clock.now())
        now = self.clock.now()

        def claim(tx: Transaction) -> Sequence[Claimed]:
            return claim_due(
                tx,
                action_type=action_type,
                now=now,
                limit=1,
                lease_token=uuid4(),
                lease_until=now + lasts,
                worker="bench",
            )

        (claimed,) = await self.app.kernel.work(claim)
        self.dispatcher.take_up(claimed, self.app.kernel.registry[action_type]).call()
        await asyncio.sleep(0)
        return claimed

    async def lease_end(self, claimed: Claimed) -> datetime:
        def found(tx: Transaction) -> datetime:
            q = tx.tables.queue
            end: datetime = tx.execute(select(q.c.lease_until).where(q.c.action_id == claimed.action.id)).scalar_one()
            return end

        return await self.app.kernel.work(found)

    async def take_away(self, claimed: Claimed, *, token: UUID) -> None:
        """Let somebody else have the claim."""

        def taken(tx: Transaction) -> None:
            q = tx.tables.queue
            tx.execute(update(q).where(q.c.action_id == claimed.action.id).values(lease_token=token))

        await self.app.kernel.work(taken)

    async def passes(self, after: timedelta) -> tuple[int, int]:
        """Let time pass, renew once, and say how many leases were renewed and how many lost."""
        report = await self.renewal.run_once(self.clock.advance(after))
        return report.renewed, report.lost


@pytest.fixture
async def bench(database_url: str) -> AsyncIterator[Bench]:
    async with opened(database_url) as made:
        yield made


@asynccontextmanager
async def opened(database_url: str) -> AsyncIterator[Bench]:
    clock = ManualClock(NOON)
    settings = Settings(lease=LEASE, lease_margin=MARGIN)
    app = Postdate(database_url, settings=settings, clock=clock)

    @app.action("long", timeout=3600)
    async def long(ctx: Context, payload: dict[str, object]) -> None:
        await asyncio.Event().wait()

    @app.action("short", timeout=60)
    async def short(ctx: Context, payload: dict[str, object]) -> None:
        await asyncio.Event().wait()

    @app.action("ends")
    async def ends(ctx: Context, payload: dict[str, object]) -> None: ...

    made = Bench(app, clock)
    yield made
    await made.dispatcher.drain(0)
    await app.close()


async def test_a_long_run_is_renewed_again_and_again_before_its_lease_ends(bench: Bench) -> None:
    long = await bench.run("long")
    third = LEASE / 3
    assert await bench.passes(third) == (0, 0)
    assert await bench.passes(third) == (0, 0)  # 50 seconds are left: the next pass is in time
    assert await bench.passes(third) == (1, 0)
    for _ in range(20):
        await bench.passes(third)
        assert await bench.lease_end(long) - bench.clock.now() >= third
    assert bench.dispatcher.running


async def test_a_run_whose_time_limit_ends_within_its_lease_is_never_renewed(bench: Bench) -> None:
    short = await bench.run("short")
    for _ in range(3):
        assert await bench.passes(LEASE / 3) == (0, 0)
    assert await bench.lease_end(short) == NOON + LASTS


async def test_what_has_ended_and_is_not_written_yet_keeps_its_lease_too(bench: Bench) -> None:
    ended = await bench.run("ends")
    await bench.dispatcher.drain()
    assert await bench.passes(LEASE) == (1, 0)
    assert await bench.lease_end(ended) == bench.clock.now() + LASTS
    bench.ended.clear()
    assert await bench.passes(LASTS) == (0, 0)


async def test_a_run_that_has_lost_its_lease_is_cut_off_and_no_other(bench: Bench) -> None:
    lost, kept = await bench.run("long"), await bench.run("long")
    await bench.take_away(lost, token=uuid4())
    assert await bench.passes(LEASE) == (1, 1)
    await until(lambda: bench.ended)
    (ended,) = bench.ended
    assert (ended.claimed, str(ended.outcome)) == (lost, "cut off: its lease was lost")
    assert [run.claimed for run in bench.dispatcher.running] == [kept]
    assert await bench.lease_end(lost) == NOON + LASTS, "somebody else's lease is not touched"


async def test_a_row_that_is_locked_is_neither_waited_for_nor_taken_for_lost_and_renewed_afterwards(
    postgres_url: str,
) -> None:
    async with opened(postgres_url) as bench, bench.app.kernel.database.async_engine.connect() as connection:
        locked, free = await bench.run("long"), await bench.run("long")
        q = bench.app.kernel.names.qualifier("postgresql")
        statement = f"select 1 from {q}queue where action_id = '{locked.action.id}' for update"
        await connection.exec_driver_sql(statement)
        assert await bench.passes(LEASE) == (1, 0)
        assert await bench.lease_end(locked) == NOON + LASTS
        assert await bench.lease_end(free) == bench.clock.now() + LASTS
        assert await bench.passes(LEASE / 3) == (0, 0)
        await connection.rollback()
        assert await bench.passes(timedelta(0)) == (1, 0)
        assert await bench.lease_end(locked) == bench.clock.now() + LASTS
        assert len(bench.dispatcher.running) == 2


async def test_a_lease_that_has_run_out_comes_back_to_life_where_nobody_took_it(bench: Bench) -> None:
    late = await bench.run("long")
    assert await bench.passes(timedelta(hours=1)) == (1, 0)
    assert await bench.lease_end(late) == bench.clock.now() + LASTS


async def test_a_lease_whose_action_was_settled_elsewhere_is_not_held(bench: Bench) -> None:
    settled = await bench.run("long")
    elsewhere = bench.app.on(bench.app.settings.database_url, clock=bench.clock)
    bench.clock.advance(timedelta(hours=1))
    assert (await elsewhere.tick(types=["long"])).recovered == 1
    await elsewhere.close()
    assert await bench.passes(timedelta(0)) == (0, 1)
    lease = (settled.action.id, settled.lease_token)
    became = await bench.app.kernel.work(lambda tx: renew_leases(tx, [lease], lease_until=NOON))
    assert became == Renewed(renewed=frozenset(), held=frozenset())


async def test_renewing_survives_a_database_that_is_away(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run goes on, is renewed as soon as that works, and is published."""
    settings = Settings(lease=timedelta(seconds=1), lease_margin=timedelta(0))
    app = Postdate(database_url, settings=settings)
    renewals: list[str] = []
    go = asyncio.Event()

    def flaky(tx: Transaction, leases: set[tuple[UUID, UUID]], *, lease_until: datetime) -> Renewed:
        renewals.append("failed" if len(renewals) < 3 else "renewed")
        if renewals[-1] == "failed":
            raise OSError("the database is away")
        return renew_leases(tx, leases, lease_until=lease_until)

    monkeypatch.setattr("postdate.engine.renew.renew_leases", flaky)

    @app.action("long", timeout=600)
    async def long(ctx: Context, payload: dict[str, object]) -> None:
        await go.wait()

    action = await app.schedule("long", {}, at=NOON - timedelta(days=3650))
    with capture_logs() as logs:
        async with running(app):
            await until(lambda: "renewed" in renewals)
            go.set()
    assert [log["error"] for log in logs if "could not be renewed" in log["event"]] == ["the database is away"] * 3
    found = await app.get(action.id)
    assert (found.status, found.attempt_count) == (Status.PUBLISHED, 1)
    await app.close()


async def test_an_engine_does_not_take_its_own_runs_for_lost(bench: Bench) -> None:
    """It stood still, or could not renew: what it has in hand goes on; what a dead worker has left is settled."""
    app, clock = bench.app, bench.clock
    began, go = asyncio.Event(), asyncio.Event()

    @app.action("slow", timeout=3600)
    async def slow(ctx: Context, payload: dict[str, object]) -> None:
        began.set()
        await go.wait()

    def die(tx: Transaction) -> None:
        claim_due(tx, action_type="slow", now=NOON, limit=1, lease_token=uuid4(), lease_until=NOON, worker="gone")

    lost = await app.schedule("slow", {}, at=NOON)
    await app.kernel.work(die)
    kept = await app.schedule("slow", {}, at=NOON)
    async with app._engine(["slow"]) as engine, engine._working():
        assert (await engine.tick(NOON)).recovered == 1
        await began.wait()
        assert (await engine.tick(clock.advance(2 * LASTS))).recovered == 0
        go.set()
        await engine._dispatcher.drain()
    assert (await app.get(lost.id)).reason is Reason.UNCONFIRMED
    assert (await app.get(kept.id)).status is Status.PUBLISHED
