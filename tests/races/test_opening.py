"""Can several processes open one new SQLite file at once?"""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from postdate.clock import monotonic
from postdate.store.database import Database

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT = timedelta(milliseconds=200)


def test_a_new_file_on_which_another_process_works_is_waited_for(tmp_path: Path) -> None:
    """SC50: asked to write ahead, SQLite itself says "database is locked" at once, whatever the timeout."""
    other = sqlite3.connect(tmp_path / "new.db", isolation_level=None)
    other.execute("begin immediate")
    opened = Database(f"sqlite:///{tmp_path / 'new.db'}", timeout=TIMEOUT)
    began = monotonic()
    with pytest.raises(OperationalError, match="locked"):
        opened.sync_engine.connect()
    assert monotonic() - began >= TIMEOUT.total_seconds()
    other.execute("commit")
    other.close()
    with opened.sync_engine.connect() as connection:
        assert connection.scalar(text("pragma journal_mode")) == "wal"
    opened.close_sync()
