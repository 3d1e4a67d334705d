"""How is a hand-written SQL script run as a migration?"""

from __future__ import annotations

import sqlite3
from importlib.resources import files
from typing import TYPE_CHECKING

from alembic import context, op

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from postdate.store.names import Names


def script_names() -> Names:
    """Return what our tables are called in the database that is being migrated."""
    names: Names = context.config.attributes["names"]
    return names


def run_script(script: str, *, postgresql: Mapping[str, str], sqlite: Mapping[str, str]) -> None:
    """Run `sql/<script>_<dialect>.sql`, its names in braces replaced by ours and by the literals given."""
    dialect = op.get_context().dialect.name
    literals = {**(sqlite if dialect == "sqlite" else postgresql), **script_names().tokens(dialect)}
    sql = files(__package__).joinpath(f"sql/{script}_{dialect}.sql").read_text("utf-8")
    for token, text in literals.items():
        sql = sql.replace(token, text)
    for statement in _statements(sql) if dialect == "sqlite" else [sql]:
        _run(statement)


def _run(statement: str) -> None:
    if context.is_offline_mode():
        context.get_context().impl.static_output(statement)
    else:
        # the bare cursor: SQLAlchemy would pass parameters, and so turn every % into a placeholder
        op.get_bind().connection.cursor().execute(statement)


def _statements(sql: str) -> Iterator[str]:
    """Split a script, since SQLite's driver runs one statement at a time."""
    pending = ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending.strip()
            pending = ""
