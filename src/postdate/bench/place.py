"""On which tables is measured?

On some of its own, which are gone afterwards: in a schema of the PostgreSQL database that is named, or in a SQLite file
beside the one that is; where none is named, on a server or in a folder that lives as long as the measurement. Durable
in each case: what was committed survives a power cut.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from uuid import UUID, uuid4

from sqlalchemy import delete, insert, text
from sqlalchemy.schema import DropSchema

from postdate.errors import Misconfigured
from postdate.settings import Settings
from postdate.store.database import Database
from postdate.store.migrate import upgrade
from postdate.store.names import Names
from postdate.store.time import database_time
from postdate.store.transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["postgresql", "sqlite"]

_SERVER = {"shared_buffers": "128MB", "max_wal_size": "1GB"}


@dataclass(frozen=True, kw_only=True)
class Place:
    """A database, our tables in it, and the owners of what is scheduled there."""

    url: str
    names: Names
    workspace: UUID
    user: UUID

    @property
    def kind(self) -> Kind:
        """Which database it is."""
        return "sqlite" if self.url.startswith("sqlite") else "postgresql"

    @property
    def settings(self) -> Settings:
        """The settings of an application that works here, whatever the environment says."""
        return Settings(
            database_url=self.url,
            schema_name=self.names.schema,
            table_prefix=self.names.prefix,
            profiles_table=None,
            workspaces_table=None,
        )

    @contextmanager
    def database(self) -> Iterator[Database]:
        """Give the database, and close it in the end."""
        database = Database(self.url)
        try:
            yield database
        finally:
            database.close_sync()

    @contextmanager
    def begun(self) -> Iterator[Transaction]:
        """Give a transaction here."""
        with self.database() as database, database.sync_engine.begin() as connection:
            yield Transaction.on(connection, self.names)

    @contextmanager
    def undone(self) -> Iterator[Transaction]:
        """Give a transaction here of which nothing stays."""
        with self.database() as database, database.sync_engine.connect() as connection, connection.begin() as began:
            yield Transaction.on(connection, self.names)
            began.rollback()

    def empty(self) -> None:
        """Forget every action, so that each round begins alike."""
        with self.begun() as tx:
            for table in (tx.tables.queue, tx.tables.outcomes, tx.tables.actions):
                tx.execute(delete(table) if tx.is_sqlite else text(f"truncate {table.fullname}"))


@contextmanager
def place(database_url: str | None, kind: Kind) -> Iterator[Place]:
    """Give a place to measure in: on the database that is named, else on one of that kind that nobody else uses.

    Raises `Misconfigured`, and `ServerNotStarted` where PostgreSQL is to be started and is not there.
    """
    if database_url is not None:
        yield from _beside(Database(database_url))
    elif kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="postdate-bench-") as folder:
            yield _prepared(f"sqlite:///{folder}/bench.db", Names())
    else:
        from postdate.testing.postgres import LocalPostgres  # noqa: PLC0415 - psycopg is an extra

        with LocalPostgres(settings=_SERVER) as server:
            yield _prepared(server.url(), Names())


def _beside(database: Database) -> Iterator[Place]:
    own = f"bench_{uuid4().hex[:8]}"
    if database.is_sqlite:
        if database.file is None:
            raise Misconfigured("the URL must name a file, beside which the bench makes one of its own")
        beside = database.file.resolve().parent
        if not beside.is_dir():
            raise Misconfigured(f"the folder of the SQLite file does not exist: {beside}")
        with tempfile.TemporaryDirectory(prefix="postdate-bench-", dir=beside) as folder:
            yield _prepared(f"sqlite:///{Path(folder) / 'bench.db'}", Names())
        return
    url, names = database.url.render_as_string(hide_password=False), Names(schema=own)
    try:
        yield _prepared(url, names)
    finally:
        with database.sync_engine.begin() as connection:
            connection.execute(DropSchema(own, cascade=True, if_exists=True))
        database.close_sync()


def _prepared(url: str, names: Names) -> Place:
    upgrade(url, names)
    made = Place(url=url, names=names, workspace=uuid4(), user=uuid4())
    with made.begun() as tx:
        now = database_time(tx)
        tx.execute(insert(tx.tables.workspaces).values(id=made.workspace, settings={}, created_at=now))
        tx.execute(insert(tx.tables.profiles).values(id=made.user, created_at=now))
    return made
