"""How does a host call the verbs within a transaction of its own?"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from sqlalchemy import Connection, NullPool, create_engine, select
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from postdate.testing.conformance.outsider import Outsider
    from postdate.testing.scene import Scene

Kind: TypeAlias = Literal["connection", "session", "async connection", "async session", "driver"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Caller:
    """A host with a connection of its own, made by somebody who knows nothing of postdate.

    One of SQLAlchemy's four kinds, or the driver's itself: sqlite3's or psycopg's.
    """

    def __init__(self, scene: Scene, outsider: Outsider, kind: Kind, *, autocommit: bool = False) -> None:
        self._scene = scene
        self._outsider = outsider
        self.is_async = kind.startswith("async")
        self.handle = self._opened(kind, autocommit=autocommit)

    def call(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        """Call a verb in my transaction."""
        verbs = self._scene.app if self.is_async else self._scene.app.sync
        return self._waited(getattr(verbs, verb)(*args, connection=self.handle, **kwargs))

    def write(self, statement: str, **values: Any) -> None:
        """Run a statement of my own in my transaction."""
        written = self._outsider.written(values)
        if isinstance(self.handle, Connection | Session) or self.is_async:
            self._waited(self.handle.execute(self._outsider.sql(statement), written))
        else:
            mark = ":{}" if self._outsider.is_sqlite else "%({})s"
            for name in values:
                statement = statement.replace(f":{name}", mark.format(name))
            self.handle.execute(statement.replace("{ns}", self._outsider.ns), written)

    def read(self) -> None:
        """Read something in my transaction."""
        if isinstance(self.handle, Connection | Session) or self.is_async:
            self._waited(self.handle.execute(select(1)))
        else:
            assert self.handle.execute("select 1").fetchall() == [(1,)]

    def commit(self) -> None:
        """Commit my transaction."""
        self._waited(self.handle.commit())

    def rollback(self) -> None:
        """Roll my transaction back."""
        self._waited(self.handle.rollback())

    def close(self) -> None:
        """Give my connection back."""
        self._waited(self.handle.close())

    def _opened(self, kind: Kind, *, autocommit: bool) -> Any:
        database = self._scene.app.kernel.database
        if kind == "driver":
            return self._driver_connection(autocommit=autocommit)
        options: dict[str, Any] = {"isolation_level": "AUTOCOMMIT"} if autocommit else {}
        if not self.is_async:
            engine = create_engine(database.sync_engine.url, poolclass=NullPool, **options)
            return engine.connect() if kind == "connection" else Session(engine)
        async_engine = create_async_engine(database.async_engine.url, poolclass=NullPool, **options)
        if kind == "async session":
            return AsyncSession(async_engine)
        return self._scene.await_(async_engine.connect().start())

    def _driver_connection(self, *, autocommit: bool) -> Any:
        url = self._scene.app.kernel.database.url
        if self._outsider.is_sqlite:
            return sqlite3.connect(str(url.database), isolation_level=None if autocommit else "DEFERRED")
        import psycopg  # noqa: PLC0415 - an extra

        conninfo = url.set(drivername="postgresql").render_as_string(hide_password=False)
        return psycopg.connect(conninfo, autocommit=autocommit)

    def _waited(self, answer: Coroutine[Any, Any, Any] | Any) -> Any:
        return self._scene.await_(answer) if self.is_async else answer
