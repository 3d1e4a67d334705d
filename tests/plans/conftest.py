"""Where do plans come from? Crowded databases, filled once on each server, in several states of their statistics."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from sqlalchemy import NullPool, create_engine, text

from postdate.testing.postgres import create_database, drop_database
from tests.databases import NO_POSTGRES, POSTGRES
from tests.plans.crowd import FEW, MANY, fill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from tests.databases import Databases


@dataclass(frozen=True)
class Crowd:
    """A crowded database twice over: with statistics from when there were but a few rows, and with fresh ones."""

    stale: str
    fresh: str


@contextmanager
def rolled_back(url: str) -> Iterator[Connection]:
    """Open a transaction that is undone at the end."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        yield connection
        connection.rollback()


@pytest.fixture(scope="session", params=POSTGRES)
def postgres_crowd(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Crowd]:
    if request.param == NO_POSTGRES:
        pytest.skip("there is no PostgreSQL on this machine")
    admin_url, copy = databases._server(request.param).admin_url, f"fresh_{uuid4().hex}"
    with databases.fresh(request.param, tmp_path_factory.mktemp("crowd")) as stale:
        engine = create_engine(stale, poolclass=NullPool)
        with engine.begin() as connection:
            connection.execute(text("set session_replication_role = replica"))  # no triggers
            fill(connection, 1, FEW)
            connection.execute(text("analyze"))
            fill(connection, FEW + 1, MANY)
        try:
            fresh = create_database(admin_url, copy, template=engine.url.database)
            with create_engine(fresh, poolclass=NullPool).begin() as connection:
                connection.execute(text("analyze"))
            yield Crowd(stale, fresh)
        finally:
            drop_database(admin_url, copy)


@pytest.fixture(scope="session")
def sqlite_crowd(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the URL of a crowded database with fresh statistics."""
    with databases.fresh("sqlite", tmp_path_factory.mktemp("crowd")) as url:
        with create_engine(url, poolclass=NullPool).connect() as connection:
            for hurry in ("journal_mode = off", "synchronous = off", "cache_size = -200000"):
                connection.exec_driver_sql(f"pragma {hurry}")
            fill(connection, 1, MANY)
            connection.execute(text("analyze"))
            connection.commit()
        yield url
