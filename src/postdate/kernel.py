"""What do verbs and engine work with, and in whose transaction?"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session

from postdate.ids import TimeOrderedIds
from postdate.sources import Sources
from postdate.store.bounded import bounded
from postdate.store.database import READ_ONLY
from postdate.store.guest import Lendable, lent_connection
from postdate.store.migrate import require_current
from postdate.store.owners import zone_of_owner
from postdate.store.schema import tables
from postdate.store.time import database_time
from postdate.store.transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from sqlalchemy import Connection

    from postdate.clock import Clock
    from postdate.registry import Registry
    from postdate.settings import Settings
    from postdate.store.database import Database
    from postdate.store.names import Names
    from postdate.store.schema import Tables

Result = TypeVar("Result")

ZoneOf = Callable[[UUID | None, UUID], str | None]
"""`zone_of(workspace, user)` answers an IANA zone, or None to look in our own tables."""

Connectable = Lendable | AsyncConnection | AsyncSession | async_scoped_session[Any]
"""What a caller may hand over so that a verb works in their transaction; the async ones to the async verbs."""


def default_zone(tx: Transaction, zone_of: ZoneOf | None, *, workspace: UUID | None, user: UUID) -> str | None:
    """Return what `zone_of` answers, else the zone of the owner in our tables (P5)."""
    zone = None if zone_of is None else zone_of(workspace, user)
    return zone if zone is not None else zone_of_owner(tx, workspace=workspace, user=user)


@dataclass(frozen=True)
class Unbegun:
    """A connection of our own on which the verb itself begins, and ends, its transaction."""

    connection: Connection


@dataclass(kw_only=True)
class Kernel:
    """What every verb works with."""

    database: Database
    names: Names
    settings: Settings
    registry: Registry
    clock: Clock
    zone_of: ZoneOf | None = None
    sources: Sources = field(default_factory=Sources)
    new_id: TimeOrderedIds = field(default_factory=TimeOrderedIds)
    wake: Callable[[datetime], None] | None = None
    """Told when something was queued here and when it is due; the running engine listens."""
    _schema_checked: bool = False

    @property
    def tables(self) -> Tables:
        """The tables in its database."""
        return tables(self.names, self.database.dialect)

    @contextmanager
    def transaction(
        self, connection: Connectable | Unbegun | None, *, read_only: bool = False
    ) -> Iterator[Transaction]:
        """Open a transaction of our own, or work in the caller's: never committing it, and undoing only our part.

        Raises `SchemaMismatch` where the database is not at this version's schema, `Misconfigured` for a
        connection that cannot be used here.
        """
        match connection:
            case None:
                with (
                    self.database.sync_engine.connect() as opened,
                    self._own(opened, read_only=read_only) as tx,
                ):
                    yield tx
            case Unbegun():
                with self._own(connection.connection, read_only=read_only) as tx:
                    yield tx
            case _:
                with (
                    lent_connection(connection, self.database) as lent,
                    self._guest(lent, read_only=read_only) as tx,
                ):
                    yield tx

    async def work(self, function: Callable[[Transaction], Result], *, read_only: bool = False) -> Result:
        """Run a store function in a transaction of our own, from the event loop: on SQLite in a thread.

        There those that write do so one after the other.
        """

        def begun(connection: Connection) -> Result:
            with self._own(connection, read_only=read_only) as tx:
                return function(tx)

        return await self.connected(begun, in_turn=not read_only)

    async def connected(self, function: Callable[[Connection], Result], *, in_turn: bool = False) -> Result:
        """Run a function over a connection of our own, from the event loop; on SQLite in a thread.

        Raises `DatabaseTimedOut` when that takes longer than the setting `database_timeout` allows.
        """
        seconds = self.settings.database_timeout.total_seconds()
        return await bounded(self.database.call(function, in_turn=in_turn), seconds=seconds)

    async def read_clock(self) -> datetime:
        """Return the time (UTC), asking the database where that is needed."""
        return await self.work(self.now, read_only=True) if self.clock.is_stale else self.clock.now()

    def now(self, tx: Transaction) -> datetime:
        """Return the time (UTC), asking the database where the last answer is too old to count on from."""
        if self.clock.is_stale:
            self.clock.set(database_time(tx))
        return self.clock.now()

    def default_zone(self, tx: Transaction, *, workspace: UUID | None, user: UUID) -> str | None:
        """Return the zone for wall times that come with none: the app's `zone_of`, else the owner's own (P5)."""
        return default_zone(tx, self.zone_of, workspace=workspace, user=user)

    @contextmanager
    def _own(self, connection: Connection, *, read_only: bool) -> Iterator[Transaction]:
        with connection.execution_options(**{READ_ONLY: read_only}).begin():
            tx = self._checked(connection)
            yield tx
        self._wake(tx)

    @contextmanager
    def _guest(self, connection: Connection, *, read_only: bool) -> Iterator[Transaction]:
        tx = self._checked(connection)
        if read_only:
            yield tx
            return
        with tx.savepoint():
            yield tx
        self._wake(tx)  # before the caller's commit: what the alarm then misses, NOTIFY or data_version tells

    def _checked(self, connection: Connection) -> Transaction:
        if not self._schema_checked:
            require_current(connection, self.names)
            self._schema_checked = True
        return Transaction.on(connection, self.names)

    def _wake(self, tx: Transaction) -> None:
        if tx.queued and self.wake is not None:
            self.wake(min(tx.queued))
