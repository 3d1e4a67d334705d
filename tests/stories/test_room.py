"""When does the engine look for more to run, and how do many runs begin at once?"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, cast
from unittest.mock import MagicMock
from uuid import UUID, uuid4

import pytest

from postdate import ActionType, Context, NewAction, Postdate, Status
from postdate.clock import ManualClock
from postdate.domain.action import Claimed
from postdate.engine.beginning import PORTION, Beginning
from postdate.engine.claim import BATCH, ClaimRound
from postdate.engine.dispatch import Dispatcher
from postdate.engine.rounds import Rounds
from postdate.testing.runs import NOW, submitted_action
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    import httpx2

    from postdate.engine.run import Run


class Runs:
    """A dispatcher of runs that end when they are told to, and how often it said that there is room."""

    def __init__(self, *, concurrency: int) -> None:
        http: httpx2.AsyncClient = None  # type: ignore[assignment]  # no handler asks for it
        self.said = 0
        self.ends = asyncio.Event()
        self.action_type = ActionType(name="act", handler=self.act, concurrency=concurrency)
        self.dispatcher = Dispatcher(clock=ManualClock(NOW), http=http, ended=lambda _: None, has_room=self.note)

    async def act(self, ctx: Context, payload: dict[str, object]) -> None:
        await self.ends.wait()

    def note(self) -> None:
        self.said += 1

    async def run(self, runs: int) -> None:
        for _ in range(runs):
            action = submitted_action(self.action_type, {}, action_id=uuid4())
            claimed = Claimed(action=action, lease_token=uuid4(), lease_until=NOW + timedelta(hours=1), due_at=NOW)
            self.dispatcher.take_up(claimed, self.action_type).call()
        self.ends.set()
        await self.dispatcher.drain()


async def test_it_looks_once_when_all_slots_are_free_that_were_all_taken() -> None:
    runs = Runs(concurrency=3)
    await runs.run(3)
    assert runs.said == 1
    await runs.run(3)
    assert runs.said == 2


async def test_it_waits_for_the_settle_where_slots_had_been_left_free() -> None:
    """Whoever had room has claimed all there was: looking again would find nothing."""
    runs = Runs(concurrency=3)
    await runs.run(2)
    assert runs.said == 0
    await runs.run(1)
    assert runs.said == 0


async def test_an_engine_that_is_cancelled_while_many_runs_begin_gives_back_those_that_have_not(app: Postdate) -> None:
    """Runs begin in portions: no claim of the later ones is left behind."""
    begun: list[UUID] = []

    @app.action("act", concurrency=10 * PORTION)
    async def act(ctx: Context, payload: dict[str, object]) -> None:
        begun.append(ctx.action.id)
        engine.cancel()

    owner = UUID(int=0)
    actions = [NewAction(action_type="act", payload={}, at=NOON, user=owner) for _ in range(10 * PORTION)]
    await app.schedule_many(actions)
    engine = asyncio.create_task(app.run())
    await asyncio.wait([engine])
    published = await app.list(status=Status.PUBLISHED, limit=10 * PORTION)
    queued = await app.list(status=Status.QUEUED, limit=10 * PORTION)
    assert {action.id for action in published} == set(begun)
    assert len(begun) + len(queued) == len(actions)
    assert {action.attempt_count for action in queued} == {0}


@pytest.mark.parametrize(("slots", "begun"), [(2 * BATCH, 1), (BATCH + BATCH // 2, BATCH // 2)])
async def test_the_next_are_claimed_while_the_last_begin_as_soon_as_a_batch_has_room(
    app: Postdate, slots: int, begun: int
) -> None:
    """So that the database does not wait for the runs, nor the runs for the database."""
    ran: list[UUID] = []
    claimed_after: list[int] = []

    @app.action("act", concurrency=slots)
    async def act(ctx: Context, payload: dict[str, object]) -> None:
        ran.append(ctx.action.id)

    claimed = Rounds._claimed

    async def noting(rounds: Rounds, free: Mapping[str, int], seen: datetime | None) -> ClaimRound:
        claimed_after.append(len(ran))
        return await claimed(rounds, free, seen)

    owner = UUID(int=0)
    await app.schedule_many([NewAction(action_type="act", payload={}, at=NOON, user=owner) for _ in range(BATCH + 1)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rounds, "_claimed", noting)
        await app.tick()
    assert len(ran) == BATCH + 1
    assert claimed_after[0] == 0
    assert begun <= claimed_after[1] < BATCH


async def test_whoever_waits_for_room_goes_on_where_a_run_cannot_begin() -> None:
    """No turn of the event loop would bring it any more."""

    class Unable:
        def call(self) -> None:
            raise MemoryError

    beginning = Beginning()
    runs = [MagicMock() for _ in range(PORTION)]
    await beginning.add(cast("list[Run]", [*runs, Unable(), *runs]))
    await asyncio.wait_for(beginning.until(lambda: False), 20)
    with pytest.raises(MemoryError):
        await beginning.end()


async def test_a_single_pass_that_fails_at_its_next_claim_writes_what_it_has_begun(
    app: Postdate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else would: what went out would be taken for doubtful when its lease runs out."""
    claim, rounds = Rounds._claimed, 0

    async def claimed(self: Rounds, free: Mapping[str, int], seen: datetime | None) -> ClaimRound:
        nonlocal rounds
        rounds += 1
        if rounds == 2:
            raise ConnectionError("away")
        return await claim(self, free, seen)

    @app.action("act", concurrency=3 * BATCH)
    async def act(ctx: Context, payload: dict[str, object]) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(Rounds, "_claimed", claimed)
    await app.schedule_many([NewAction(action_type="act", payload={}, at=NOON) for _ in range(2 * PORTION)])
    with pytest.raises(ConnectionError):
        await app.tick()
    assert len(await app.list(status=Status.PUBLISHED)) == 2 * PORTION
