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
import shutil
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING
from uuid import uuid4

import hypothesis
import pytest
import structlog

from postdate.store.migrate import upgrade
from postdate.testing.postgres import LocalPostgres, available, create_database, drop_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IN_CI = os.environ.get("CI") == "true"
URL_GIVEN = os.environ.get("POSTDATE_TEST_POSTGRES_URL")
LOCAL = {f"postgresql-{source}": source for source in available()}
NO_POSTGRES = "postgresql-missing"
POSTGRES = [*LOCAL, *(["postgresql-env"] if URL_GIVEN else [])] or [NO_POSTGRES]
# Statistics change only where a test says so. Race tests open many connections.
SETTINGS = {"autovacuum": "off", "max_connections": "200"}

# This machine may be slow for a moment; and a commit that passed in CI passes there again.
hypothesis.settings.register_profile("postdate", deadline=None, derandomize=IN_CI)
hypothesis.settings.load_profile("postdate")


class PostgresServer:
    """A server on which tests get databases of their own, copied from one that was migrated once."""

    def __init__(self, admin_url: str) -> None:
        self.admin_url = admin_url

    @cached_property
    def template(self) -> str:
        name = f"template_{uuid4().hex}"
        upgrade(create_database(self.admin_url, name))
        return name

    def close(self) -> None:
        if "template" in self.__dict__:
            drop_database(self.admin_url, self.template)


class Databases:
    """What one worker has started so far."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._servers: dict[str, PostgresServer] = {}
        self._undo = ExitStack()

    @contextmanager
    def fresh(self, kind: str, folder: Path, *, migrated: bool = True) -> Iterator[str]:
        """Give the URL of a database that nobody has used."""
        if kind == "sqlite":
            file = folder / "postdate.db"
            if migrated:
                shutil.copyfile(self._sqlite_template, file)
            yield f"sqlite:///{file}"
            return
        if kind == NO_POSTGRES:
            pytest.skip("there is no PostgreSQL on this machine")
        server, name = self._server(kind), f"test_{uuid4().hex}"
        try:
            yield create_database(server.admin_url, name, server.template if migrated else None)
        finally:
            drop_database(server.admin_url, name)

    def close(self) -> None:
        self._undo.close()

    @cached_property
    def _sqlite_template(self) -> Path:
        file = self._folder / "template.db"
        upgrade(f"sqlite:///{file}")
        return file

    def _server(self, kind: str) -> PostgresServer:
        if kind not in self._servers:
            if kind in LOCAL:
                local = LocalPostgres(LOCAL[kind], fsync=False, settings=SETTINGS)
                admin_url = self._undo.enter_context(local).url()
            else:
                admin_url = str(URL_GIVEN)
            self._servers[kind] = PostgresServer(admin_url)
            self._undo.callback(self._servers[kind].close)
        return self._servers[kind]


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
