"""How are SQLite and PostgreSQL opened, synchronously and asynchronously?"""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic_core import from_json
from sqlalchemy import URL, create_engine, event, make_url
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.ext.asyncio import create_async_engine

from postdate.clock import monotonic
from postdate.errors import Misconfigured
from postdate.store.in_thread import Threads, require_wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import Connection, Dialect, Engine
    from sqlalchemy.ext.asyncio import AsyncEngine
    from sqlalchemy.pool import ConnectionPoolEntry

_Engine = TypeVar("_Engine")
Result = TypeVar("Result")

READ_ONLY = "postdate_read_only"
"""Execution option: this transaction only reads, so on SQLite it need not take the write lock."""

_TIMEOUT = timedelta(seconds=30)

_USED_AT = "postdate_used_at"
_GOOD_FOR = 0.5
"""For how many seconds a connection counts as good that was so when it was last used."""

_SYNC_DRIVERS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg"}
_ASYNC_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "sqlite+aiosqlite": "sqlite+aiosqlite",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
    "postgresql+asyncpg": "postgresql+asyncpg",
}

# Behind a transaction-mode pooler the next transaction meets another server connection, which has prepared nothing, and
# on which a statement that has a name would stay. One without a name is gone with the next; asyncpg cannot do without.
_UNPREPARED: dict[str, dict[str, Any]] = {
    "psycopg": {"prepare_threshold": None},
    "asyncpg": {
        "statement_cache_size": 0,
        "prepared_statement_cache_size": 0,
        "prepared_statement_name_func": lambda: "",
    },
}


class Database:
    """One database by its URL. Engines are made when first needed; `close` gives them back."""

    def __init__(self, url: str, *, timeout: timedelta = _TIMEOUT) -> None:
        """Check the URL; raises `Misconfigured` for what postdate cannot run on.

        `timeout` bounds a connect, the wait for another writer of a SQLite file, and how long a silent network goes
        unnoticed; calls from the event loop are bounded by `postdate.store.bounded`.
        """
        self.url = _checked(url)
        self._timeout = timeout.total_seconds()
        self.dialect = self.url.get_backend_name()
        self._threads: Threads | None = None

    @property
    def is_sqlite(self) -> bool:
        """Whether this is SQLite."""
        return self.dialect == "sqlite"

    @property
    def file(self) -> Path | None:
        """The file of a SQLite database; None for PostgreSQL, and where the URL is of SQLite's own kind."""
        name = str(self.url.database)
        return Path(name) if self.is_sqlite and not name.startswith("file:") else None

    @property
    def libpq_bounds(self) -> dict[str, int]:
        """How libpq notices in time that nobody is there, for a connection of our own making."""
        return _libpq_bounds(self.url, self._timeout)

    @cached_property
    def sync_engine(self) -> Engine:
        """For scripts and synchronous frameworks."""
        url = self.url.set(drivername=_SYNC_DRIVERS[self.dialect])
        engine = _created(create_engine, url, _options(url, self._timeout))
        _prepare(engine)
        return engine

    @cached_property
    def async_engine(self) -> AsyncEngine:
        """For the engine and asynchronous frameworks; PostgreSQL by the driver the URL names, psycopg by default."""
        url = self.url.set(drivername=_ASYNC_DRIVERS[self.url.drivername])
        engine = _created(create_async_engine, url, _options(url, self._timeout))
        _prepare(engine.sync_engine)
        return engine

    async def call(self, function: Callable[[Connection], Result], *, in_turn: bool = False) -> Result:
        """Call a function over a connection of its own, from the event loop; on SQLite in a thread.

        Calls `in_turn` are made one after the other there, which has one writer anyway.
        """
        if self.is_sqlite:
            return await self._living_threads().call(function, in_turn=in_turn)
        async with self.async_engine.connect() as connection:
            return await connection.run_sync(function)

    def _living_threads(self) -> Threads:
        if self._threads is not None and not self._threads.survived:
            self.sync_engine.dispose(close=False)  # SQLite forbids to carry connections across a fork
            self._threads = None
        if self._threads is None:
            self._threads = Threads(self.sync_engine)
        return self._threads

    def close_sync(self) -> None:
        """Close what synchronous callers opened."""
        if self._threads is not None:
            self._threads.close()
            self._threads = None
        if "sync_engine" in self.__dict__:
            self.__dict__.pop("sync_engine").dispose()

    async def close(self) -> None:
        """Close every connection."""
        self.close_sync()
        if "async_engine" in self.__dict__:
            await self.__dict__.pop("async_engine").dispose()


