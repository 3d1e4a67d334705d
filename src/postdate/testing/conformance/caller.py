"""How does a host call the verbs within a transaction of its own?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from sqlalchemy import NullPool, create_engine, select
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from postdate.testing.conformance.outsider import Outsider

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from postdate.testing.scene import Scene

Kind: TypeAlias = Literal["connection", "session", "async connection", "async session"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Caller:
    """A host with one of SQLAlchemy's four kinds of connection, made by an engine that knows nothing of postdate."""

    def __init__(self, scene: Scene, kind: Kind, **engine_options: Any) -> None:
        self._scene = scene
        self._outsider = Outsider(scene)
        self.is_async = kind.startswith("async")
        self.handle = self._opened(kind, engine_options)

    def call(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        """Call a verb in my transaction."""
        verbs = self._scene.app if self.is_async else self._scene.app.sync
        return self._waited(getattr(verbs, verb)(*args, connection=self.handle, **kwargs))

    def run(self, statement: str, **values: Any) -> None:
        """Run a statement of my own in my transaction."""
        self._waited(self.handle.execute(self._outsider.sql(statement), self._outsider.written(values)))

    def read(self) -> None:
        """Read something in my transaction."""
        self._waited(self.handle.execute(select(1)))

    def commit(self) -> None:
        """Commit my transaction."""
        self._waited(self.handle.commit())

    def rollback(self) -> None:
        """Roll my transaction back."""
        self._waited(self.handle.rollback())

    def close(self) -> None:
        """Give my connection back."""
        self._waited(self.handle.close())

    def _opened(self, kind: Kind, options: dict[str, Any]) -> Any:
        database = self._scene.app.kernel.database
        if not self.is_async:
            engine = create_engine(database.sync_engine.url, poolclass=NullPool, **options)
            return engine.connect() if kind == "connection" else Session(engine)
        async_engine = create_async_engine(database.async_engine.url, poolclass=NullPool, **options)
        if kind == "async session":
            return AsyncSession(async_engine)
        return self._scene.await_(async_engine.connect().start())

    def _waited(self, answer: Coroutine[Any, Any, Any] | Any) -> Any:
        return self._scene.await_(answer) if self.is_async else answer
