"""Is an engine that does not move reported, within a process that must go on?"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from postdate import Context, EngineStuck, Postdate, Settings
from postdate.engine import watchdog
from postdate.engine.watchdog import Watchdog
from tests.endurance.conftest import until, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from structlog.typing import EventDict

PAST = datetime(2020, 1, 1, tzinfo=UTC)


class Seconds:
    """Stands in for the monotonic clock of the watchdog."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    clock = Seconds()
    monkeypatch.setattr(watchdog, "monotonic", clock)
    return clock


class Looks:
    """A watchdog that looks when it is told to, instead of now and then."""

    def __init__(self, *, stuck_after: float, seconds: Seconds) -> None:
        self.stuck: list[EngineStuck] = []
        self.seconds = seconds
        self.dog = Watchdog(stuck_after=stuck_after, stuck=self.stuck.append)
        self._looks = iter(())

    def at(self, *times: float) -> list[EventDict]:
        """Look at these times (seconds from now) and return what was logged."""
        begin = self.seconds.now
        looks = iter(times)

        class Over(Event):
            def wait(_, timeout: float | None = None) -> bool:  # noqa: N805
                when = next(looks, None)
                self.seconds.now = self.seconds.now if when is None else begin + when
                return when is None

        with capture_logs() as logs:
            self.dog._watch(Over())
        return logs


def regular(until_when: float) -> list[float]:
    """Return the times at which a watchdog looks that is never held up."""
    return [5.0 * n for n in range(1, round(until_when / 5) + 1)]


def test_what_does_not_move_is_told_once_as_a_warning_and_once_as_an_error(seconds: Seconds) -> None:
    looks = Looks(stuck_after=300, seconds=seconds)
    logs = looks.at(*regular(400))
    assert [(log["log_level"], log["seconds"]) for log in logs] == [("warning", 60), ("error", 300)]
    assert "test_watchdog.py" in logs[0]["at"]
    assert [error.seconds for error in looks.stuck] == [300]


def test_an_engine_that_waits_for_its_tick_is_not_late(seconds: Seconds) -> None:
    looks = Looks(stuck_after=300, seconds=seconds)
    looks.dog.moved(next_within=60)
    assert looks.at(*regular(115)) == []


def test_nothing_is_ever_stuck_where_that_is_turned_off(seconds: Seconds) -> None:
    looks = Looks(stuck_after=0, seconds=seconds)
    assert [log["log_level"] for log in looks.at(*regular(3600))] == ["warning"]
    assert looks.stuck == []


def test_a_process_that_stood_still_as_a_whole_is_not_stuck(seconds: Seconds) -> None:
    """It was stopped, or its host suspended, for a day: the watchdog slept as long."""
    looks = Looks(stuck_after=300, seconds=seconds)
    assert looks.at(5, 10, 86_400, 86_405) == []
    assert looks.stuck == []


@pytest.fixture
def blocked() -> Iterator[Event]:
    """What blocks the event loop until it is set."""
    event = Event()
    yield event
    event.set()


def test_within_a_host_it_is_reported_and_the_process_goes_on(sqlite_url: str, blocked: Event) -> None:
    """A handler that blocks holds the event loop up; a thread of the host's can still ask."""
    app = Postdate(sqlite_url, settings=Settings(stuck_after=timedelta(milliseconds=200)))

    @app.action("blocking")
    async def blocking(ctx: Context, payload: dict[str, object]) -> None:
        blocked.wait(60)

    async def serve() -> None:
        async with app.lifespan():
            await app.schedule("blocking", {}, at=PAST)
            await until(lambda: blocked.is_set() and app.engine_error is None)

    with capture_logs() as logs:
        thread = Thread(target=asyncio.run, args=[serve()])
        thread.start()
        wait_for(lambda: [log for log in logs if "blocked.wait(60)" in log.get("at", "")])
        wait_for(lambda: isinstance(app.engine_error, EngineStuck))
        blocked.set()
        thread.join(30)
    assert not thread.is_alive()
    assert [log for log in logs if log["event"] == "the engine is stuck"]