def _checked(text: object) -> URL:
    try:
        url = make_url(text if isinstance(text, URL) else str(text))
    except Exception:  # noqa: BLE001 - a port that is no number, or what is no text even when it is asked to be
        message = "the database URL cannot be read: give sqlite:///file.db or postgresql://host/name"
        raise Misconfigured(message) from None  # the URL may hold a password
    if url.drivername == "postgres":
        url = url.set(drivername="postgresql")
    if url.drivername == "sqlite+pysqlite":
        url = url.set(drivername="sqlite")
    if url.drivername not in _ASYNC_DRIVERS:
        message = f"no driver {url.drivername!r}: use sqlite, postgresql, postgresql+psycopg or postgresql+asyncpg"
        raise Misconfigured(message)
    if url.get_backend_name() == "sqlite" and url.database in {None, "", ":memory:"}:
        message = "an in-memory SQLite forgets what it promised: give a file, as in sqlite:///postdate.db"
        raise Misconfigured(message)
    return url


def _created(create: Callable[..., _Engine], url: URL, options: Mapping[str, Any]) -> _Engine:
    try:
        return create(url, **options)
    except ModuleNotFoundError as error:
        extra = "asyncpg" if error.name == "asyncpg" else "postgres"
        raise Misconfigured(f"{error.name} is not installed: install postdate[{extra}]") from None


def _options(url: URL, timeout: float) -> dict[str, Any]:
    if url.get_backend_name() == "sqlite":
        folder = Path(str(url.database)).parent
        if not folder.is_dir():
            message = f"the folder of the SQLite file does not exist: {folder}"
            raise Misconfigured(message)
        return {"connect_args": {"timeout": timeout}}
    driver = url.get_driver_name()
    bounds = _libpq_bounds(url, timeout) if driver == "psycopg" else {"timeout": timeout}
    return {
        # whatever the server's default: the claim's second look at the guard depends on it
        "isolation_level": "READ COMMITTED",
        "pool_size": 10,
        "max_overflow": 10,
        "pool_timeout": timeout,
        "json_deserializer": from_json,  # three times as fast as json.loads
        "connect_args": {**_UNPREPARED[driver], **bounds},
    }


def _libpq_bounds(url: URL, timeout: float) -> dict[str, int]:
    """Return how libpq notices in time that nobody is there; what the URL says itself wins.

    Nothing of it reaches the server, so that poolers have nothing to refuse.
    """
    bounds = {
        "connect_timeout": max(2, round(timeout)),  # libpq takes no less
        "keepalives_idle": max(1, round(timeout)),
        "keepalives_interval": max(1, round(timeout / 3)),
        "keepalives_count": 3,
        "tcp_user_timeout": round(timeout * 1000),
    }
    return {name: value for name, value in bounds.items() if name not in url.query}


def _prepare(engine: Engine) -> None:
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _open_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    else:
        event.listen(engine, "connect", _note_use)
        event.listen(engine, "checkin", _note_use)
        event.listen(engine, "checkout", partial(_ping_rested, engine.dialect))


def _note_use(_connection: Any, record: ConnectionPoolEntry) -> None:
    record.info[_USED_AT] = monotonic()


def _ping_rested(dialect: Dialect, connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
    """Ask whether a connection is still good that nobody has used for a while; a round trip for each would be dear."""
    if monotonic() - record.info[_USED_AT] < _GOOD_FOR:
        return
    try:
        dialect.do_ping(connection)
    except dialect.loaded_dbapi.Error as error:
        raise InvalidatePoolError from error  # upon which the pool connects anew


def _open_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions are begun by _begin_sqlite, not guessed by the driver
    getattr(connection, "driver_connection", connection).text_factory = _text
    cursor = connection.cursor()
    _write_ahead(cursor)
    cursor.execute("PRAGMA synchronous = FULL")  # what was promised survives a power cut
    cursor.close()


def _text(stored: bytes) -> str:
    """Read text. SQLite takes what is no UTF-8, too, and one such row must not hold up every claim of its type."""
    return stored.decode(errors="replace")


def _write_ahead(cursor: Any) -> None:
    """Switch the file to a write-ahead log. While another process works on it, SQLite says "locked" without waiting."""
    try:
        cursor.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError:
        cursor.execute("BEGIN IMMEDIATE")  # waits
        cursor.execute("COMMIT")
        cursor.execute("PRAGMA journal_mode = WAL")


def _begin_sqlite(connection: Connection) -> None:
    read_only = connection.get_execution_options().get(READ_ONLY, False)
    connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")
    require_wanted(connection)
