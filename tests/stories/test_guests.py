"""Do the verbs keep to the transaction of a plain driver connection, and leave the connection as it was?

These pin what is used of SQLAlchemy's insides: an `Engine` over a pool that hands out a proxy.
"""

from __future__ import annotations

import asyncio
import sqlite3
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.rows import dict_row

from postdate import AlreadyScheduled, Context, Misconfigured, Postdate, Status
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from collections.abc import Iterator

    from postdate.clock import ManualClock


def opened(app: Postdate, **options: Any) -> Any:
    url = app.kernel.database.url
    if app.kernel.database.is_sqlite:
        return sqlite3.connect(str(url.database), **options)
    return psycopg.connect(url.set(drivername="postgresql").render_as_string(hide_password=False), **options)


@pytest.fixture
def shop(database_url: str, clock: ManualClock) -> Iterator[Postdate]:
    app = Postdate(database_url, clock=clock)

    @app.action("act")
    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    with_orders = opened(app)
    with_orders.execute("create table orders (id integer)")
    with_orders.commit()
    with_orders.close()
    yield app
    asyncio.run(app.close())


@pytest.fixture
def guest(shop: Postdate) -> Iterator[Any]:
    connection = opened(shop)
    yield connection
    connection.close()


def orders(app: Postdate) -> int:
    connection = opened(app)
    (count,) = connection.execute("select count(*) from orders").fetchone()
    connection.close()
    return int(count)


def test_order_and_action_are_committed_together(shop: Postdate, guest: Any) -> None:
    guest.execute("insert into orders values (1)")
    action = shop.sync.schedule("act", {"thing_id": "t", "deep": {"n": [1, "🙂"]}}, at=NOON, connection=guest)
    assert shop.sync.get(action.id, connection=guest).payload == {"thing_id": "t", "deep": {"n": [1, "🙂"]}}
    assert (orders(shop), shop.sync.list()) == (0, [])
    guest.commit()
    assert (orders(shop), [found.id for found in shop.sync.list()]) == (1, [action.id])


@pytest.mark.parametrize("order_first", [True, False])
def test_order_and_action_are_rolled_back_together(shop: Postdate, guest: Any, order_first: bool) -> None:
    """Also where ours is the first statement, for which sqlite3 has begun no transaction yet."""
    if order_first:
        guest.execute("insert into orders values (1)")
    shop.sync.schedule("act", {"thing_id": "t"}, at=NOON, idempotency_key="k", connection=guest)
    guest.rollback()
    assert (orders(shop), shop.sync.list()) == (0, [])
    assert shop.sync.schedule("act", {"thing_id": "t"}, at=NOON, idempotency_key="k").status is Status.QUEUED


def test_an_error_leaves_the_callers_transaction_usable(shop: Postdate, guest: Any) -> None:
    guest.execute("insert into orders values (1)")
    shop.sync.schedule("act", {"thing_id": "t"}, at=NOON, connection=guest)
    with pytest.raises(AlreadyScheduled):
        shop.sync.schedule("act", {"thing_id": "t"}, at=NOON, connection=guest)
    guest.execute("insert into orders values (2)")
    guest.commit()
    assert (orders(shop), len(shop.sync.list())) == (2, 1)


def test_every_verb_works_as_a_guest(shop: Postdate, guest: Any) -> None:
    first = shop.sync.schedule("act", {"thing_id": "t"}, at=NOON + timedelta(days=1), connection=guest)
    moved = shop.sync.reschedule(first.id, at=NOON + timedelta(days=2), connection=guest)
    now = shop.sync.post_now(moved.id, connection=guest)
    assert shop.sync.cancel(now.id, connection=guest).status is Status.CANCELLED
    assert len(shop.sync.history(now.id, connection=guest)) == 2
    assert {found.status for found in shop.sync.list(connection=guest)} == {Status.CANCELLED}
    guest.rollback()
    assert shop.sync.list() == []


