"""What do tests of endurance need: processes, a journal of calls, and an app in this process?"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from postdate import Postdate
from postdate.clock import monotonic
from tests.databases import POSTGRES
from tests.surfaces.cli.program import Program, Running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from postdate import Action
    from tests.databases import Databases

ROOT = Path(__file__).parents[2]
SHOP = "tests.endurance.shop:app"


@dataclass(frozen=True)
class Shop:
    """The app of `tests.endurance.shop`: run by processes, and here to schedule and to look."""

    app: Postdate
    program: Program
    folder: Path

    def working(self, **settings: str) -> Running:
        """Start a worker and wait until it serves."""
        running = self.program.start("worker", SHOP, settings=settings)
        running.wait_for("serving")
        return running

    @property
    def calls(self) -> list[dict[str, Any]]:
        """What the handlers have written down so far, in whatever process."""
        journal = self.folder / "journal"
        return [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []

    def let_go(self) -> None:
        """Let the handlers end that wait for it."""
        (self.folder / "go").touch()

    def get(self, action: Action) -> Action:
        return self.app.sync.get(action.id)


@pytest.fixture(params=["sqlite", POSTGRES[0]])
def shop(
    request: pytest.FixtureRequest, databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shop]:
    """Set up shop on each kind of database, once: processes take their time to start."""
    with databases.fresh(request.param, tmp_path) as url:
        yield from opened(url, tmp_path, monkeypatch)


@pytest.fixture
def corner_shop(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """Set up shop on SQLite alone, for what has nothing to do with the database."""
    yield from opened(sqlite_url, tmp_path, monkeypatch)


def opened(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.setenv("SHOP_FOLDER", str(folder))
    program = Program(url, folder=ROOT)
    app = Postdate(url)
    app.kernel.registry = _types()
    yield Shop(app, program, folder)
    program.kill()
    app.kernel.database.close_sync()


def _types() -> Any:
    from tests.endurance.shop import app  # noqa: PLC0415 - it reads the settings

    return app.kernel.registry


@asynccontextmanager
async def running(*apps: Postdate) -> AsyncIterator[asyncio.Event]:
    """Run the engines of these apps within the block; the event stops them earlier."""
    stop = asyncio.Event()
    engines = [asyncio.create_task(app.run(stop)) for app in apps]
    try:
        yield stop
    finally:
        stop.set()
        await asyncio.wait_for(asyncio.gather(*engines), 60)


def wait_for(condition: Callable[[], object], *, within: float = 100) -> None:
    """Look again and again, without taking the processor from those who are looked at, until the condition holds."""
    pause, end = Event(), monotonic() + within
    while not condition():
        assert monotonic() < end, "it did not happen"
        pause.wait(0.05)


async def until(condition: Callable[[], object], *, within: float = 60) -> None:
    """Give way to the event loop until the condition holds."""
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0.005)
