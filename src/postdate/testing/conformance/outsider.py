"""How do other programs work on the database beside the app?

Like psql, PostgREST or the host's own code: a plain connection that knows nothing of postdate.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Engine, Row

    from postdate.testing.scene import Scene

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SYNC_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}

Values: TypeAlias = dict[str, Any]
"""Columns of a row, or arguments of a verb."""

Refusal = DBAPIError
"""What a database raises when it refuses a statement."""


class Outsider:
    """Another program at the scene's database. In its SQL `{ns}` stands before the names of our tables."""

    def __init__(self, scene: Scene) -> None:
        database, names = scene.app.kernel.database, scene.app.kernel.names
        self._url = database.url
        self.is_sqlite = database.is_sqlite
        self.ns = names.qualifier(database.dialect)

    @cached_property
    def engine(self) -> Engine:
        """An engine as its host would make one: none of our settings, on SQLite the driver's own transactions."""
        return create_engine(self._url.set(drivername=_SYNC_DRIVERS[self._url.get_backend_name()]))

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Open a connection; what is not committed within is rolled back."""
        with self.engine.connect() as connection:
            yield connection

    def run(self, statement: str, connection: Connection | None = None, **values: Any) -> int:
        """Run one statement, committed where no `connection` is given, and return how many rows it touched."""
        if connection is not None:
            return connection.execute(self.sql(statement), self.written(values)).rowcount
        with self.engine.begin() as own:
            return self.run(statement, own, **values)

    def rows(self, statement: str, connection: Connection | None = None, **values: Any) -> list[Row[Any]]:
        """Run one statement, committed where no `connection` is given, and return its rows."""
        if connection is not None:
            return list(connection.execute(self.sql(statement), self.written(values)).all())
        with self.engine.begin() as own:
            return self.rows(statement, own, **values)

    def insert(self, table: str = "scheduled_actions", connection: Connection | None = None, **values: Any) -> int:
        """Insert one row into the view, or into one of our tables."""
        names = ", ".join(values)
        marks = ", ".join(f":{name}" for name in values)
        return self.run(f"insert into {{ns}}{table} ({names}) values ({marks})", connection, **values)

    def update(self, action_id: UUID, **values: Any) -> int:
        """Update one row of the view."""
        changes = ", ".join(f"{name} = :{name}" for name in values)
        where = "where id = :action_id"
        return self.run(f"update {{ns}}scheduled_actions set {changes} {where}", action_id=action_id, **values)

    def column(self, action_id: UUID, name: str) -> Any:
        """Return one column of one row of the view."""
        where = "where id = :action_id"
        ((value,),) = self.rows(f"select {name} from {{ns}}scheduled_actions {where}", action_id=action_id)
        return value

    def contents(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return every row of every table of ours."""
        with self.connection() as connection:
            return {
                table: sorted((tuple(row) for row in self.rows(f"select * from {{ns}}{table}", connection)), key=repr)
                for table in ("actions", "queue", "outcomes", "action_events", "idempotency", "profiles", "workspaces")
            }

    def sql(self, statement: str) -> Any:
        """Return a statement with the names of our tables filled in."""
        return text(statement.replace("{ns}", self.ns))

    def written(self, values: Values) -> Values:
        """Return values as this database's own programs write them."""
        return {name: self._written(value) for name, value in values.items()}

    def _written(self, value: Any) -> Any:
        match value:
            case dict():
                return json.dumps(value)
            case UUID() if self.is_sqlite:
                return str(value)
            case datetime() if self.is_sqlite:
                return (value - _EPOCH) // timedelta(microseconds=1)
            case _:
                return value


def sqlstate(error: BaseException | None) -> str | None:
    """Return the code with which PostgreSQL refused a statement, or None."""
    return getattr(error.orig, "sqlstate", None) if isinstance(error, DBAPIError) else None
