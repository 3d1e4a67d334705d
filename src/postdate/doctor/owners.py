"""Do the tables that the settings name own the actions, so that who is deleted there takes them along?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postdate.doctor.finding import Finding, fail, ok
from postdate.store.database import READ_ONLY
from postdate.store.diagnosis import OwnerTable, owner_tables
from postdate.store.transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from postdate.app import Postdate


def owners_findings(app: Postdate) -> Iterator[Finding]:
    """Yield a finding for each table that is named but not watched, or that all is well."""
    database = app.kernel.database
    with database.sync_engine.connect().execution_options(**{READ_ONLY: True}) as connection:
        tables = owner_tables(Transaction.on(connection, app.kernel.names))
    wrong = [_unwatched(table) for table in tables if not table.agree]
    yield from wrong or [ok("owners", " and ".join(table.named for table in tables))]


def _unwatched(table: OwnerTable) -> Finding:
    found = f"deleting a row of {table.named} deletes no actions: {table.watched or 'no table'} is watched instead"
    back = f"set {table.setting} back to {table.watched}, or begin" if table.watched else "begin"
    advice = f"owners are settled by the first upgrade: {back} a new schema beside this one (POSTDATE_SCHEMA)"
    return fail("owners", found, advice=advice, page="embedding#whose-action-it-is")