def test_the_connection_stays_as_its_owner_set_it(shop: Postdate) -> None:
    connection = opened(shop)
    connection.row_factory = sqlite3.Row if shop.kernel.database.is_sqlite else dict_row
    before = (connection.row_factory, connection.isolation_level, getattr(connection, "autocommit", None))
    connection.execute("insert into orders values (1)")
    shop.sync.schedule("act", {}, at=NOON, connection=connection)
    assert (connection.row_factory, connection.isolation_level, getattr(connection, "autocommit", None)) == before
    assert connection.execute("select id from orders").fetchone()["id"] == 1
    connection.rollback()
    connection.close()


def test_a_connection_in_autocommit_is_refused(shop: Postdate) -> None:
    options = {"isolation_level": None} if shop.kernel.database.is_sqlite else {"autocommit": True}
    connection = opened(shop, **options)
    with pytest.raises(Misconfigured, match="autocommit"):
        shop.sync.schedule("act", {}, at=NOON, connection=connection)
    connection.execute("begin")
    shop.sync.schedule("act", {}, at=NOON, connection=connection)
    connection.execute("rollback")
    assert shop.sync.list() == []
    connection.close()


@pytest.mark.parametrize("autocommit", [False, True])
def test_a_failed_transaction_is_reported_by_the_database(postgres_url: str, autocommit: bool) -> None:
    app = Postdate(postgres_url)
    app.action("act")(lambda ctx, payload: None)
    connection = opened(app, autocommit=autocommit)
    connection.execute("begin" if autocommit else "select 1")
    with pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute("select * from nowhere")
    with pytest.raises(Exception, match="aborted"):
        app.sync.schedule("act", {}, at=NOON, connection=connection)
    connection.execute("rollback")
    connection.close()
    asyncio.run(app.close())


@pytest.mark.parametrize("cursors", [psycopg.RawCursor, psycopg.ClientCursor])
def test_cursors_of_the_callers_own_kind_make_no_difference(postgres_url: str, cursors: Any) -> None:
    app = Postdate(postgres_url)
    app.action("act")(lambda ctx, payload: None)
    connection = opened(app, cursor_factory=cursors)
    action = app.sync.schedule("act", {"thing_id": "t"}, at=NOON, connection=connection)
    assert connection.cursor_factory is cursors
    connection.commit()
    connection.close()
    assert app.sync.get(action.id).status is Status.QUEUED
    asyncio.run(app.close())


def test_a_connection_that_answers_too_late_is_refused(postgres_url: str) -> None:
    app = Postdate(postgres_url)
    app.action("act")(lambda ctx, payload: None)
    connection = opened(app)
    with connection.pipeline():
        connection.execute("create table mine ()")
        with pytest.raises(Misconfigured, match="pipeline"):
            app.sync.schedule("act", {}, at=NOON, connection=connection)
    app.sync.schedule("act", {}, at=NOON, connection=connection)
    connection.commit()
    connection.close()
    assert len(app.sync.list()) == 1
    asyncio.run(app.close())


def test_a_connection_that_returns_no_text_is_refused(sqlite_url: str) -> None:
    """Ids that come back as bytes are nobody's: each action would look as if it were scheduled already."""
    app = Postdate(sqlite_url)
    app.action("act")(lambda ctx, payload: None)
    connection = opened(app)
    connection.text_factory = bytes
    with pytest.raises(Misconfigured, match="text_factory"):
        app.sync.schedule("act", {}, at=NOON, connection=connection)
    connection.close()
    asyncio.run(app.close())


def test_another_kind_of_connection_is_refused(shop: Postdate, tmp_path: Any) -> None:
    with pytest.raises(Misconfigured, match="not object"):
        shop.sync.schedule("act", {}, at=NOON, connection=object())  # type: ignore[arg-type]
    if not shop.kernel.database.is_sqlite:
        other = sqlite3.connect(tmp_path / "other.db")
        with pytest.raises(Misconfigured, match="lives in postgresql"):
            shop.sync.schedule("act", {}, at=NOON, connection=other)
        other.close()


async def test_the_awaited_verbs_refuse_a_synchronous_connection(app: Postdate) -> None:
    app.action("act")(lambda ctx, payload: None)
    connection = opened(app)
    with pytest.raises(Misconfigured, match="AsyncConnection"):
        await app.schedule("act", {}, at=NOON, connection=connection)
    connection.close()
