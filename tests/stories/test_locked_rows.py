"""Does the engine get on while another transaction holds a row of the queue?

A caller's own, as long as it likes: a deletion of a workspace, a cancellation that is not committed yet.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from sqlalchemy import select

from postdate import ActionNotFound, Context, Postdate, Published, Status
from postdate.domain.action import Claimed
from postdate.engine.dispatch import Ended
from postdate.engine.settler import Settler
from postdate.store.queue import next_due
from postdate.store.schema import tables
from postdate.testing.factories import make_action
from tests.stories.conftest import NOON, running, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import datetime

    from postdate.clock import ManualClock
    from postdate.store.transaction import Transaction


@pytest.fixture
async def app(postgres_url: str, clock: ManualClock) -> AsyncIterator[Postdate]:
    app = Postdate(postgres_url, clock=clock)
    yield app
    await app.close()


@pytest.mark.parametrize("committed", [True, False])
async def test_a_locked_row_keeps_no_other_outcome_from_being_written(app: Postdate, committed: bool) -> None:
    workspaces = tables(app.kernel.names, "postgresql").workspaces
    doomed, go, began = uuid4(), asyncio.Event(), asyncio.Event()

    @app.action("act")
    async def act(ctx: Context, payload: dict[str, object]) -> None:
        if ctx.action.workspace_id is not None:
            began.set()
            await go.wait()

    async with app.kernel.database.async_engine.begin() as connection:
        await connection.execute(workspaces.insert().values(id=doomed))
    held = await app.schedule("act", {}, at=NOON, workspace=doomed)
    async with running(app):
        await began.wait()
        async with app.kernel.database.async_engine.connect() as connection:
            await connection.execute(workspaces.delete().where(workspaces.c.id == doomed))
            go.set()
            for _ in range(3):
                other = await app.schedule("act", {}, at=NOON)
                async with asyncio.timeout(20):
                    while (await app.get(other.id)).status is not Status.PUBLISHED:
                        await asyncio.sleep(0)
            assert (await app.get(held.id)).status is Status.SUBMITTED
            await (connection.commit() if committed else connection.rollback())
    if committed:
        with pytest.raises(ActionNotFound):
            await app.get(held.id)
    else:
        assert (await app.get(held.id)).status is Status.PUBLISHED


async def test_a_locked_due_row_is_not_asked_for_without_pause(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fires soon after it is let go; until then the database is left in peace."""
    live = Postdate(postgres_url)
    fired: list[str] = []
    looks: list[datetime] = []

    @live.action("act")
    async def act(ctx: Context, payload: dict[str, object]) -> None:
        fired.append(str(ctx.action.id))

    def noted(tx: Transaction, action_types: Sequence[str]) -> datetime | None:
        now = live.kernel.clock.now()
        due = next_due(tx, action_types)
        if due is not None and due <= now:
            looks.append(now)
        return due

    monkeypatch.setattr("postdate.engine.rounds.next_due", noted)
    action = await live.schedule("act", {"thing_id": "t"}, at=await live.kernel.read_clock())
    async with live.kernel.database.async_engine.connect() as connection:
        await live.cancel(action.id, connection=connection)
        async with running(live):
            await until(lambda: len(looks) >= 6)
            assert not fired
            await connection.rollback()
            await until(lambda: fired)
    pauses = [after - before for before, after in pairwise(looks)]
    at_once = [pause for pause in pauses if pause < timedelta(milliseconds=90)]
    assert len(at_once) <= 1  # when it began to hear of inserts elsewhere
    await live.close()


async def test_an_outcome_whose_row_is_locked_is_kept_beside_a_late_one_of_the_same_action(
    app: Postdate, clock: ManualClock
) -> None:
    """A lost lease says nothing of the lease after it."""

    @app.action("act")
    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    now_held = Claimed(make_action(app, Status.SUBMITTED, action_type="act"), uuid4(), NOON, NOON)
    late = now_held._replace(lease_token=uuid4())
    queue = tables(app.kernel.names, "postgresql").queue
    async with app.kernel.database.async_engine.begin() as connection:
        await connection.execute(queue.update().values(lease_token=now_held.lease_token))
    settler = Settler(app.kernel, {each.name: each for each in app.kernel.registry}, written=lambda: None)
    batch = [Ended(claimed, Published()) for claimed in (now_held, late)]
    async with app.kernel.database.async_engine.begin() as connection:
        await connection.execute(select(queue).with_for_update())
        for ended in (batch, batch[::-1]):
            assert await settler._settle(ended) == [batch[0]]
