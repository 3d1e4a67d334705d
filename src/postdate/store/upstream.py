"""How are the user's own tables read: streamed, within a time, and without a way to write?"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import NullPool, String, bindparam, event, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.types import NullType

from postdate.errors import Invalid
from postdate.store.types import Identifier

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable, Sequence
    from datetime import timedelta
    from uuid import UUID

    from sqlalchemy import BindParameter, RowMapping, TextClause
    from sqlalchemy.ext.asyncio import AsyncConnection

    from postdate.store.database import Database

_ROWS_AT_ONCE = 1_000
_THING = "postdate_thing_id"
_NONE = "postdate_none"

_STEPS_BETWEEN_LOOKS = 10_000
"""After how many steps SQLite asks whether anybody still waits for its answer: some tenths of a millisecond."""


def parameters_of(sql: str) -> set[str]:
    """Return the names of the `:parameters` of a statement."""
    return set(text(sql)._bindparams)  # noqa: SLF001 - what `compile().params` would tell, for any dialect


@dataclass(frozen=True, kw_only=True)
class Upstream:
    """A database with tables of the user's."""

    database: Database
    timeout: timedelta
    ours: bool
    """Whether it is the application's, whose connections are kept; else they are closed after each reading."""

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Reading]:
        """Open a transaction that cannot write, on a connection of its own."""
        if self.database.is_sqlite:
            async with _sqlite_reading(self.database) as connection:
                yield Reading(connection)
            return
        try:
            async with self.database.async_engine.connect() as connection, connection.begin():
                await connection.execute(text("set transaction read only"))
                milliseconds = max(1, round(self.timeout.total_seconds() * 1000))
                await connection.execute(text(f"set local statement_timeout = {milliseconds}"))
                yield Reading(connection)
        finally:
            if not self.ours:
                await self.database.close()


@dataclass(frozen=True)
class Reading:
    """A connection to such tables, in a transaction that cannot write."""

    connection: AsyncConnection

    async def rows(
        self, sql: str, columns: Collection[str], *, workspace: UUID | None, thing_id: str | None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the rows of a SELECT, a batch in memory at a time; with `thing_id`, of that thing alone.

        Raises `Invalid` where it lacks one of the columns, however few rows there are.
        """
        where = "true" if thing_id is None else f"cast(desired.thing_id as text) = :{_THING}"
        asked = _bound(f"{_all_of(sql)} where {where}", workspace=workspace, thing_id=thing_id)
        streamed = {"yield_per": _ROWS_AT_ONCE}
        # Of a statement that fails, the driver would leave a cursor behind: so none is opened for it. And where
        # there is a parameter no server takes a second statement, which might end the transaction, and write.
        nothing = _bound(f"{_all_of(sql)} limit :{_NONE}", workspace=workspace, thing_id=None)
        none = await self.connection.execute(nothing)
        _require(none.keys(), columns, field="desired_sql")
        async with self.connection.stream(asked, execution_options=streamed) as result:
            names = list(result.keys())
            async for batch in result.partitions():
                for row in batch:
                    yield dict(zip(names, row, strict=True))

    async def among(
        self, sql: str, columns: Collection[str], *, thing_ids: Sequence[str | None]
    ) -> Sequence[RowMapping]:
        """Return the rows of a SELECT that says `in :thing_ids`. Raises `Invalid` where it lacks a column."""
        result = await self.connection.execute(text(sql).bindparams(self._untyped("thing_ids", thing_ids)))
        _require(result.keys(), columns, field="parents_sql")
        return result.mappings().all()

    def _untyped(self, name: str, texts: Sequence[str | None]) -> BindParameter[Any]:
        """Return texts that the server takes for what they are compared with: for uuids or numbers, too."""
        if self.connection.dialect.driver == "asyncpg":  # which would have numbers for numbers: so they are written out
            return bindparam(name, list(texts), expanding=True, type_=String(), literal_execute=True)
        return bindparam(name, list(texts), expanding=True, type_=NullType())


@asynccontextmanager
async def _sqlite_reading(database: Database) -> AsyncIterator[AsyncConnection]:
    """Open a connection that is closed afterwards: one that cannot write must not come into anybody's pool.

    A statement ends once the task that reads is cancelled: its thread would run on for ever otherwise.
    """
    reader = asyncio.current_task()

    def given_up() -> bool:
        return reader is not None and reader.cancelling() > 0

    async def heeds(driver: Any) -> None:
        await driver.set_progress_handler(given_up, _STEPS_BETWEEN_LOOKS)

    engine = create_async_engine(database.url.set(drivername="sqlite+aiosqlite"), poolclass=NullPool)
    event.listen(engine.sync_engine, "connect", _only_read)
    event.listen(engine.sync_engine, "connect", lambda connection, _record: connection.run_async(heeds))
    try:
        async with engine.connect() as connection:
            yield connection
    finally:
        await engine.dispose()


def _only_read(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA query_only = ON")
    cursor.close()


def _require(found: Iterable[str], columns: Collection[str], *, field: str) -> None:
    missing = set(columns) - set(found)
    if missing:
        raise Invalid(field=field, rule=f"must select {', '.join(sorted(missing))}")


def _all_of(sql: str) -> str:
    within = sql.strip().rstrip(";")
    return f"select * from (\n{within}\n) as desired"  # noqa: S608 - the user's own words


def _bound(sql: str, *, workspace: UUID | None, thing_id: str | None) -> TextClause:
    values = {
        "workspace": bindparam("workspace", workspace, type_=Identifier),
        _THING: bindparam(_THING, thing_id),
        _NONE: bindparam(_NONE, 0),
    }
    return text(sql).bindparams(*(value for name, value in values.items() if name in parameters_of(sql)))
