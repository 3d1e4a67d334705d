"""Does the loop without an engine leave the same rows as the product, from the insert to the outcome?"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import select

from postdate.bench.place import Place, place
from postdate.bench.raw import drain, raw_loop
from postdate.bench.subject import application, new_action, posts
from postdate.clock import host_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Table

    from postdate import Postdate

OF_ITS_OWN = {"id", "action_id", "created_at", "submitted_at", "finished_at", "provider_id", "xid"}
"""Which columns name one row or one moment."""

DUE = host_time().replace(microsecond=0) - timedelta(minutes=1)


@pytest.fixture
def here(database_url: str) -> Iterator[Place]:
    with place(database_url, "sqlite") as made:
        yield made


def contents(here: Place) -> dict[str, list[dict[str, Any]]]:
    with here.begun() as tx:

        def rows(table: Table) -> list[dict[str, Any]]:
            return [
                {name: value for name, value in row.items() if name not in OF_ITS_OWN}
                for row in tx.execute(select(table)).mappings()
            ]

        found = {table.name: rows(table) for table in (tx.tables.actions, tx.tables.queue, tx.tables.outcomes)}
    return {name: sorted(told, key=repr) for name, told in found.items()}


async def ticked(app: Postdate) -> None:
    await app.tick()
    await app.close()


def by_the_product(here: Place, then: Callable[[Any], object]) -> dict[str, list[dict[str, Any]]]:
    here.empty()
    app = application(here, concurrency=10, ran=lambda _: None)
    app.sync.schedule_many([new_action(here, post, DUE) for post in posts(0, 3)])
    then(app)
    app.kernel.database.close_sync()
    return contents(here)


def test_what_it_inserts_and_what_it_settles_is_what_the_product_does(here: Place) -> None:
    waiting, done = by_the_product(here, lambda _: None), by_the_product(here, lambda app: asyncio.run(ticked(app)))
    here.empty()
    with raw_loop(here) as loop:
        loop.insert(posts(0, 3), DUE)
        assert contents(here) == waiting
        assert drain(loop, batch=2) == 3
    assert contents(here) == done
    assert len(done["outcomes"]) == 3


def test_what_it_looks_at_first_stays_as_it_was(here: Place) -> None:
    """The product is asked in a transaction that is undone."""
    waiting = by_the_product(here, lambda _: None)
    with raw_loop(here):
        assert contents(here) == waiting
