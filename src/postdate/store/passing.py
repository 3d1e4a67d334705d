"""Does an error tell of the database's state, which passes, rather than of what it was asked?"""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from postdate.errors import DatabaseTimedOut

_PASSING_STATES = ("08", "40", "53", "57P", "58")
"""How PostgreSQL's states begin that pass: no connection, a deadlock, no resources, a shutdown, a system error."""


def passes(error: BaseException) -> bool:
    """Whether the same call may go well later, since the database was away, busy or shutting down."""
    if isinstance(error, OSError | PoolTimeout | DatabaseTimedOut):  # asyncpg's own are of the first kind
        return True
    if not isinstance(error, DBAPIError):
        return False
    if error.connection_invalidated:
        return True
    sqlstate = getattr(error.orig, "sqlstate", None)
    if sqlstate is not None:
        return str(sqlstate).startswith(_PASSING_STATES)
    # SQLite says "operational error" of mistakes in SQL, too, but with the plain code
    return isinstance(error, OperationalError) and getattr(error.orig, "sqlite_errorcode", None) != sqlite3.SQLITE_ERROR
