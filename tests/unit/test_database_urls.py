"""Which database does a URL name, however its driver is spelled, and which tables of a host's may own actions there?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from postdate import Misconfigured
from postdate.store.database import Database
from postdate.store.migrate import upgrade
from postdate.store.names import Names

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("url", "is_sqlite", "sync", "awaited"),
    [
        ("postgres://localhost/shop", False, "psycopg", "psycopg"),  # as hosts of databases write it
        ("postgresql://localhost/shop", False, "psycopg", "psycopg"),
        ("postgresql+psycopg://localhost/shop", False, "psycopg", "psycopg"),
        ("postgresql+asyncpg://localhost/shop", False, "psycopg", "asyncpg"),
        ("sqlite:///shop.db", True, "pysqlite", "aiosqlite"),
        ("sqlite+pysqlite:///shop.db", True, "pysqlite", "aiosqlite"),
        ("sqlite+aiosqlite:///shop.db", True, "pysqlite", "aiosqlite"),
    ],
)
def test_one_url_serves_called_and_awaited_verbs(url: str, is_sqlite: bool, sync: str, awaited: str) -> None:
    database = Database(url)
    assert database.is_sqlite is is_sqlite
    assert database.sync_engine.driver == sync
    assert database.async_engine.driver == awaited
    database.close_sync()


def test_sqlite_has_no_schemas_for_a_table_that_owns_actions_to_be_in(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="SQLite has no schemas: name users"):
        upgrade(f"sqlite:///{tmp_path / 'shop.db'}", Names(profiles="public.users"))
