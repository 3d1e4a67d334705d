"""How is a hand-written SQL script run as a migration?"""

from __future__ import annotations

import sqlite3
from importlib.resources import files
from typing import TYPE_CHECKING

from alembic import context, op

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from postdate.store.names import Names


def run_script(number: str, *, postgresql: Mapping[str, str], sqlite: Mapping[str, str]) -> None:
    """Run `sql/<number>_<dialect>.sql`, its names in braces replaced by ours and by the literals given."""
    names: Names = context.config.attributes["names"]
    dialect = op.get_context().dialect.name
    literals = {**(sqlite if dialect == "sqlite" else postgresql), **names.tokens(dialect)}
    script = files(__package__).joinpath(f"sql/{number}_{dialect}.sql").read_text("utf-8")
    for token, text in literals.items():
        script = script.replace(token, text)
    for statement in _statements(script) if dialect == "sqlite" else [script]:
        _run(statement)


def _run(statement: str) -> None:
    if context.is_offline_mode():
        context.get_context().impl.static_output(statement)
    else:
        # the bare cursor: SQLAlchemy would pass parameters, and so turn every % into a placeholder
        op.get_bind().connection.cursor().execute(statement)


def _statements(script: str) -> Iterator[str]:
    """Split a script, since SQLite's driver runs one statement at a time."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending.strip()
            pending = ""
