"""Does the running engine wake at the right moment, and stop without losing anything?"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine

from postdate import (
    ActionType,
    Context,
    Misconfigured,
    NotConfigured,
    Postdate,
    Reason,
    SchemaMismatch,
    Settings,
    Status,
)
from tests.stories.conftest import running, until

if TYPE_CHECKING:
    from pathlib import Path

SOON = timedelta(milliseconds=300)


class Witness:
    """A handler that writes down when it was called."""

    def __init__(self, app: Postdate, name: str = "act") -> None:
        self.lateness: list[timedelta] = []
        app.action(name)(self)

    async def __call__(self, ctx: Context, payload: dict[str, object]) -> None:
        self.lateness.append(ctx.now - ctx.action.publish_at)

    async def called(self, times: int = 1) -> None:
        await until(lambda: len(self.lateness) >= times)


async def now(app: Postdate) -> datetime:
    return await app.kernel.read_clock()


async def test_a_local_insert_moves_the_alarm(live: Postdate) -> None:
    """P1, P35: the tick is a minute away, and the action fires on time, never early."""
    witness = Witness(live)
    async with running(live):
        await until(lambda: live.kernel.wake)
        await live.schedule("act", {}, at=await now(live) + SOON)
        await witness.called()
        await asyncio.to_thread(live.sync.schedule, "act", {}, at=await now(live) + SOON)
        await witness.called(2)
    assert all(timedelta(0) <= late < timedelta(seconds=5) for late in witness.lateness)


async def test_an_insert_from_another_process_wakes_the_engine(live: Postdate, database_url: str) -> None:
    """NOTIFY on PostgreSQL, `PRAGMA data_version` on SQLite: long before the next tick."""
    witness = Witness(live)
    elsewhere = Postdate(database_url)
    Witness(elsewhere)
    async with running(live):
        await live.schedule("act", {"first": True}, at=await now(live))
        await witness.called()
        await elsewhere.schedule("act", {}, at=await now(elsewhere) + SOON)
        await witness.called(2)
    assert timedelta(0) <= witness.lateness[1] < timedelta(seconds=10)
    await elsewhere.close()


async def test_an_insert_in_the_callers_transaction_fires_after_its_commit(live: Postdate) -> None:
    witness = Witness(live)
    other = create_engine(live.kernel.database.sync_engine.url)
    async with running(live):
        await live.schedule("act", {"first": True}, at=await now(live))
        await witness.called()

        def in_one_transaction() -> None:
            with other.begin() as connection:
                live.sync.schedule("act", {}, at=live.kernel.clock.now(), connection=connection)
                assert len(witness.lateness) == 1

        await asyncio.to_thread(in_one_transaction)
        await witness.called(2)
    other.dispose()


async def test_a_stuck_call_delays_no_other_type(live: Postdate) -> None:
    """P42."""
    let_go = asyncio.Event()

    @live.action("stuck", concurrency=1)
    async def stuck(ctx: Context, payload: dict[str, object]) -> None:
        await let_go.wait()

    witness = Witness(live)
    async with running(live):
        for _ in range(3):
            await live.schedule("stuck", {}, at=await now(live))
        await live.schedule("act", {}, at=await now(live) + SOON)
        await witness.called()
        assert len(await live.list(action_type="stuck", status="queued")) == 2
        let_go.set()
        async with asyncio.timeout(20):
            while await live.list(action_type="stuck", status="queued"):
                await asyncio.sleep(0)


async def test_stopping_waits_for_what_is_running_and_claims_no_more(live: Postdate) -> None:
    entered, let_go = asyncio.Event(), asyncio.Event()

    @live.action("act", concurrency=1)
    async def act(ctx: Context, payload: dict[str, object]) -> str:
        entered.set()
        await let_go.wait()
        return "done"

    async with running(live) as stop:
        first = await live.schedule("act", {"n": 1}, at=await now(live))
        await entered.wait()
        second = await live.schedule("act", {"n": 2}, at=await now(live))
        stop.set()
        await until(lambda: live.kernel.wake is None)
        let_go.set()
    assert (await live.get(first.id)).status is Status.PUBLISHED
    assert (await live.get(second.id)).status is Status.QUEUED


async def test_what_outlives_the_grace_time_is_unconfirmed(database_url: str) -> None:
    app = Postdate(database_url, settings=Settings(stop_grace=timedelta(milliseconds=50)))
    entered = asyncio.Event()

    @app.action("act")
    async def act(ctx: Context, payload: dict[str, object]) -> None:
        entered.set()
        await asyncio.Event().wait()

    async with running(app) as stop:
        action = await app.schedule("act", {}, at=await now(app))
        await entered.wait()
        stop.set()
    found = await app.get(action.id)
    assert (found.status, found.reason) == (Status.FAILED, Reason.UNCONFIRMED)
    await app.close()


async def test_a_missing_configuration_is_an_error_at_start(live: Postdate) -> None:
    def configured() -> None:
        raise NotConfigured("POSTDATE_SMTP_URL", needed_by="send_email")

    async def send(ctx: Context, payload: dict[str, object]) -> None: ...

    live.include(ActionType(name="send_email", handler=send, configured=configured))
    action = await live.schedule("send_email", {}, at=await now(live))
    with pytest.raises(NotConfigured, match="send_email needs POSTDATE_SMTP_URL"):
        await live.run()
    assert (await live.get(action.id)).status is Status.QUEUED


async def test_an_engine_goes_on_without_a_type_that_is_not_required_unless_it_is_asked_for(live: Postdate) -> None:
    def configured() -> None:
        raise NotConfigured("SHOP_KEY", needed_by="act")

    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    live.include(ActionType(name="act", handler=act, configured=configured, required=False))
    action = await live.schedule("act", {}, at=await now(live))
    with pytest.raises(NotConfigured, match="act needs SHOP_KEY"):
        await live.tick()
    live.include(ActionType(name="other", handler=act))
    other = await live.schedule("other", {}, at=await now(live))
    await live.tick()
    assert [(await live.get(each.id)).status for each in (action, other)] == [Status.QUEUED, Status.PUBLISHED]
    with pytest.raises(NotConfigured, match="act needs SHOP_KEY"):
        await live.tick(types=["act"])


async def test_the_engine_refuses_a_database_without_our_schema(empty_database_url: str) -> None:
    app = Postdate(empty_database_url)
    with pytest.raises(SchemaMismatch, match=r"has no schema of postdate.s, .*`postdate db upgrade`"):
        await app.run()
    await app.close()


async def test_the_postgresql_driver_may_be_asyncpg(postgres_url: str) -> None:
    app = Postdate(postgres_url.replace("+psycopg", "+asyncpg"))
    witness = Witness(app)
    async with running(app):
        await until(lambda: app.kernel.wake)
        await app.schedule("act", {"thing_id": "t", "text": "🙂"}, at=await now(app) + SOON, tz="UTC")
        await asyncio.to_thread(app.sync.schedule, "act", {"thing_id": "u"}, at=await now(app) + SOON)
        await witness.called(2)
    await app.close()


async def test_a_file_that_is_gone_is_reported_not_created(tmp_path: Path) -> None:
    app = Postdate(f"sqlite:///{tmp_path}/missing/postdate.db")
    with pytest.raises(Misconfigured, match="folder"):
        await app.list()
