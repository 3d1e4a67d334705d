"""Does postdate live in a host's database without touching anything of the host's?"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import create_engine, inspect, text

from postdate import Context, InvalidZone, Misconfigured, OwnerNotFound, Postdate, Settings, Status
from postdate.clock import ManualClock
from postdate.store.database import Database
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Engine

HOST = (
    "create table profiles (id integer primary key, email text)",
    "create table workspaces (id integer primary key, title text)",
    "create table actions (id integer primary key)",
    "create table alembic_version (version_num varchar(32) not null primary key)",
    "insert into profiles values (1, 'ana@example.com')",
    "insert into workspaces values (1, 'shop')",
    "insert into alembic_version values ('f00d')",
)


@pytest.fixture
def host(empty_database_url: str) -> Iterator[Engine]:
    engine = create_engine(Database(empty_database_url).sync_engine.url)
    with engine.begin() as connection:
        for statement in HOST:
            connection.execute(text(statement))
    yield engine
    engine.dispose()


def everything(engine: Engine) -> dict[str, Any]:
    """Return the host's tables, with their columns, indexes and rows."""
    found = {}
    with engine.begin() as connection:
        for table in ("profiles", "workspaces", "actions", "alembic_version"):
            shape = [(c["name"], str(c["type"]), c["nullable"]) for c in inspect(connection).get_columns(table)]
            rows = [tuple(row) for row in connection.execute(text(f"select * from {table}"))]
            found[table] = (shape, inspect(connection).get_indexes(table), rows)
    return found


def installed(host: Engine, url: str, **settings: Any) -> Postdate:
    app = Postdate(url, settings=Settings(**settings), clock=ManualClock(NOON))

    @app.action("act")
    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    app.migrate()
    return app


async def test_two_installations_and_the_host_leave_each_other_alone(host: Engine, empty_database_url: str) -> None:
    before = everything(host)
    one = installed(host, empty_database_url, table_prefix="one_")
    two = installed(host, empty_database_url, table_prefix="two_")
    for app in (one, two):
        await app.schedule("act", {"thing_id": "t"}, at=NOON)  # the same thing in each: their keys are apart
        await app.tick()
        assert [found.status for found in await app.list()] == [Status.PUBLISHED]
    one.migrate()
    assert everything(host) == before
    for app in (one, two):
        await app.close()


def with_users(host: Engine, id_type: str) -> None:
    with host.begin() as connection:
        connection.execute(text(f"create table users (id {id_type} primary key)"))
        connection.execute(text(f"create table teams (id {id_type} primary key)"))


async def test_the_hosts_own_tables_own_actions(host: Engine, empty_database_url: str) -> None:
    """P12, P13: deleting the host's user or team removes what they scheduled."""
    with_users(host, "uuid" if host.dialect.name == "postgresql" else "text")
    user, team = uuid4(), uuid4()
    with host.begin() as connection:
        connection.execute(text("insert into users values (:id)"), {"id": str(user)})
        connection.execute(text("insert into teams values (:id)"), {"id": str(team)})
    app = installed(
        host,
        empty_database_url,
        table_prefix="postdate_",
        profiles_table="users",
        workspaces_table="teams",
    )
    app.kernel.zone_of = lambda workspace, user: "Europe/Lisbon"
    owned = await app.schedule("act", {"n": 1}, at="2027-07-06T09:00", user=user, workspace=team)
    assert owned.publish_at.hour == 8
    unowned = await app.schedule("act", {"n": 2}, at=NOON)
    with pytest.raises(OwnerNotFound):
        await app.schedule("act", {}, at=NOON, user=UUID(int=5))
    with host.begin() as connection:
        connection.execute(text("delete from users"))
    assert [found.id for found in await app.list()] == [unowned.id]
    await app.close()


async def test_the_hosts_own_teams_are_paused_and_have_their_quiet_hours(host: Engine, empty_database_url: str) -> None:
    """P13: and both go with the team."""
    with_users(host, "uuid" if host.dialect.name == "postgresql" else "text")
    team = uuid4()
    with host.begin() as connection:
        connection.execute(text("insert into teams values (:id)"), {"id": str(team)})
    app = installed(host, empty_database_url, table_prefix="postdate_", workspaces_table="teams")
    action = await app.schedule("act", {}, at=NOON, workspace=team)
    await app.pause(workspace=team)
    with pytest.raises(OwnerNotFound):
        await app.pause(workspace=UUID(int=5))
    with pytest.raises(InvalidZone):
        await app.set_quiet_hours(team, "11:00-13:00")
    await app.set_quiet_hours(team, "11:00-13:00", tz="UTC")
    await app.tick()
    assert (await app.get(action.id)).paused
    await app.resume(workspace=team)
    await app.tick()
    assert (await app.get(action.id)).next_attempt_at == NOON + timedelta(hours=1)
    await app.pause(workspace=team)
    with host.begin() as connection:
        connection.execute(text("delete from teams"))
    assert (await app.paused(), await app.quiet_hours(), await app.ended_pauses(), await app.list()) == ([], [], [], [])
    await app.close()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"profiles_table": "users"}, "users.id must be a uuid"),
        ({"workspaces_table": "nowhere"}, "no table nowhere"),
        ({"profiles_table": 'users"; drop table users'}, "lower case"),
        ({"table_prefix": "Robert'); "}, "lower-case"),
    ],
)
def test_owners_that_cannot_own_are_refused_and_nothing_is_left_behind(
    host: Engine, empty_database_url: str, settings: dict[str, str], says: str
) -> None:
    with_users(host, "integer")
    before = everything(host)
    with pytest.raises(Misconfigured, match=says):
        installed(host, empty_database_url, **{"table_prefix": "p_", **settings})
    assert everything(host) == before
    with host.begin() as connection:
        assert not inspect(connection).has_table("p_queue", schema=None)
    asyncio.run(Database(empty_database_url).close())
