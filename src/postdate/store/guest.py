"""How do we work inside a transaction that the caller has open?

SQLAlchemy's connections and sessions serve as they are. Before a plain driver connection stands a proxy that hands
out cursors and swallows everything that would end, close or change what is not ours: a plain engine over the
connection would roll the caller's work back.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from sqlalchemy import Connection, Engine
from sqlalchemy.orm import Session, scoped_session
from sqlalchemy.pool import StaticPool

from postdate.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.engine import Dialect

    from postdate.store.database import Database


class DriverConnection(Protocol):
    """A connection of sqlite3 or psycopg, or `django.db.connection`."""

    def cursor(self) -> Any:
        """Return a cursor."""


Lendable = Connection | Session | scoped_session[Any] | DriverConnection


@contextmanager
def lent_connection(connection: object, database: Database) -> Iterator[Connection]:
    """Give a SQLAlchemy connection that works inside the transaction open on the caller's.

    Raises `Misconfigured` where no transaction is open or could be, for another kind of database, and for what is
    no connection at all.
    """
    match connection:
        case Connection():
            yield _in_transaction(connection)
        case Session() | scoped_session():
            yield _in_transaction(connection.connection())
        case _:
            with _guest_engine(connection, database).connect() as guest:
                yield guest


def _in_transaction(connection: Connection) -> Connection:
    if getattr(connection.connection.dbapi_connection, "autocommit", False) is True:
        raise Misconfigured("connection= must be in a transaction, not in autocommit")
    return connection


def _guest_engine(connection: object, database: Database) -> Engine:
    raw = _driver_connection(connection)
    if isinstance(raw, sqlite3.Connection):
        kind, in_transaction = "sqlite", _sqlite_in_transaction(raw)
    elif _is_psycopg(raw):
        kind, in_transaction = "postgresql", _psycopg_in_transaction(raw)
    else:
        accepted = "a SQLAlchemy Connection or Session, or a connection of sqlite3, psycopg or Django"
        raise Misconfigured(f"connection= takes {accepted} here, not {type(connection).__name__}")
    if kind != database.dialect:
        raise Misconfigured(f"connection= is to {kind}, but postdate lives in {database.dialect}")
    if not in_transaction:
        hint = "begin one first" if raw is connection else "use transaction.atomic()"
        raise Misconfigured(f"connection= must be in a transaction, not in autocommit: {hint}")
    return Engine(StaticPool(lambda: _Guest(raw), reset_on_return=None), _ready_dialect(database), database.url)


def _sqlite_in_transaction(raw: sqlite3.Connection) -> bool:
    """Whether one is open, or begins with the first statement; Python 3.12 has a second way to say that none does."""
    if raw.text_factory is not str:
        raise Misconfigured("connection= must return text as str: it has a text_factory of its own")
    begins = raw.isolation_level is not None and getattr(raw, "autocommit", False) is not True
    return begins or raw.in_transaction


def _psycopg_in_transaction(raw: Any) -> bool:
    """Whether one is open, or begins with the first statement; a failed one is for the database to tell of."""
    if raw.pgconn.pipeline_status:
        raise Misconfigured(
            "connection= must not be in pipeline mode, in which no answer comes before the next question"
        )
    return not raw.autocommit or raw.info.transaction_status.name in {"INTRANS", "INERROR"}


def _driver_connection(connection: Any) -> Any:
    """Return the driver's own connection, where Django's wrapper keeps one."""
    if not hasattr(connection, "ensure_connection"):
        return connection
    connection.ensure_connection()
    return connection.connection


def _is_psycopg(connection: object) -> bool:
    """Whether this is psycopg's synchronous connection, or derived from it; asked without importing the extra."""
    classes = {(base.__module__.partition(".")[0], base.__name__) for base in type(connection).__mro__}
    return ("psycopg", "Connection") in classes


def _ready_dialect(database: Database) -> Dialect:
    """Return the dialect of our own engine, which knows the server once it has connected."""
    engine = database.sync_engine
    if engine.dialect.server_version_info is None:
        engine.connect().close()
    return engine.dialect


class _Guest:
    """What SQLAlchemy sees of the caller's connection."""

    def __init__(self, raw: Any) -> None:
        object.__setattr__(self, "_raw", raw)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def __setattr__(self, name: str, value: object) -> None:
        """Change nothing: settings of the connection are the caller's."""

    def cursor(self, *args: Any, **options: Any) -> Any:
        """Return a cursor that takes parameters and gives rows in the usual way, whatever the caller's own does."""
        if isinstance(self._raw, sqlite3.Connection):
            cursor = self._raw.cursor(*args, **options)
            cursor.row_factory = None
            return cursor
        from psycopg import ClientCursor, Cursor  # noqa: PLC0415 - an extra
        from psycopg.rows import tuple_row  # noqa: PLC0415

        usual = ClientCursor if issubclass(self._raw.cursor_factory, ClientCursor) else Cursor
        return usual(self._raw, row_factory=tuple_row)

    def commit(self) -> None:
        """Leave it to the caller."""

    def rollback(self) -> None:
        """Leave it to the caller: our part is undone by its savepoint."""

    def close(self) -> None:
        """Leave it to the caller."""
