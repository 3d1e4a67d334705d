"""How does a database get our schema, and is it the one this version works on?"""

from __future__ import annotations

import io
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config
from sqlalchemy import Column, MetaData, String, Table, inspect, select
from sqlalchemy.dialects.postgresql.base import RESERVED_WORDS

from postdate.errors import Misconfigured, SchemaMismatch
from postdate.store.database import Database
from postdate.store.names import Names, host_table
from postdate.store.schema import REVISION

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, kw_only=True)
class SchemaStatus:
    """Where a database stands: `found` is None before the first upgrade."""

    found: str | None
    expected: str = REVISION

    @property
    def current(self) -> bool:
        """Whether this version can run on it."""
        return self.found == self.expected


def upgrade(url: str, names: Names | None = None) -> None:
    """Bring the database's schema up to this version, in one transaction.

    Raises `SchemaMismatch` when the database is already ahead of this version.
    """
    names = names or Names()
    database = Database(url)
    try:
        with database.sync_engine.begin() as connection:
            found = revision(connection, names)
            if found is not None and found > REVISION:
                raise SchemaMismatch(found=found, expected=REVISION, newer=True)
            _require_host_tables(connection, names)
            command.upgrade(_config(names, connection=connection), "head")
    finally:
        database.close_sync()


def script(url: str, names: Names | None = None) -> str:
    """Return the SQL that `upgrade` runs on an empty database, for those who run their own."""
    names = names or Names()
    output = io.StringIO()
    command.upgrade(_config(names, output=output, dialect=Database(url).dialect), "head", sql=True)
    return output.getvalue()


def status(url: str, names: Names | None = None) -> SchemaStatus:
    """Return where the database stands."""
    database = Database(url)
    try:
        with database.sync_engine.begin() as connection:
            return SchemaStatus(found=revision(connection, names or Names()))
    finally:
        database.close_sync()


def revision(connection: Connection, names: Names) -> str | None:
    """Return the revision of our schema in this database; None where it has none."""
    schema = None if connection.dialect.name == "sqlite" else names.schema
    if not inspect(connection).has_table(names.version_table, schema=schema):
        return None
    table = Table(names.version_table, MetaData(schema=schema), Column("version_num", String))
    return connection.execute(select(table.c.version_num)).scalar()


def require_current(connection: Connection, names: Names) -> None:
    """Raise `SchemaMismatch` unless this version can run on the database."""
    found = revision(connection, names)
    if found != REVISION:
        raise SchemaMismatch(found=found, expected=REVISION, newer=found is not None and found > REVISION)


def _require_host_tables(connection: Connection, names: Names) -> None:
    """Raise `Misconfigured` where a table of the host's that is to own actions is not there, or has no uuid as id."""
    uuid_types = {"TEXT", "UUID", "CHAR(36)", "VARCHAR(36)"} if connection.dialect.name == "sqlite" else {"UUID"}
    for name in filter(None, (names.profiles, names.workspaces)):
        schema, table = host_table(name)
        if schema is not None and connection.dialect.name == "sqlite":
            raise Misconfigured(f"SQLite has no schemas: name {table}, not {name}, to own actions")
        if schema is None and connection.dialect.name == "postgresql" and table in RESERVED_WORDS:
            raise Misconfigured(
                f"PostgreSQL keeps the word {table} for itself: name the schema too, as in public.{table}"
            )
        if not inspect(connection).has_table(table, schema=schema):
            raise Misconfigured(f"there is no table {name} to own actions")
        columns = {column["name"]: str(column["type"]) for column in inspect(connection).get_columns(table, schema)}
        if columns.get("id") not in uuid_types:
            raise Misconfigured(f"{name}.id must be a uuid to own actions, not {columns.get('id', 'missing')}")


def _config(names: Names, *, output: io.StringIO | None = None, **attributes: object) -> Config:
    config = Config(output_buffer=output) if output else Config()
    config.set_main_option("script_location", str(files("postdate.store.migrations")))
    config.set_main_option("path_separator", "os")
    config.attributes.update(names=names, **attributes)
    return config
