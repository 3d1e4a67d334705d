"""When did each periodic pass last end, and does another process do it right now?"""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from postdate.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class LastRun:
    """What the last run of a pass that went well has left behind."""

    at: datetime
    state: Mapping[str, Any] = field(default_factory=dict)


def try_alone(tx: Transaction) -> bool:
    """Take the lock of all passes on PostgreSQL until this transaction ends; False where another process has it.

    It is an advisory lock of the transaction, so that it works behind a pooler too and a crash frees it. One for all:
    whoever holds one needs a second connection to work with, and a pooler may have no more than two to give.
    """
    key = f"{tx.tables.names.qualifier('postgresql')}passes"
    return bool(tx.execute(select(func.pg_try_advisory_xact_lock(func.hashtextextended(key, 0)))).scalar())


def lock_file(tx: Transaction) -> str:
    """Return the path of the file whose lock is that of all passes on SQLite, beside the database, links resolved."""
    found = tx.execute(text("select file from pragma_database_list where name = 'main'")).scalar_one()
    return f"{found}-{tx.tables.names.qualifier('sqlite')}passes"


@contextmanager
def alone_by_file(path: str) -> Iterator[bool]:
    """Hold the lock of all passes on SQLite within the block; False where somebody else has it.

    Nobody may hold the write lock of the database as long as a pass takes. So this is that of an empty database beside
    it: a crash frees it, too. Where the file cannot be written, for it is another user's, there is no lock, and two
    passes may be at it at once: then the guard in each write decides.
    """
    with ExitStack() as held:
        try:
            lock = held.enter_context(closing(sqlite3.connect(path, timeout=0, isolation_level=None)))
            lock.execute("begin immediate")
        except sqlite3.OperationalError as error:
            ours = error.sqlite_errorcode != sqlite3.SQLITE_BUSY
        else:
            ours = True
        yield ours


def last_run(tx: Transaction, name: str) -> LastRun | None:
    """Return the last run of the pass that went well, by any process."""
    p = tx.tables.passes
    row = tx.execute(select(p.c.last_run_at, p.c.state).where(p.c.name == name)).one_or_none()
    return None if row is None else LastRun(at=row.last_run_at, state=row.state)


def note_run(tx: Transaction, name: str, *, at: datetime, state: Mapping[str, Any] | None = None) -> None:
    """Note that the pass ran well; without `state`, what was noted earlier stays."""
    p = tx.tables.passes
    said = {"last_run_at": at} if state is None else {"last_run_at": at, "state": dict(state)}
    noted = tx.insert(p).values(name=name, **{"state": {}, **said})
    tx.execute(noted.on_conflict_do_update(index_elements=[p.c.name], set_=said))
