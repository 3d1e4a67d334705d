"""Which database does the demo use? A new one, which goes away with it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def database(folder: Path, *, postgres: bool) -> Iterator[str]:
    """Give the URL of an empty SQLite file in `folder`, or of a database on a PostgreSQL server of our own."""
    if not postgres:
        yield f"sqlite:///{folder / 'postdate.db'}"
        return
    from postdate.testing.postgres import LocalPostgres  # noqa: PLC0415 - SQLite needs no driver

    with LocalPostgres() as server:  # with fsync: what was committed survives a power cut, as it should
        yield server.create_database("demo")
