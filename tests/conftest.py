"""Which databases does a test run on?

`database_url`        a fresh, migrated database; the test runs once on each kind that this machine has
`postgres_url`        the same on PostgreSQL alone, once on each server
`sqlite_url`          the same on SQLite alone
`empty_database_url`  like `database_url`, but without our tables

A server starts when the first test asks for it: one of each kind in each worker.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import hypothesis
import pytest
import structlog

from tests.databases import NO_POSTGRES, POSTGRES, Databases

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IN_CI = os.environ.get("CI") == "true"

# This machine may be slow for a moment; and a commit that passed in CI passes there again.
hypothesis.settings.register_profile("postdate", deadline=None, derandomize=IN_CI)
hypothesis.settings.load_profile("postdate")


@pytest.fixture(scope="session")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    started = Databases(tmp_path_factory.mktemp("databases"))
    yield started
    started.close()


@pytest.fixture(params=["sqlite", *POSTGRES])
def database_url(request: pytest.FixtureRequest, databases: Databases, tmp_path: Path) -> Iterator[str]:
    with databases.fresh(request.param, tmp_path) as url:
        yield url


@pytest.fixture(params=POSTGRES)
def postgres_url(request: pytest.FixtureRequest, databases: Databases, tmp_path: Path) -> Iterator[str]:
    with databases.fresh(request.param, tmp_path) as url:
        yield url


@pytest.fixture
def sqlite_url(databases: Databases, tmp_path: Path) -> Iterator[str]:
    with databases.fresh("sqlite", tmp_path) as url:
        yield url


@pytest.fixture(params=["sqlite", *POSTGRES])
def empty_database_url(request: pytest.FixtureRequest, databases: Databases, tmp_path: Path) -> Iterator[str]:
    with databases.fresh(request.param, tmp_path, migrated=False) as url:
        yield url


@pytest.fixture(autouse=True)
def logging_kept() -> Iterator[None]:
    """Give back what a command did to the logging of this process."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what an older PostgreSQL would only repeat: what stands on the store does not see the version.

    The store itself, its races, plans, migrations and faults are tried on each.
    """
    repeated = [item for item in items if _repeats(item)]
    if repeated:
        config.hook.pytest_deselected(items=repeated)
        items[:] = [item for item in items if item not in set(repeated)]


def _repeats(item: pytest.Item) -> bool:
    above = item.path.relative_to(item.config.rootpath / "tests").parts[0] in {"stories", "surfaces"}
    return above and len(POSTGRES) > 1 and any(kind in item.name for kind in POSTGRES[1:])


def pytest_configure() -> None:
    if IN_CI and POSTGRES == [NO_POSTGRES]:
        message = "CI needs PostgreSQL: install the test dependencies, or set POSTDATE_TEST_POSTGRES_URL"
        raise pytest.UsageError(message)


def pytest_report_header() -> str:
    return f"databases: {', '.join(['sqlite', *POSTGRES])}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if POSTGRES == [NO_POSTGRES]:
        terminalreporter.section("NOTHING WAS TESTED ON POSTGRESQL", red=True, bold=True)
        terminalreporter.line("Install the test dependencies, or set POSTDATE_TEST_POSTGRES_URL.")
