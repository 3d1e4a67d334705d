"""Does everything in the schema have a name of ours, and the same one on both databases?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, text

from postdate import Context, Misconfigured, OwnerNotFound, Postdate, Settings
from postdate.store.migrate import script, upgrade
from postdate.store.names import Names

if TYPE_CHECKING:
    from sqlalchemy import Connection

NAMES = Names(schema="elsewhere", prefix="ours_")
SQLITE_ONLY = ("_uuid", "_never_replaced")
"""How the names end of what only SQLite needs: it has no type for uuids, and its `or replace` asks no trigger."""

INDEX = "create (?:unique )?index"
UNNAMED_KIND = "n"
"""NOT NULL, which PostgreSQL 18 counts among the constraints and names by itself."""

CONSTRAINTS = f"""
select conname from pg_constraint
where connamespace = '{NAMES.schema}'::regnamespace and contype <> '{UNNAMED_KIND}'
  and conrelid::regclass::text not like '%{NAMES.version_table}'
"""
INDEXES = (
    f"select indexname from pg_indexes where schemaname = '{NAMES.schema}' and tablename <> '{NAMES.version_table}'"
)
TRIGGERS = "select tgname from pg_trigger where not tgisinternal"
"""Those of the whole database: nobody else has any."""


def stated(url: str, what: str) -> set[str]:
    """Return the names that the migrations' own text gives to constraints, indexes or triggers."""
    return set(re.findall(rf"\b{what} (\w+)", script(url, NAMES)))


def listed(connection: Connection, query: str) -> set[str]:
    return set(connection.execute(text(query)).scalars())


def test_every_constraint_index_and_trigger_on_postgresql_is_named_by_the_migrations_and_not_by_the_server(
    postgres_url: str,
) -> None:
    upgrade(postgres_url, NAMES)
    engine = create_engine(postgres_url)
    with engine.connect() as connection:
        constraints = listed(connection, CONSTRAINTS)
        assert constraints <= stated(postgres_url, "constraint")
        assert constraints >= {f"{NAMES.prefix}queue_key", f"{NAMES.prefix}outcomes_reason"}
        assert listed(connection, INDEXES) - constraints == stated(postgres_url, INDEX)
        ours = {name for name in listed(connection, TRIGGERS) if name.startswith(NAMES.prefix)}
        assert ours == stated(postgres_url, "create trigger")
    engine.dispose()


def test_every_constraint_index_and_trigger_on_sqlite_is_named(sqlite_url: str) -> None:
    upgrade(sqlite_url, NAMES)
    engine = create_engine(sqlite_url)
    with engine.connect() as connection:
        written = connection.execute(text("select type, name, sql from sqlite_schema where sql is not null")).all()
    engine.dispose()
    tables = [row.sql for row in written if row.type == "table" and row.name.startswith(NAMES.prefix)]
    bare = re.compile(r"(?<!constraint )\b(?:constraint \w+ )?(?P<kind>check|unique|primary key|references)\b")
    for sql in tables:
        if NAMES.version_table not in sql:
            for found in bare.finditer(sql):
                assert found.group().startswith(f"constraint {NAMES.prefix}"), (found.group(), sql)
    for kind, created in (("index", INDEX), ("trigger", "create trigger")):
        names = {row.name for row in written if row.type == kind and row.name.startswith(NAMES.prefix)}
        assert names == stated(sqlite_url, created)


@pytest.mark.parametrize("what", ["constraint", INDEX, "create trigger"])
def test_both_databases_use_the_same_names(sqlite_url: str, postgres_url: str, what: str) -> None:
    on_sqlite, on_postgresql = stated(sqlite_url, what), stated(postgres_url, what)
    assert on_postgresql == {name for name in on_sqlite if not name.endswith(SQLITE_ONLY)}
    assert on_postgresql


@pytest.mark.parametrize(
    "hostile",
    [
        "",
        " ",
        "x y",
        'x"',
        "x'; drop table actions; --",
        "x;",
        "Shop",
        "1st",
        "a" * 21,
        "é",
        "x\n",
        "x.y",
        "x%s",
        "x{ns}",
        "x\0",
    ],
)
def test_names_that_would_need_quoting_are_refused(hostile: str) -> None:
    with pytest.raises(Misconfigured, match="schema"):
        Names(schema=hostile)
    if hostile:
        with pytest.raises(Misconfigured, match="table_prefix"):
            Names(prefix=hostile)


@pytest.mark.parametrize("reserved", ["user", "order", "table", "pg_posts"])
def test_a_schema_is_not_named_by_a_word_that_postgresql_keeps_for_itself(reserved: str) -> None:
    with pytest.raises(Misconfigured, match=reserved):
        Names(schema=reserved)


def test_a_table_of_the_hosts_that_postgresql_would_misread_is_named_with_its_schema(empty_database_url: str) -> None:
    """`user` alone is a function there; a host may well have a table of that name."""
    engine = create_engine(empty_database_url)
    on_postgresql = engine.dialect.name == "postgresql"
    with engine.begin() as connection:
        connection.execute(text(f'create table "user" (id {"uuid" if on_postgresql else "text"} primary key)'))
    engine.dispose()
    table = "user"
    if on_postgresql:
        with pytest.raises(Misconfigured, match=r"public\.user"):
            upgrade(empty_database_url, Names(profiles=table))
        table = "public.user"
    app = Postdate(empty_database_url, settings=Settings(profiles_table=table))

    @app.action("act")
    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    app.migrate()
    with pytest.raises(OwnerNotFound):
        app.sync.schedule("act", {}, at="2027-03-14T12:00Z", user=uuid4())
    app.kernel.database.close_sync()
