"""When did each periodic pass last end, and does another process do it right now?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from postdate.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class LastRun:
    """What the last run of a pass that went well has left behind."""

    at: datetime
    state: Mapping[str, Any] = field(default_factory=dict)


def try_alone(tx: Transaction) -> bool:
    """Take the lock of all passes until this transaction ends; False where another process has it.

    PostgreSQL's advisory lock, of the transaction, so that it works behind a pooler too and a crash frees it. One for
    all: whoever holds one needs a second connection to work with, and a pooler may have no more than two to give.
    SQLite has none: there each write of a pass holds the one write lock, and two passes at once come to the same.
    """
    if tx.is_sqlite:
        return True
    key = f"{tx.tables.names.qualifier('postgresql')}passes"
    return bool(tx.execute(select(func.pg_try_advisory_xact_lock(func.hashtextextended(key, 0)))).scalar())


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
