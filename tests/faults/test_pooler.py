"""Does everything hold behind a pooler that gives every transaction another server connection?"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import psycopg
import pytest
from sqlalchemy import make_url

from postdate import Context, NewAction, Postdate, Reason, Status
from postdate.clock import ManualClock
from postdate.testing.factories import STATES
from postdate.testing.scene import Scene
from tests.faults.pooler import SERVER_CONNECTIONS
from tests.model.test_model import play
from tests.stories.conftest import NOON, running, until

if TYPE_CHECKING:
    from datetime import datetime

WORKERS = 8
DUE = 400


def asked(url: str, question: str) -> object:
    """Return the server's answer."""
    conninfo = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(conninfo) as connection:
        return connection.execute(question).fetchall()


async def test_eight_engines_over_two_connections_run_each_action_once_with_either_driver(
    pooled_url: str, postgres_url: str
) -> None:
    """SC48: half of them with asyncpg, while others schedule."""
    ran: Counter[str] = Counter()
    drivers = [pooled_url, pooled_url.replace("+psycopg", "+asyncpg")]
    engines = [Postdate(drivers[n % 2], clock=ManualClock(NOON)) for n in range(WORKERS)]
    for engine in engines:

        @engine.action("act", concurrency=10)
        async def act(ctx: Context, payload: dict[str, str]) -> None:
            ran[payload["thing_id"]] += 1

    names = [f"thing-{n}" for n in range(DUE)]

    async def work(number: int) -> None:
        news = [NewAction(action_type="act", payload={"thing_id": name}, at=NOON) for name in names[number::WORKERS]]
        made = await engines[number].schedule_many(news)
        assert not any(isinstance(one, Exception) for one in made)
        await engines[number].tick()

    async with AsyncExitStack() as ending:
        for engine in engines:
            ending.push_async_callback(engine.close)
        await asyncio.gather(*(work(number) for number in range(WORKERS)))
        await engines[0].tick()
    assert ran == Counter(names)
    sessions = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    assert asked(postgres_url, sessions) == [(SERVER_CONNECTIONS,)]
    assert asked(pooled_url, "select name from pg_prepared_statements") == []
    assert asked(postgres_url, "select pid from pg_locks where locktype = 'advisory'") == []


def test_whatever_happens_in_whatever_order_is_as_in_memory(pooled_url: str) -> None:
    """SC48: claims, lost leases, late finishes, keys, guards and verdicts."""
    play(pooled_url, examples=4)


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
async def test_a_running_engine_fires_what_is_queued_in_its_own_process_on_time(pooled_url: str, driver: str) -> None:
    """SC48: it cannot hear of others, which then wait for its tick; that breaks nothing."""
    app = Postdate(pooled_url.replace("+psycopg", f"+{driver}"))
    ran: list[datetime] = []

    @app.action("act")
    async def act(ctx: Context, payload: dict[str, object]) -> None:
        ran.append(ctx.now)

    async with running(app):
        await until(lambda: app.kernel.wake)
        action = await app.schedule("act", {}, at=await app.kernel.read_clock())
        await until(lambda: ran)
    assert (await app.get(action.id)).status is Status.PUBLISHED
    await app.close()


def test_every_state_can_be_reached(pooled_url: str) -> None:
    """SC48: by every verb and every settle."""
    with Scene.on(pooled_url) as scene:
        for status, reason in STATES:
            made = scene.action(status, reason)
            assert (made.status, made.reason) == (status, reason)
        assert len(scene.app.sync.list(reason=Reason.UNCONFIRMED)) == 1
