"""Does a stopping engine lose nothing, and does nobody hold it up?"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from postdate import ActionType, Context, Deferred, Postdate, Published, Settings, Status, Unconfirmed
from postdate.clock import ManualClock, monotonic
from postdate.domain.action import Claimed
from postdate.engine.dispatch import Dispatcher, Ended
from postdate.testing.runs import submitted_action
from tests.endurance.conftest import running, until

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    import httpx2

    from postdate.domain.outcome import Outcome

NOON = datetime(2027, 3, 14, 12, tzinfo=UTC)

WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


class Runs:
    """A dispatcher on a clock that stands still, and what its runs came to."""

    def __init__(self) -> None:
        self.ended: list[Ended] = []
        self.freed: list[str] = []
        http: httpx2.AsyncClient = None  # type: ignore[assignment]  # no handler asks for it
        self.dispatcher = Dispatcher(
            clock=ManualClock(NOON), http=http, ended=self.ended.append, has_room=lambda: self.freed.append("late")
        )

    def start(self, handler: Any, **limits: Any) -> ActionType:
        action_type = ActionType(name="act", handler=handler, **limits)
        action = submitted_action(action_type, {})
        lease_until = NOON + timedelta(hours=1)
        claimed = Claimed(action=action, lease_token=UUID(int=2), lease_until=lease_until, due_at=NOON)
        self.dispatcher.take_up(claimed, action_type).call()
        return action_type

    @property
    def outcomes(self) -> list[Outcome]:
        return [ended.outcome for ended in self.ended]


async def test_what_was_claimed_and_has_not_begun_is_handed_back() -> None:
    called: list[int] = []

    async def act(ctx: Context, payload: dict[str, object]) -> None:
        called.append(1)

    runs = Runs()
    action_type = runs.start(act)
    runs.dispatcher.stopping.begin()
    await runs.dispatcher.drain()
    assert [type(outcome) for outcome in runs.outcomes] == [Deferred]
    assert not called
    assert runs.dispatcher.free_slots(action_type) == action_type.concurrency


async def test_what_is_cut_off_before_it_begins_is_handed_back_too() -> None:
    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    runs = Runs()
    runs.start(act)
    for run in list(runs.dispatcher.running):
        run.cut_off("its lease was lost")
    await runs.dispatcher.drain()
    assert [type(outcome) for outcome in runs.outcomes] == [Deferred]


async def test_a_handler_that_hears_of_it_defers_itself_and_gives_its_attempt_back(database_url: str) -> None:
    app = Postdate(database_url)
    began = asyncio.Event()

    @app.action("awaits")
    async def awaits(ctx: Context, payload: dict[str, object]) -> None:
        assert not ctx.stopping
        began.set()
        await ctx.stopping
        assert ctx.stopping
        raise Deferred(ctx.now, "stopping")

    @app.action("looks")
    def looks(ctx: Context, payload: dict[str, object]) -> None:
        assert not ctx.stopping.within(0)
        assert ctx.stopping.within(60)
        raise Deferred(ctx.now, "stopping")

    actions = [await app.schedule(name, {}, at=NOON - timedelta(days=3650)) for name in ("looks", "awaits")]
    async with running(app):
        await began.wait()
    found = [await app.get(action.id) for action in actions]
    ends = [(one.status, one.attempt_count, one.last_error) for one in found]
    assert ends == [(Status.QUEUED, 0, "stopping")] * 2
    await app.close()


async def test_a_claim_that_was_on_its_way_when_it_stopped_is_not_run(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Postdate(database_url)
    called: list[int] = []

    @app.action("act")
    async def act(ctx: Context, payload: dict[str, object]) -> None:
        called.append(1)

    action = await app.schedule("act", {}, at=NOON - timedelta(days=3650))
    async with app._engine(None) as engine:
        claim = engine._rounds._claimed

        async def claimed(free: Any, seen: Any) -> Any:
            found = await claim(free, seen)
            stop.set()
            await until(lambda: engine._dispatcher.stopping)
            return found

        monkeypatch.setattr(engine._rounds, "_claimed", claimed)
        stop = asyncio.Event()
        await engine.run(stop)
    found = await app.get(action.id)
    assert (found.status, found.attempt_count) == (Status.QUEUED, 0)
    assert not called
    await app.close()


def deaf_until(over: asyncio.Event) -> Callable[..., Coroutine[Any, Any, None]]:
    """Return a handler that goes on until then, whatever happens."""

    async def ignores(ctx: Context, payload: dict[str, object]) -> None:
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue

    return ignores


async def test_a_handler_that_ignores_its_time_limit_is_settled_without_it_and_keeps_its_slot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("postdate.engine.run.CUT_OFF_SECONDS", 0.05)
    runs, over = Runs(), asyncio.Event()
    with capture_logs() as logs:
        action_type = runs.start(deaf_until(over), timeout=timedelta(milliseconds=50), concurrency=1)
        await runs.dispatcher.drain()
    (outcome,) = runs.outcomes
    assert isinstance(outcome, Unconfirmed)
    assert outcome.error == "no answer within 0.05 s; the handler did not end"
    assert [log["log_level"] for log in logs] == ["error"]
    assert runs.dispatcher.free_slots(action_type) == 0
    over.set()
    await until(lambda: runs.freed)
    assert runs.dispatcher.free_slots(action_type) == 1
    assert len(runs.ended) == 1


async def test_what_a_handler_says_when_it_is_cut_off_counts() -> None:
    """It may know better: that it had not sent anything, or that it had."""

    async def knows(ctx: Context, payload: dict[str, object]) -> Published:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return Published(provider_id="in time after all")
        raise AssertionError

    runs = Runs()
    runs.start(knows)
    await asyncio.sleep(0)
    await runs.dispatcher.drain(0)
    assert runs.outcomes == [Published(provider_id="in time after all")]


@pytest.mark.parametrize("deaf", [True, False])
async def test_a_lookup_is_bounded_too(monkeypatch: pytest.MonkeyPatch, deaf: bool) -> None:
    monkeypatch.setattr("postdate.engine.run.LOOKUP_SECONDS", 0.05)
    monkeypatch.setattr("postdate.engine.run.CUT_OFF_SECONDS", 0.05)

    async def act(ctx: Context, payload: dict[str, object]) -> None:
        raise ConnectionError("cut")

    async def lookup(ctx: Context, payload: dict[str, object]) -> Published:
        await (deaf_until(over)(ctx, payload) if deaf else asyncio.Event().wait())
        return Published()

    runs, over = Runs(), asyncio.Event()
    runs.start(act, lookup=lookup)
    await runs.dispatcher.drain()
    over.set()
    said = "no answer within 0.05 s"
    doubt = f"{said}; the handler did not end" if deaf else f"ConnectionError: cut; asked: {said}"
    assert [str(outcome) for outcome in runs.outcomes] == [doubt]


async def test_a_run_that_is_cut_off_while_the_engine_stops_is_not_asked_about() -> None:
    """There is no time left for it: a person looks, and is told to."""

    async def act(ctx: Context, payload: dict[str, object]) -> None:
        await asyncio.Event().wait()

    async def lookup(ctx: Context, payload: dict[str, object]) -> Published:
        raise AssertionError("asked")

    runs = Runs()
    runs.start(act, lookup=lookup)
    await asyncio.sleep(0)
    with capture_logs() as logs:
        await runs.dispatcher.drain(0)
    why = "cut off: the engine is stopping"
    assert [str(outcome) for outcome in runs.outcomes] == [why]
    assert [(line["log_level"], line["why"]) for line in logs] == [("warning", why)]


async def test_the_grace_begins_when_the_stop_is_asked_for(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = Postdate(database_url, settings=Settings(stop_grace=timedelta(seconds=30)))
    graces: list[float | None] = []

    async def drain(self: Dispatcher, grace: float | None = None) -> None:
        graces.append(grace)

    monkeypatch.setattr(Dispatcher, "drain", drain)
    async with app._engine([]) as engine:
        stop = asyncio.Event()
        task = asyncio.create_task(engine.run(stop))
        await until(lambda: app.kernel.wake)
        monkeypatch.setattr(engine, "_stopped", -1e12)  # as if the pass had taken for ever to end
        engine._dispatcher.stopping.begin()
        stop.set()
        await task
    assert graces == [0.0]
    await app.close()


async def test_a_time_out_that_is_not_of_the_grace_ends_no_engine_in_silence(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Postdate(database_url)

    async def go_round(stop: asyncio.Event) -> None:
        raise TimeoutError

    async with app._engine([]) as engine:
        monkeypatch.setattr(engine, "_go_round", go_round)
        with pytest.raises(TimeoutError):
            await engine.run(asyncio.Event())
    await app.close()


async def test_a_pass_that_waits_for_the_database_does_not_outlast_the_grace(postgres_url: str) -> None:
    app = Postdate(postgres_url, settings=Settings(stop_grace=timedelta(0), database_timeout=timedelta(seconds=60)))
    app.action("act")(lambda ctx, payload: None)

    def waits() -> object:
        with app.kernel.database.sync_engine.connect() as onlooker:
            return onlooker.execute(text(WAITING)).scalar()

    with app.kernel.transaction(None) as holder:
        holder.execute(text("lock table postdate.heartbeat in access exclusive mode"))
        async with running(app) as stop:
            await until(waits)
            asked_at = monotonic()
            stop.set()
        took = monotonic() - asked_at
    assert took < 30
    await app.close()
