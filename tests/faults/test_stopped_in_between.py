"""Is nothing lost, and nothing repeated, when somebody goes while something is under way?"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import delete

from postdate import ActionNotFound, ActionType, Context, NotSent, Postdate, Status
from postdate.clock import ManualClock
from postdate.domain.states import Cause
from postdate.engine.settle import Ending, EndingSet, settle_set
from postdate.testing.factories import make_workspace
from postdate.testing.moves import claim, settle_as, settlement
from tests.stories.conftest import NOON, until

if TYPE_CHECKING:
    from uuid import UUID

    from postdate import Action
    from postdate.store.transaction import Transaction

GAPS = [timedelta(seconds=59), timedelta(seconds=61), timedelta(days=7)]


@pytest.mark.parametrize("gap", GAPS, ids=str)
async def test_what_comes_due_between_two_engines_is_fired_by_the_second(
    app: Postdate, database_url: str, clock: ManualClock, gap: timedelta
) -> None:
    """SC38: due is what is not later than now, however long ago the last pass was."""
    ran: list[str] = []

    async def act(ctx: Context, payload: dict[str, str]) -> None:
        ran.append(payload["thing_id"])

    other = Postdate(database_url, clock=clock)
    for engine in (app, other):
        engine.action("act")(act)
    await app.schedule("act", {"thing_id": "before"}, at=NOON)
    await app.schedule("act", {"thing_id": "just after"}, at=NOON + timedelta(microseconds=1))
    await app.tick()
    await app.close()
    clock.advance(gap)
    await other.tick()
    assert ran == ["before", "just after"]
    await other.close()


class Held:
    """A handler that waits until it is let go, and then ends as it is told."""

    def __init__(self, app: Postdate) -> None:
        self.entered, self.let_go = asyncio.Event(), asyncio.Event()
        self.calls = 0
        self.error: Exception | None = None
        app.action("act")(self)

    async def __call__(self, ctx: Context, payload: dict[str, object]) -> str:
        self.calls += 1
        self.entered.set()
        await self.let_go.wait()
        if self.error is not None:
            raise self.error
        return "provider-1"


async def test_an_action_that_is_cancelled_while_it_runs_ends_as_its_run_does_and_runs_no_more(app: Postdate) -> None:
    """SC32: the caller is told that it came too late."""
    held = Held(app)
    action = await app.schedule("act", {"thing_id": "t"}, at=NOON)
    pass_ = asyncio.create_task(app.tick())
    await held.entered.wait()
    assert (await app.cancel(action.id)).status is Status.SUBMITTED
    held.let_go.set()
    await pass_
    await app.tick()
    found = await app.get(action.id)
    assert (found.status, found.provider_id, held.calls) == (Status.PUBLISHED, "provider-1", 1)


@pytest.mark.parametrize("error", [None, NotSent("busy", retry_after=0)])
async def test_nothing_runs_again_for_an_owner_who_was_deleted_while_a_run_was_under_way(
    app: Postdate, clock: ManualClock, error: Exception | None
) -> None:
    """SC32: the run ends, and no trace or retry of it comes back."""
    held, workspace = Held(app), make_workspace(app)
    held.error = error
    action = await app.schedule("act", {}, at=NOON, workspace=workspace)
    pass_ = asyncio.create_task(app.tick())
    await held.entered.wait()
    await app.kernel.work(lambda tx: deleted(tx, workspace))
    held.let_go.set()
    await pass_
    await until(lambda: held.calls == 1)
    for _ in range(3):
        clock.advance(timedelta(hours=1))
        assert (await app.tick()).due_count == 0
    assert held.calls == 1
    with pytest.raises(ActionNotFound):
        await app.get(action.id)


def test_of_two_runs_of_one_action_that_end_in_one_batch_only_the_one_with_the_lease_counts(database_url: str) -> None:
    """The first had lost its lease, and the same process claimed the action again; its hook hears of no end."""
    told: list[Action] = []
    app = Postdate(database_url, clock=ManualClock(NOON))
    act = ActionType(name="act", handler=print, settled=lambda _connection, actions: told.extend(actions))
    app.include(act)
    action = app.sync.schedule("act", {"thing_id": "t"}, at=NOON)
    lost = claim(app, action)
    assert settle_as(app, app.sync.get(action.id), Cause.DEFERRED)
    held = claim(app, action, now=NOON + timedelta(days=1))
    assert lost
    assert held
    ends = ((lost, Cause.PUBLISHED), (held, Cause.DEFERRED))
    with app.kernel.transaction(None) as tx:
        endings = [
            Ending(
                action_id=action.id,
                action_type="act",
                lease_token=token,
                settlement=settlement(cause, attempt_count=1, now=NOON),
            )
            for token, cause in ends
        ]
        assert settle_set(tx, {"act": act}, EndingSet.of(tx.tables, endings), now=NOON) == {action.id}
    assert app.sync.get(action.id).status is Status.QUEUED
    assert told == []
    app.kernel.database.close_sync()


def deleted(tx: Transaction, workspace: UUID) -> None:
    tx.execute(delete(tx.tables.workspaces).where(tx.tables.workspaces.c.id == workspace))
