"""Does the engine run beside an ASGI server as long as the server does, and is it heard of when it fails?"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from postdate import ActionType, Context, Misconfigured, NotConfigured, Postdate, SchemaMismatch, Status
from postdate.engine import background
from postdate.engine.loop import Engine
from postdate.errors import EngineCancelled
from tests.stories.conftest import NOON, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
def ran(live: Postdate) -> list[str]:
    """What the handler of `act` was called with."""
    things: list[str] = []

    @live.action("act")
    async def act(ctx: Context, payload: dict[str, Any]) -> None:
        things.append(payload["thing_id"])

    return things


def fail_going_round(monkeypatch: pytest.MonkeyPatch, *, times: int) -> None:
    """Let the engine fail where nothing in it expects an error, and lose no time beginning again."""
    go_round, left = Engine._go_round, iter(range(times))

    async def failing(self: Engine, stop: asyncio.Event) -> None:
        if next(left, None) is not None:
            raise LookupError("a bug")
        await go_round(self, stop)

    monkeypatch.setattr(Engine, "_go_round", failing)
    monkeypatch.setattr(background, "_FIRST_PAUSE", 0.0)


async def test_what_is_due_fires_while_the_server_runs(live: Postdate, ran: list[str]) -> None:
    await live.schedule("act", {"thing_id": "before"}, at=NOON)
    async with live.lifespan(object()):
        await live.schedule("act", {"thing_id": "within"}, at=NOON)
        await until(lambda: sorted(ran) == ["before", "within"])
        assert live.engine_error is None
    assert "async_engine" not in vars(live.kernel.database)
    assert {action.status for action in await live.list()} == {Status.PUBLISHED}


async def test_it_fits_into_a_lifespan_of_the_hosts_and_takes_types(live: Postdate, ran: list[str]) -> None:
    order: list[str] = []
    live.action("other")(lambda ctx, payload: order.append("other"))
    await live.schedule("other", {}, at=NOON)

    @asynccontextmanager
    async def lifespan(asgi: object) -> AsyncIterator[None]:
        order.append("opened")
        async with live.lifespan(asgi, types=["act"]):
            yield
        order.append("closed")

    async with lifespan(object()):
        await live.schedule("act", {"thing_id": "t"}, at=NOON)
        await until(lambda: ran == ["t"])
    assert order == ["opened", "closed"]


async def test_a_server_can_be_started_again_in_the_same_process(live: Postdate, ran: list[str]) -> None:
    for number in (1, 2):
        async with live.lifespan(object()):
            await live.schedule("act", {"thing_id": f"thing-{number}"}, at=NOON)
            await until(lambda number=number: len(ran) == number)  # type: ignore[misc]  # bound as it stands


async def test_two_engines_of_one_app_in_one_process_are_refused(live: Postdate) -> None:
    async with live.lifespan(object()):
        with pytest.raises(Misconfigured, match="runs already"):
            async with live.lifespan(object()):
                pass
        assert live.engine_error is None


async def test_the_server_does_not_start_where_a_setting_is_missing(live: Postdate) -> None:
    def missing() -> None:
        raise NotConfigured("SHOP_KEY", needed_by="act")

    live.include(ActionType(name="act", handler=lambda ctx, payload: None, configured=missing))
    with pytest.raises(NotConfigured, match="SHOP_KEY"):
        async with live.lifespan(object()):
            pytest.fail("the server has started")


async def test_the_server_does_not_start_without_the_schema(empty_database_url: str) -> None:
    app = Postdate(empty_database_url)
    with pytest.raises(SchemaMismatch):
        async with app.lifespan(object()):
            pytest.fail("the server has started")


async def test_an_engine_that_fails_is_logged_and_begun_again(
    live: Postdate, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_going_round(monkeypatch, times=2)
    await live.schedule("act", {"thing_id": "t"}, at=NOON)
    with capture_logs() as logs:
        async with live.lifespan(object()):
            await until(lambda: ran == ["t"])
            assert live.engine_error is None
    failures = [log for log in logs if log["event"] == "the engine failed"]
    assert [log["log_level"] for log in failures] == ["error", "error"]
    assert "LookupError: a bug" in failures[0]["traceback"]


async def test_an_engine_that_ran_well_for_long_is_begun_again_at_once(
    live: Postdate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it has failed before; only failure upon failure makes the waits longer."""
    ran_for = iter([0.0, 1.0, 2.0, 3600.0, 5.0])
    now, waits = 0.0, list[float]()
    ended = asyncio.Event()

    async def failing(self: Engine, stop: asyncio.Event) -> None:
        nonlocal now
        if (seconds := next(ran_for, None)) is None:
            ended.set()
            await stop.wait()
            return
        now += seconds
        raise LookupError("a bug")

    async def stopped_within(self: background.Background, seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(Engine, "_go_round", failing)
    monkeypatch.setattr(background.Background, "_stopped_within", stopped_within)
    monkeypatch.setattr(background, "monotonic", lambda: now)
    async with live.lifespan(object()):
        await ended.wait()
    assert waits == [1.0, 2.0, 4.0, 1.0, 2.0]


async def test_an_engine_that_is_down_shows_it_and_the_server_ends_with_its_error(
    live: Postdate, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_going_round(monkeypatch, times=1_000_000)
    monkeypatch.setattr(background, "_FIRST_PAUSE", 3600.0)

    async def serve() -> None:
        async with live.lifespan(object()):
            await until(lambda: live.engine_error is not None)
            assert str(live.engine_error) == "a bug"

    with pytest.raises(LookupError, match="a bug"):
        await serve()


async def test_a_pass_that_fails_shows_until_one_goes_well(
    live: Postdate, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tick, left = Engine.tick, iter([OSError("the database is away")])

    async def failing(self: Engine, now: Any) -> Any:
        if (error := next(left, None)) is not None:
            raise error
        return await tick(self, now)

    monkeypatch.setattr(Engine, "tick", failing)
    monkeypatch.setattr("postdate.engine.loop._PAUSE_AFTER_ERROR", 0.0)
    errors: list[str] = []
    live.action("look")(lambda ctx, payload: errors.append(str(live.engine_error)))
    await live.schedule("look", {}, at=NOON)
    async with live.lifespan(object()):
        await until(lambda: errors and live.engine_error is None)
    assert errors == ["the database is away"]


async def test_an_engine_that_is_cancelled_from_outside_is_no_secret(
    live: Postdate, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def idle(self: Engine, stop: asyncio.Event) -> None:
        await stop.wait()

    async def serve() -> None:
        async with live.lifespan(object()):
            (engine,) = (task for task in asyncio.all_tasks() if task.get_name() == "postdate-engine")
            engine.cancel()
            await until(engine.done)
            assert live.engine_error is not None

    monkeypatch.setattr(Engine, "_go_round", idle)
    with pytest.raises(EngineCancelled):
        await serve()


async def test_an_error_of_the_servers_own_stays_itself(live: Postdate, ran: list[str]) -> None:
    with pytest.raises(ZeroDivisionError):
        async with live.lifespan(object()):
            raise ZeroDivisionError
