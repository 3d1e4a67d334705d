"""Do the verbs keep to the transaction of a scoped session, which is what Flask-SQLAlchemy calls `db.session`?"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import async_scoped_session, async_sessionmaker, create_async_engine
from sqlalchemy.orm import scoped_session, sessionmaker

from postdate import Misconfigured, Postdate
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from collections.abc import Iterator

    from postdate.clock import ManualClock


@pytest.fixture
def shop(database_url: str, clock: ManualClock) -> Iterator[Postdate]:
    shop = Postdate(database_url, clock=clock)
    shop.action("act")(lambda ctx, payload: None)
    with shop.kernel.database.sync_engine.begin() as connection:
        connection.execute(text("create table orders (id integer)"))
    yield shop
    asyncio.run(shop.close())


def stored(shop: Postdate) -> tuple[int, int]:
    """Return how many orders and how many actions there are."""
    with shop.kernel.database.sync_engine.begin() as connection:
        return connection.execute(text("select count(*) from orders")).scalar_one(), len(shop.sync.list())


def test_order_and_action_go_with_the_scoped_session(shop: Postdate) -> None:
    engine = create_engine(shop.kernel.database.sync_engine.url)
    session = scoped_session(sessionmaker(engine))
    for end, expected in ((session.rollback, (0, 0)), (session.commit, (1, 1))):
        session.execute(text("insert into orders values (1)"))
        shop.sync.schedule("act", {"thing_id": "t"}, at=NOON, connection=session)
        end()
        assert stored(shop) == expected
    session.remove()
    engine.dispose()


async def test_order_and_action_go_with_the_async_scoped_session(shop: Postdate) -> None:
    engine = create_async_engine(shop.kernel.database.async_engine.url)
    session = async_scoped_session(async_sessionmaker(engine), scopefunc=asyncio.current_task)
    for end, expected in ((session.rollback, (0, 0)), (session.commit, (1, 1))):
        await session.execute(text("insert into orders values (1)"))
        await shop.schedule("act", {"thing_id": "t"}, at=NOON, connection=session)
        await end()
        assert stored(shop) == expected
    await session.remove()
    await engine.dispose()
    await shop.close()


def test_the_called_verbs_refuse_an_async_scoped_session(shop: Postdate) -> None:
    session = async_scoped_session(async_sessionmaker(), scopefunc=lambda: None)
    with pytest.raises(Misconfigured, match="not async_scoped_session"):
        shop.sync.schedule("act", {}, at=NOON, connection=session)
