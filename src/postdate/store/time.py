"""What time is it in the database?"""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from postdate.clock import host_time

if TYPE_CHECKING:
    from datetime import datetime

    from postdate.store.transaction import Transaction


def database_time(tx: Transaction) -> datetime:
    """Return the database's time (UTC): not the start of the transaction, the moment itself."""
    if tx.is_sqlite:
        return host_time()  # SQLite has no clock of its own
    answered: datetime = tx.execute(select(func.timezone("UTC", func.clock_timestamp()))).scalar_one()
    return answered.replace(tzinfo=UTC)
