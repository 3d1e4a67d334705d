"""Do the verbs keep to Django's transaction: `transaction.atomic()` and `connection=django.db.connection`?"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import django
import pytest
from django.conf import settings
from django.db import connection, connections, transaction
from sqlalchemy import make_url

from postdate import AlreadyScheduled, Context, Misconfigured, Postdate, Status
from postdate.store.database import READ_ONLY
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from collections.abc import Iterator

    from postdate.clock import ManualClock

settings.configure(TIME_ZONE="Asia/Tokyo", USE_TZ=True, DATABASES={}, LOGGING_CONFIG=None)
django.setup()


def described(database_url: str, **options: object) -> dict[str, object]:
    """Return the database as Django's settings name it."""
    url = make_url(database_url)
    if url.get_backend_name() == "sqlite":
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": url.database, **options}
    where = {"HOST": url.host, "PORT": url.port, "USER": url.username, "PASSWORD": url.password, "NAME": url.database}
    return {"ENGINE": "django.db.backends.postgresql", **where, **options}


@contextmanager
def using(database_url: str, **options: object) -> Iterator[None]:
    """Let `django.db.connection` lead to this database."""
    connections.settings = connections.configure_settings({"default": described(database_url, **options)})
    connections["default"] = connections.create_connection("default")
    yield
    connections["default"].close()
    del connections["default"]


@pytest.fixture
def shop(database_url: str, clock: ManualClock) -> Iterator[Postdate]:
    app = Postdate(database_url, clock=clock)

    @app.action("act")
    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    with app.kernel.database.sync_engine.begin() as ours:
        ours.exec_driver_sql("create table orders (id integer)")
    with using(database_url):
        yield app
    app.kernel.database.close_sync()


def order(number: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("insert into orders values (%s)", [number])


def orders(app: Postdate) -> int:
    with app.kernel.database.sync_engine.connect().execution_options(**{READ_ONLY: True}) as ours:
        return int(ours.exec_driver_sql("select count(*) from orders").scalar_one())


def test_order_and_action_are_committed_together(shop: Postdate) -> None:
    payload = {"thing_id": "t", "deep": {"n": [1, "🙂"]}}
    with transaction.atomic():
        order(1)
        action = shop.sync.schedule("act", payload, at=NOON, connection=connection)
        assert shop.sync.get(action.id, connection=connection) == action
        assert (orders(shop), shop.sync.list()) == (0, [])
    (found,) = shop.sync.list()
    assert (orders(shop), found.id, found.payload, found.publish_at) == (1, action.id, payload, NOON)


@pytest.mark.parametrize("order_first", [True, False])
def test_order_and_action_are_rolled_back_together(shop: Postdate, order_first: bool) -> None:
    def fail() -> None:
        with transaction.atomic():
            if order_first:
                order(1)
            shop.sync.schedule("act", {"thing_id": "t"}, at=NOON, idempotency_key="k", connection=connection)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (orders(shop), shop.sync.list()) == (0, [])
    assert shop.sync.schedule("act", {"thing_id": "t"}, at=NOON, idempotency_key="k").status is Status.QUEUED


def test_an_inner_block_takes_its_action_back_alone(shop: Postdate) -> None:
    def fail() -> None:
        with transaction.atomic():
            order(2)
            shop.sync.schedule("act", {"thing_id": "inner"}, at=NOON, connection=connection)
            raise ZeroDivisionError

    with transaction.atomic():
        order(1)
        shop.sync.schedule("act", {"thing_id": "outer"}, at=NOON, connection=connection)
        with pytest.raises(ZeroDivisionError):
            fail()
    assert (orders(shop), [action.thing_id for action in shop.sync.list()]) == (1, ["outer"])


def test_an_inner_block_that_ends_well_is_committed_with_the_outer_one(shop: Postdate) -> None:
    with transaction.atomic():
        with transaction.atomic():
            order(1)
            shop.sync.schedule("act", {}, at=NOON, connection=connection)
        assert (orders(shop), shop.sync.list()) == (0, [])
    assert (orders(shop), len(shop.sync.list())) == (1, 1)


def test_a_refusal_leaves_the_block_usable(shop: Postdate) -> None:
    with transaction.atomic():
        order(1)
        shop.sync.schedule("act", {"thing_id": "t"}, at=NOON, connection=connection)
        with pytest.raises(AlreadyScheduled):
            shop.sync.schedule("act", {"thing_id": "t"}, at=NOON, connection=connection)
        order(2)
    assert (orders(shop), len(shop.sync.list())) == (2, 1)


def test_outside_a_block_it_is_refused_and_says_what_to_do(shop: Postdate) -> None:
    with pytest.raises(Misconfigured, match=r"use transaction\.atomic\(\)"):
        shop.sync.schedule("act", {}, at=NOON, connection=connection)
    assert shop.sync.list() == []
    order(1)
    assert orders(shop) == 1


def test_what_waits_for_the_commit_runs_after_it(shop: Postdate) -> None:
    seen: list[int] = []
    with transaction.atomic():
        transaction.on_commit(lambda: seen.append(len(shop.sync.list())))
        shop.sync.schedule("act", {}, at=NOON, connection=connection)
    assert seen == [1]


def test_every_verb_works_in_a_block(shop: Postdate) -> None:
    with transaction.atomic():
        first = shop.sync.schedule("act", {"thing_id": "t"}, at=NOON, connection=connection)
        now = shop.sync.post_now(first.id, connection=connection)
        assert shop.sync.cancel(now.id, connection=connection).status is Status.CANCELLED
        assert len(shop.sync.history(now.id, connection=connection)) == 2
        transaction.set_rollback(True)
    assert shop.sync.list() == []


def test_a_connection_by_its_alias_serves_as_well(shop: Postdate) -> None:
    with transaction.atomic(using="default"):
        shop.sync.schedule("act", {}, at=NOON, connection=connections["default"])
    assert len(shop.sync.list()) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"OPTIONS": {"server_side_binding": True}},
        {"OPTIONS": {"isolation_level": 4}},
        {"TIME_ZONE": "America/New_York"},
        {"DISABLE_SERVER_SIDE_CURSORS": True, "CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True},
    ],
    ids=str,
)
def test_djangos_ways_to_connect_to_postgresql_make_no_difference(
    postgres_url: str, clock: ManualClock, options: dict[str, Any]
) -> None:
    app = Postdate(postgres_url, clock=clock)
    app.action("act")(lambda ctx, payload: None)
    with using(postgres_url, **options), transaction.atomic():
        made = app.sync.schedule("act", {"thing_id": "%s"}, at=NOON, connection=connection)
        assert app.sync.get(made.id, connection=connection) == made
    assert app.sync.get(made.id) == made
    app.kernel.database.close_sync()


def test_sqlite_transactions_that_begin_at_once_make_no_difference(sqlite_url: str, clock: ManualClock) -> None:
    app = Postdate(sqlite_url, clock=clock)
    app.action("act")(lambda ctx, payload: None)
    with using(sqlite_url, OPTIONS={"transaction_mode": "IMMEDIATE"}), transaction.atomic():
        app.sync.schedule("act", {}, at=NOON, connection=connection)
    assert len(app.sync.list()) == 1
    app.kernel.database.close_sync()


def test_another_kind_of_database_is_refused(sqlite_url: str, postgres_url: str) -> None:
    app = Postdate(postgres_url)
    app.action("act")(lambda ctx, payload: None)
    with using(sqlite_url), transaction.atomic(), pytest.raises(Misconfigured, match="lives in postgresql"):
        app.sync.schedule("act", {}, at=NOON, connection=connection)
