"""Which errors of a database pass by themselves, so that the same call may go well later?"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from postdate.errors import DatabaseTimedOut
from postdate.store.passing import passes

if TYPE_CHECKING:
    from pathlib import Path


def raised(original: Exception, *, lost: bool = False) -> DBAPIError:
    """Return what SQLAlchemy makes of a driver's error."""
    kind = OperationalError if isinstance(original, sqlite3.OperationalError) else DBAPIError
    return kind("select 1", {}, original, connection_invalidated=lost)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(),
        PoolTimeout(),
        DatabaseTimedOut(30.0),
        raised(psycopg.OperationalError("the connection is lost"), lost=True),
        raised(psycopg.errors.DeadlockDetected()),
        raised(psycopg.errors.SerializationFailure()),
        raised(psycopg.errors.AdminShutdown()),
        raised(psycopg.errors.TooManyConnections()),
        raised(psycopg.errors.DiskFull()),
    ],
    ids=lambda error: type(getattr(error, "orig", error)).__name__,
)
def test_a_database_that_is_away_or_busy_may_answer_later(error: Exception) -> None:
    assert passes(error)


@pytest.mark.parametrize(
    "error",
    [
        raised(psycopg.errors.UniqueViolation()),
        raised(psycopg.errors.UndefinedTable()),
        raised(psycopg.errors.QueryCanceled()),  # a statement_timeout: the same statement takes as long again
        raised(sqlite3.IntegrityError("UNIQUE constraint failed")),
        ValueError("no error of a database's"),
    ],
    ids=lambda error: type(getattr(error, "orig", error)).__name__,
)
def test_what_was_asked_in_vain_would_be_so_again(error: Exception) -> None:
    assert not passes(error)


def test_sqlite_is_locked_for_a_while_but_wrong_for_ever(tmp_path: Path) -> None:
    """It calls both an operational error."""
    engine = create_engine(f"sqlite:///{tmp_path / 'any.db'}", connect_args={"timeout": 0, "isolation_level": None})
    with engine.connect() as one, engine.connect() as other:
        one.exec_driver_sql("BEGIN IMMEDIATE")
        with pytest.raises(OperationalError, match="locked") as locked:
            other.exec_driver_sql("BEGIN IMMEDIATE")
        with pytest.raises(OperationalError, match="no such table") as wrong:
            other.execute(text("select * from missing"))
    engine.dispose()
    assert passes(locked.value)
    assert not passes(wrong.value)
