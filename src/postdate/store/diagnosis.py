"""What can a database tell about itself and about the work that waits in it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from sqlalchemy import func, not_, select, text

from postdate.domain.states import Reason, Status
from postdate.store.sets import one_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from postdate.store.database import Database
    from postdate.store.names import Names
    from postdate.store.transaction import Transaction

_WATCHED_ON_SQLITE = """
select tbl_name as watched, tbl_name = :named as agree
from sqlite_schema where type = 'trigger' and name = :prefix || 'postdate_' || :what || '_deleted'
"""
_WATCHED_ON_POSTGRESQL = """
select t.tgrelid::regclass::text as watched, t.tgrelid = to_regclass(:named) as agree
from pg_trigger t join pg_proc f on f.oid = t.tgfoid join pg_namespace n on n.oid = f.pronamespace
where n.nspname = :schema and f.proname = cast(:prefix as text) || :what || '_deleted'
"""


@dataclass(frozen=True, kw_only=True)
class Server:
    """Which database this is. `journal_mode` is SQLite's; None elsewhere."""

    name: str
    version: tuple[int, ...]
    journal_mode: str | None = None


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """How many active actions of one type there are, and how many of them somebody should have seen to."""

    action_type: str
    queued: int
    submitted: int
    overdue: int
    lost: int
    """Submitted, and the lease ran out long ago."""


@dataclass(frozen=True, kw_only=True)
class OwnerTable:
    """The table whose rows own actions, by what the settings name, and the one on which our trigger deletes them."""

    setting: str
    named: str
    watched: str | None
    """None where the trigger is gone, with the table or without it."""
    agree: bool


def server_of(connection: Connection) -> Server:
    """Return which database this is."""

    def asked(question: str) -> str:
        return str(connection.execute(text(question)).scalar_one())

    if connection.dialect.name == "sqlite":
        version = asked("select sqlite_version()")
        return Server(name="SQLite", version=_numbers(version), journal_mode=asked("pragma journal_mode"))
    number = int(asked("show server_version_num"))  # 150004 is 15.4
    return Server(name="PostgreSQL", version=(number // 10_000, number % 10_000))


def encoding_of(database: Database) -> str:
    """Return in which encoding a PostgreSQL database keeps text.

    Asked of the driver alone, since SQLAlchemy cannot even connect where it is SQL_ASCII.
    """
    import psycopg  # noqa: PLC0415 - an extra: SQLite needs none

    with psycopg.connect(_conninfo(database)) as connection:
        return connection.info.parameter_status("server_encoding") or "unknown"


def owner_tables(tx: Transaction) -> list[OwnerTable]:
    """Return which tables should own actions, and which do since the first upgrade."""
    names = tx.tables.names
    own = names.qualifier(tx.connection.dialect.name)
    asked = _WATCHED_ON_SQLITE if tx.is_sqlite else _WATCHED_ON_POSTGRESQL
    found = []
    for what, theirs in (("profiles", names.profiles), ("workspaces", names.workspaces)):
        named = theirs or f"{own}{what}"
        search = {"named": named, "schema": names.schema, "prefix": names.prefix, "what": what}
        row = tx.execute(text(asked), search).one_or_none()
        watched, agree = (None, False) if row is None else (str(row.watched), bool(row.agree))
        found.append(OwnerTable(setting=f"POSTDATE_{what.upper()}_TABLE", named=named, watched=watched, agree=agree))
    return found


def waiting_by_type(tx: Transaction, *, due_before: datetime, leased_before: datetime) -> list[Waiting]:
    """Count the active actions of each type: overdue since before `due_before`, lost since before `leased_before`.

    What a pause holds is not overdue. It reads the whole queue.
    """
    q = tx.tables.queue
    free, taken = q.c.lease_token.is_(None), q.c.lease_token.is_not(None)
    counted = select(
        q.c.action_type,
        func.count().filter(free).label("queued"),
        func.count().filter(taken).label("submitted"),
        func.count().filter(free, q.c.hold.is_(None), q.c.due_at < due_before).label("overdue"),
        func.count().filter(taken, q.c.lease_until < leased_before).label("lost"),
    )
    found = tx.execute(counted.group_by(q.c.action_type).order_by(q.c.action_type))
    return [Waiting(**row) for row in found.mappings()]


def overdue_of_other_types(tx: Transaction, action_types: Sequence[str], *, due_before: datetime) -> dict[str, int]:
    """Count what has been due since before `due_before` of each type that is not one of these.

    It reads those rows of the queue.
    """
    q = tx.tables.queue
    found = (
        select(q.c.action_type, func.count().label("actions"))
        .where(q.c.lease_token.is_(None), q.c.hold.is_(None), q.c.due_at < due_before)
        .where(not_(one_of(tx, q.c.action_type, action_types)))
        .group_by(q.c.action_type)
        .order_by(q.c.action_type)
    )
    return {row.action_type: row.actions for row in tx.execute(found)}


def count_unconfirmed(tx: Transaction) -> int:
    """Count what waits for a person's verdict."""
    o = tx.tables.outcomes
    counted = select(func.count()).where(o.c.status == Status.FAILED, o.c.reason == Reason.UNCONFIRMED)
    return int(tx.execute(counted).scalar_one())


def hears_notifications(database: Database, names: Names, *, within: float) -> bool:
    """Whether a NOTIFY on one connection reaches a LISTEN on another within so many seconds (PostgreSQL only).

    On a channel of its own, so that no engine wakes. A pooler in transaction mode takes a LISTEN and passes nothing on.
    """
    import psycopg  # noqa: PLC0415 - an extra: SQLite needs none

    channel, word = f"{names.channel}_heard", uuid4().hex
    conninfo = _conninfo(database)
    with psycopg.connect(conninfo, autocommit=True) as listener, psycopg.connect(conninfo, autocommit=True) as teller:
        listener.execute(f"listen {channel}".encode())
        teller.execute("select pg_notify(%s, %s)", (channel, word))
        return any(heard.payload == word for heard in listener.notifies(timeout=within, stop_after=1))


def _conninfo(database: Database) -> str:
    return database.url.set(drivername="postgresql").render_as_string(hide_password=False)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
