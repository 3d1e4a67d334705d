"""Does the engine get on while another transaction holds a row of the queue?

A caller's own, as long as it likes: a deletion of a workspace, a cancellation that is not committed yet.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from postdate import ActionNotFound, Context, Postdate, Status
from postdate.store.schema import tables
from tests.stories.conftest import NOON, running, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from postdate.clock import ManualClock


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
    waits: list[float] = []

    @live.action("act")
    async def act(ctx: Context, payload: dict[str, object]) -> None:
        fired.append(str(ctx.action.id))

    soon = await live.kernel.read_clock() + timedelta(milliseconds=300)
    action = await live.schedule("act", {"thing_id": "t"}, at=soon)
    async with live.kernel.database.async_engine.connect() as connection:
        await live.cancel(action.id, connection=connection)
        async with running(live):
            await until(lambda: live.kernel.wake)
            loop = asyncio.get_running_loop()
            call_later = loop.call_later

            def noted(delay: float, *args: object, **options: object) -> object:
                waits.append(delay)
                return call_later(delay, *args, **options)  # type: ignore[arg-type]

            monkeypatch.setattr(loop, "call_later", noted)
            await until(lambda: len([wait for wait in waits if wait < 1]) >= 4)
            assert not fired
            await connection.rollback()
            await until(lambda: fired)
    assert sum(wait < 0.05 for wait in waits) <= 1  # it was due between a look at the queue and the alarm
    await live.close()
