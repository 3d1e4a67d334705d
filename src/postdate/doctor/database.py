"""Can the database be used, is it one that serves, and does it tell the time and pass on what is queued?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from postdate.clock import host_time
from postdate.doctor.finding import Health, fail, ok, warn
from postdate.doctor.sqlite_file import file_findings
from postdate.domain.text import cleaned
from postdate.errors import SchemaMismatch
from postdate.store.database import READ_ONLY
from postdate.store.diagnosis import encoding_of, hears_notifications, server_of
from postdate.store.migrate import require_current
from postdate.store.time import database_time
from postdate.store.transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from sqlalchemy import Connection

    from postdate.app import Postdate
    from postdate.doctor.finding import Finding
    from postdate.store.database import Database
    from postdate.store.diagnosis import Server

OLDEST = {"SQLite": (3, 40), "PostgreSQL": (15, 0)}
OFFSET = timedelta(seconds=1)
"""How far the host's clock may be from the database's before that is worth a word."""

_HEARD_WITHIN = 3.0
_SAID = 300
_UPGRADE = "run `postdate db upgrade`, with the same --app if any"


def database_findings(app: Postdate) -> Generator[Finding, None, bool]:
    """Yield what there is to say of the database, and return whether actions can be read from it."""
    database = app.kernel.database
    if database.file is not None and not database.file.exists():  # looking for it must not make it
        advice, page = _UPGRADE, "operations#the-schema"
        yield fail("database", f"there is no file {database.file}", advice=advice, page=page)
        return False
    try:
        encoding = None if database.is_sqlite else encoding_of(database)
        if encoding == "SQL_ASCII":
            yield _encoding_finding(encoding)
            return False
        with database.sync_engine.connect().execution_options(**{READ_ONLY: True}) as connection:
            server = server_of(connection)
            schema = _schema_finding(connection, app)
            yield _server_finding(server, database)
            yield schema
            if encoding is not None:
                yield _encoding_finding(encoding)
                yield _clock_finding(Transaction.on(connection, app.kernel.names))
    except Exception as error:  # noqa: BLE001 - whatever the driver says is the finding
        yield _unusable(error)
        return False
    if database.file is not None:
        yield from file_findings(database.file, server)
    if not database.is_sqlite:
        yield _listening_finding(app)
    return schema.health is Health.OK


def unreadable(error: Exception) -> Finding:
    """Return that a database of the right version, which was usable, does not let itself be read."""
    advice = "look whether every table is there, and whether this user may read it: was a backup put back in part?"
    return fail("tables", f"cannot be read: {_in_its_words(error)}", advice=advice, page="operations#the-schema")


def _unusable(error: Exception) -> Finding:
    advice = "look at POSTDATE_DATABASE_URL, and whether the server runs and lets you in"
    found = f"cannot be used: {_in_its_words(error)}"
    return fail("database", found, advice=advice, page="operations#settings")


def _in_its_words(error: Exception) -> str:
    words = getattr(error, "orig", None) or error  # SQLAlchemy would add the statement
    return cleaned(" ".join(str(words).split()), limit=_SAID)


def _encoding_finding(encoding: str) -> Finding:
    if encoding == "UTF8":
        return ok("encoding", encoding)
    advice = "text beyond that encoding is refused, or unreadable: create the database with ENCODING 'UTF8'"
    return fail("encoding", encoding, advice=advice)


def _server_finding(server: Server, database: Database) -> Finding:
    url, oldest = database.url, OLDEST[server.name]
    place = url.database if database.is_sqlite else f"{url.database} on {url.host or 'the local socket'}"
    found = f"{server.name} {_dotted(server.version)}, {place}"
    if server.version < oldest:
        return fail("database", found, advice=f"postdate needs {server.name} {_dotted(oldest)} or newer")
    return ok("database", found)


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))


def _schema_finding(connection: Connection, app: Postdate) -> Finding:
    page = "operations#the-schema"
    try:
        require_current(connection, app.kernel.names)
    except SchemaMismatch as error:
        found = f"at {error.found or 'nothing'}, this version needs {error.expected}"
        advice = "it was migrated by a newer postdate: upgrade this installation" if error.newer else _UPGRADE
        return fail("schema", found, advice=advice, page=page)
    return ok("schema", "up to this version")


def _clock_finding(tx: Transaction) -> Finding:
    """Say how far the host's clock is from the database's, give or take half the round trip."""
    before = host_time()
    there = database_time(tx)
    after = host_time()
    offset = before + (after - before) / 2 - there
    found = f"the host is {abs(offset.total_seconds()):.3f} s {'ahead of' if offset > timedelta(0) else 'behind'} it"
    if abs(offset) <= OFFSET + (after - before) / 2:
        return ok("clock", found)
    advice = "actions fire by the database's clock; keep both hosts on NTP, or times in your logs will not fit"
    return warn("clock", found, advice=advice, page="operations#how-late-can-it-be")


def _listening_finding(app: Postdate) -> Finding:
    page = "operations#postgresql-behind-a-pooler"
    advice = (
        "what other processes insert waits for the tick, at most a minute: give the engine a URL that leads to the "
        "server itself rather than to a pooler in transaction mode"
    )
    try:
        heard = hears_notifications(app.kernel.database, app.kernel.names, within=_HEARD_WITHIN)
    except Exception as error:  # noqa: BLE001 - whatever the driver says is the finding
        return warn("listen", cleaned(f"failed: {error}", limit=_SAID), advice=advice, page=page)
    if heard:
        return ok("listen", "a NOTIFY came back")
    return warn("listen", f"a NOTIFY did not come back within {_HEARD_WITHIN:g} s", advice=advice, page=page)
