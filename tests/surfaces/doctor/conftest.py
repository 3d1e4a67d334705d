"""A fit installation, and what is found there."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from postdate import Context, Postdate
from postdate.doctor import Finding, examine
from postdate.store.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def fit(database_url: str) -> Iterator[Postdate]:
    with opened(database_url) as app:
        yield app


@contextmanager
def opened(database_url: str) -> Iterator[Postdate]:
    """Give an app with a type `act`, and close its connections after the block."""
    app = Postdate(database_url)

    @app.action("act")
    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    yield app
    app.kernel.database.close_sync()


def findings(app: Postdate) -> list[Finding]:
    return list(examine(app, list(app.kernel.registry)))


def found(app: Postdate, check: str) -> Finding:
    """Return the one finding of a check."""
    (one,) = (finding for finding in findings(app) if finding.check == check)
    return one


def changed(database_url: str, statement: str) -> None:
    database = Database(database_url)
    with database.sync_engine.begin() as connection:
        connection.exec_driver_sql(statement)
    database.close_sync()
