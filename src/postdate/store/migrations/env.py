"""Run by Alembic for each migration command: connect as told, and keep two upgrades from running at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alembic import context
from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from postdate.store.names import Names

_LOCK = 0x706F737464617465  # "postdate"


def _configure(names: Names, dialect: str, **where: object) -> None:
    context.configure(
        version_table=names.version_table,
        version_table_schema=None if dialect == "sqlite" else names.schema,
        transactional_ddl=True,
        **where,  # type: ignore[arg-type]
    )


def _online(connection: Connection, names: Names) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("select pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        connection.exec_driver_sql(f"create schema if not exists {names.schema}")
    _configure(names, connection.dialect.name, connection=connection)
    context.run_migrations()


def _offline(dialect: str, names: Names) -> None:
    _configure(names, dialect, dialect_name=dialect, literal_binds=True)
    with context.begin_transaction():
        if dialect == "postgresql":
            context.execute(f"create schema if not exists {names.schema}")
        context.run_migrations()


if context.is_offline_mode():
    _offline(context.config.attributes["dialect"], context.config.attributes["names"])
else:
    _online(context.config.attributes["connection"], context.config.attributes["names"])
