"""Which fixtures does a project's own test of what it schedules need?

`pytest_plugins = ["postdate.testing.pytest_plugin"]`, in the topmost conftest.py, brings:

`postdate_url`   the URL of a fresh database with our tables: SQLite, or PostgreSQL where `postdate_database` says so
`manual_clock`   a clock that moves only when the test moves it; it stands where the test began
`postdate_app`   `postdate_app(app)` lets your app work on that database, by that clock, until the test ends
`run_due`        `run_due(after=timedelta(days=1))` lets time pass and fires what falls due; not in coroutines
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import TYPE_CHECKING, Literal, Protocol, get_args

import pytest

from postdate.clock import ManualClock, host_time
from postdate.store.migrate import status
from postdate.testing.due import RunDue
from postdate.testing.fresh import FreshDatabases, Kind, fresh_databases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from postdate.app import Postdate

__all__ = ["PostdateApp", "RunDue", "manual_clock", "postdate_app", "postdate_url", "run_due"]

_KINDS = get_args(Kind)


class PostdateApp(Protocol):
    """What the fixture `postdate_app` is."""

    def __call__(self, app: Postdate, database_url: str | None = None) -> Postdate:
        """Let `app` work on the test's database, or on `database_url`, until the test ends; migrate it if need be."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the command line or the ini file say on which database to test."""
    text = "which kind of database `postdate_url` is on: sqlite (the default) or postgresql"
    parser.addoption("--postdate-database", choices=_KINDS, help=text)
    parser.addini("postdate_database", text, default="sqlite")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a kind of database that there is not."""
    if _kind(config) not in _KINDS:
        raise pytest.UsageError(f"postdate_database must be one of {', '.join(_KINDS)}")


@pytest.fixture(scope="session")
def _postdate_databases(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FreshDatabases]:
    with fresh_databases(_kind(request.config), tmp_path_factory.mktemp("postdate")) as databases:
        yield databases


@pytest.fixture
def postdate_url(_postdate_databases: FreshDatabases) -> Iterator[str]:
    """Return the URL of a fresh database with our tables in it."""
    with _postdate_databases.fresh() as url:
        yield url


@pytest.fixture
def manual_clock() -> ManualClock:
    """Return a clock that stands still at the time at which the test began, until the test moves it."""
    return ManualClock(host_time())


@pytest.fixture
def run_due(manual_clock: ManualClock) -> Iterator[RunDue]:
    """Return what lets time pass and fires what falls due."""
    with RunDue(manual_clock) as run:
        yield run


@pytest.fixture
def postdate_app(postdate_url: str, manual_clock: ManualClock, run_due: RunDue) -> Iterator[PostdateApp]:
    """Return what lets an app work on the test's database and by its clock."""

    def work_on(app: Postdate, database_url: str | None = None) -> Postdate:
        placed.enter_context(app.working_on(database_url or postdate_url, clock=manual_clock))
        placed.callback(_close, app)
        if not status(app.settings.database_url, app.kernel.names).current:
            app.migrate()
        run_due.apps.append(app)
        return app

    with ExitStack() as placed:
        yield work_on


def _close(app: Postdate) -> None:
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        runner.run(app.close())


def _kind(config: pytest.Config) -> Kind:
    kind: Literal["sqlite", "postgresql"] = config.getoption("postdate_database") or config.getini("postdate_database")
    return kind
