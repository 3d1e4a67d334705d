"""What does every store function need to know about where it runs?"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy.dialects import postgresql, sqlite

from postdate.errors import Misconfigured
from postdate.store.schema import Tables, tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from sqlalchemy import Connection, CursorResult, Executable, Table

    from postdate.store.names import Names

P = ParamSpec("P")
S = TypeVar("S")


@dataclass(frozen=True)
class Transaction:
    """An open transaction, ours or the caller's, and the names of our tables in it."""

    connection: Connection
    tables: Tables
    queued: list[datetime] = field(default_factory=list)
    """When what this transaction has queued is due."""

    @classmethod
    def on(cls, connection: Connection, names: Names) -> Transaction:
        """Return the transaction that is open on `connection`."""
        return cls(connection, tables(names, connection.dialect.name))

    @property
    def is_sqlite(self) -> bool:
        """Whether this is SQLite: a single writer, no row locks, no arrays."""
        return self.tables.is_sqlite

    def insert(self, table: Table) -> postgresql.Insert | sqlite.Insert:
        """Begin an INSERT that can say ON CONFLICT, for which SQLAlchemy has no common word."""
        return sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)

    def prepared(self, build: Callable[Concatenate[Transaction, P], S], *args: P.args, **kwargs: P.kwargs) -> S:
        """Return the statement that `build` makes of these arguments; it is made once for these tables.

        Building one takes several times as long as running it, so it names its parameters instead of holding values.
        """
        known = self.tables.statements
        asked = (build, args, tuple(kwargs.items()))
        if asked not in known:
            known[asked] = build(self, *args, **kwargs)
        statement: S = known[asked]
        return statement

    def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[Any]:
        """Run one statement."""
        return self.connection.execute(statement, parameters)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what the block did if it raises, and leave the transaction usable."""
        begin_on_sqlite(self.connection)
        with self.connection.begin_nested():
            yield


def begin_on_sqlite(connection: Connection) -> None:
    """Begin for real where Python's sqlite3 has only promised to: else RELEASE of the first savepoint would commit.

    IMMEDIATE, because a transaction that reads first and writes later fails at once when another has written.
    Raises `Misconfigured` for a connection in autocommit.
    """
    if connection.dialect.name != "sqlite":
        return
    if not connection.in_transaction():
        connection.begin()  # as the first statement would have, so that an engine which begins for real does so first
    driver = connection.connection.driver_connection
    if driver is None or driver.in_transaction:
        return
    if driver.isolation_level is None:
        raise Misconfigured("connection= must be in a transaction, not in autocommit")
    connection.exec_driver_sql("BEGIN IMMEDIATE")
