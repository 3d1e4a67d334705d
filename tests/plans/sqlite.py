"""How does SQLite mean to run the statements, and how much work do they make?"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

STEP = 1000
"""How many instructions of its virtual machine SQLite counts at a time."""


@dataclass
class Seen:
    """The plan of each statement, line by line, and the instructions that all took, their triggers' included."""

    lines: list[str] = field(default_factory=list)
    instructions: int = 0


@contextmanager
def observed(connection: Connection) -> Iterator[Seen]:
    """Explain every statement that runs within, with the very parameters it runs with."""
    seen = Seen()
    driver: Any = connection.connection.driver_connection

    def explain(_conn: Connection, _cursor: Any, statement: str, parameters: Any, _ctx: Any, many: bool) -> None:
        if statement.startswith(("SAVEPOINT", "RELEASE", "ROLLBACK")):
            return
        plan = driver.execute(f"explain query plan {statement}", parameters[0] if many else parameters)
        seen.lines.extend(detail for *_, detail in plan)

    def count() -> None:
        seen.instructions += STEP

    event.listen(connection, "before_cursor_execute", explain)
    driver.set_progress_handler(count, STEP)
    try:
        yield seen
    finally:
        driver.set_progress_handler(None, STEP)
        event.remove(connection, "before_cursor_execute", explain)
