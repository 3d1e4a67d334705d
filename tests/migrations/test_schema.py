"""Do the migrations build the schema that the code expects, and does the code refuse every other?"""

from __future__ import annotations

import asyncio
import sqlite3
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, text

import postdate.store.migrations
from postdate import Postdate, SchemaMismatch
from postdate.store.database import Database
from postdate.store.migrate import require_current, script, status, upgrade
from postdate.store.names import Names
from postdate.store.schema import REVISION, Tables, tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Connection, Engine

pytestmark = pytest.mark.filterwarnings("ignore:Did not recognize type 'xid8'")  # read by no query of ours

NAMES = Names()


@pytest.fixture
def engine(empty_database_url: str) -> Iterator[Engine]:
    engine = create_engine(Database(empty_database_url).sync_engine.url)
    yield engine
    engine.dispose()


def ours(connection: Connection) -> Tables:
    return tables(NAMES, connection.dialect.name)


def objects(connection: Connection) -> list[tuple[Any, ...]]:
    """Return everything that the schema consists of, as the database tells it."""
    if connection.dialect.name == "sqlite":
        found = connection.execute(text("select type, name, tbl_name, sql from sqlite_schema order by type, name"))
        return [(row.type, row.name, row.tbl_name, " ".join((row.sql or "").split())) for row in found]
    queries = (
        (
            "select table_name, column_name, data_type, is_nullable, column_default, generation_expression"
            " from information_schema.columns where table_schema = 'postdate' order by 1, ordinal_position"
        ),
        "select indexdef, '' from pg_indexes where schemaname = 'postdate' order by 1",
        (
            "select conname, pg_get_constraintdef(oid) from pg_constraint"
            " where connamespace = 'postdate'::regnamespace order by 1"
        ),
        "select tgname, pg_get_triggerdef(oid) from pg_trigger where not tgisinternal order by 1",
        "select proname, pg_get_functiondef(oid) from pg_proc where pronamespace = 'postdate'::regnamespace order by 1",
        "select viewname, definition from pg_views where schemaname = 'postdate' order by 1",
    )
    return [tuple(row) for query in queries for row in connection.execute(text(query))]


def test_the_newest_migration_is_the_revision_that_the_code_works_on() -> None:
    config = Config()
    config.set_main_option("script_location", str(postdate.store.migrations.__path__[0]))
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_heads() == [REVISION]


def test_an_empty_database_gets_the_schema_and_a_second_upgrade_changes_nothing(
    empty_database_url: str, engine: Engine
) -> None:
    assert status(empty_database_url).found is None
    upgrade(empty_database_url)
    with engine.begin() as connection:
        once = objects(connection)
    upgrade(empty_database_url)
    with engine.begin() as connection:
        assert objects(connection) == once
    assert status(empty_database_url).current


def test_the_tables_are_those_that_queries_are_written_against(database_url: str) -> None:
    engine = create_engine(Database(database_url).sync_engine.url)
    with engine.begin() as connection:
        wanted = ours(connection)
        integer = "INTEGER" if connection.dialect.name == "sqlite" else "BIGINT"  # SQLite's hold 64 bits
        inspector = inspect(connection)
        for table in wanted.metadata.tables.values():
            columns = {column["name"]: column for column in inspector.get_columns(table.name, table.schema)}
            extra = set(columns) - set(table.c.keys())
            assert extra <= {"xid"}, table.name  # the change feed's, which no query here reads
            for column in table.c:
                found = columns[column.name]
                wanted_type = column.type.compile(connection.dialect).replace("BIGINT", integer)
                told = (found["nullable"], found["type"].compile(connection.dialect))
                assert told == (column.nullable, wanted_type), f"{table.name}.{column.name}"
            found_indexes = {
                (index["name"], tuple(index["column_names"]))
                for index in inspector.get_indexes(table.name, table.schema)
                if not index.get("duplicates_constraint")
            }
            assert {(index.name, tuple(index.columns.keys())) for index in table.indexes} == found_indexes
    engine.dispose()


def test_alembic_finds_nothing_to_change(postgres_url: str) -> None:
    engine = create_engine(Database(postgres_url).sync_engine.url)
    with engine.begin() as connection:
        metadata = ours(connection).metadata

        def of_ours(name: str | None, kind: str, _parents: object) -> bool:
            return name == "postdate" if kind == "schema" else name != NAMES.version_table

        context = MigrationContext.configure(
            connection, opts={"include_schemas": True, "include_name": of_ours, "compare_type": True}
        )
        differences = compare_metadata(context, metadata)
        left = [each for each in differences if not (each[0] == "remove_column" and each[3].name == "xid")]
        assert left == []
    engine.dispose()


def test_partial_indexes_have_the_conditions_that_the_tables_name(database_url: str) -> None:
    engine = create_engine(Database(database_url).sync_engine.url)
    with engine.begin() as connection:
        sqlite = connection.dialect.name == "sqlite"
        query = (
            "select name, sql from sqlite_schema where type = 'index'"
            if sqlite
            else "select indexname, indexdef from pg_indexes where schemaname = 'postdate'"
        )
        written = {row[0]: row[1] for row in connection.execute(text(query))}
        for table in ours(connection).metadata.tables.values():
            for index in table.indexes:
                condition = index.dialect_options["sqlite"]["where"]
                told = str(written[str(index.name)]).lower()
                assert ("where" in told) == (condition is not None), index.name
                for word in str(condition).split() if condition is not None else ():
                    assert word in told, index.name
    engine.dispose()


def test_the_offline_script_builds_what_upgrade_builds(empty_database_url: str, engine: Engine, tmp_path: Path) -> None:
    sql = script(empty_database_url)
    if engine.dialect.name == "sqlite":
        by_hand = sqlite3.connect(str(engine.url.database))
        by_hand.executescript(sql)
        by_hand.close()
    else:
        with psycopg.connect(
            engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        ) as by_hand_too:
            by_hand_too.execute(sql.encode())
    with engine.begin() as connection:
        require_current(connection, NAMES)
        built_by_hand = objects(connection)
    migrated = tmp_path / "migrated.db"
    if engine.dialect.name == "sqlite":
        upgrade(f"sqlite:///{migrated}")
        other = create_engine(f"sqlite:///{migrated}")
    else:
        with engine.begin() as connection:
            connection.execute(text("drop schema postdate cascade"))
        upgrade(empty_database_url)
        other = engine
    with other.begin() as connection:
        assert objects(connection) == built_by_hand
    other.dispose()


def test_a_migration_that_fails_leaves_nothing_half_made(empty_database_url: str, engine: Engine) -> None:
    sqlite = engine.dialect.name == "sqlite"
    with engine.begin() as connection:
        if not sqlite:
            connection.execute(text("create schema postdate"))
        # the last of its tables is there already, so it fails when it has done nearly everything
        connection.execute(text(f"create table {'' if sqlite else 'postdate.'}idempotency (id integer)"))
    with pytest.raises(Exception, match="idempotency"):
        upgrade(empty_database_url)
    with engine.begin() as connection:
        assert inspect(connection).get_table_names(None if sqlite else "postdate") == ["idempotency"]
    assert status(empty_database_url).found is None


@pytest.mark.parametrize(("found", "newer"), [("0000", False), ("9999", True)])
def test_another_revision_is_refused_with_what_to_do(database_url: str, found: str, newer: bool) -> None:
    engine = create_engine(Database(database_url).sync_engine.url)
    qualifier = "" if engine.dialect.name == "sqlite" else "postdate."
    with engine.begin() as connection:
        connection.execute(text(f"update {qualifier}{NAMES.version_table} set version_num = '{found}'"))
    engine.dispose()
    app = Postdate(database_url)
    with pytest.raises(SchemaMismatch) as caught:
        app.sync.list()
    assert (caught.value.found, caught.value.expected, caught.value.newer) == (found, REVISION, newer)
    assert ("upgrade this installation" if newer else "postdate db upgrade") in str(caught.value)
    with pytest.raises(SchemaMismatch):
        asyncio.run(app.run())
    if newer:
        with pytest.raises(SchemaMismatch):
            upgrade(database_url)
    asyncio.run(app.close())


def test_a_schema_and_a_prefix_of_choice_hold_everything(empty_database_url: str, engine: Engine) -> None:
    sqlite = engine.dialect.name == "sqlite"
    for names in (Names(schema="one", prefix="a_"), Names(schema="one", prefix="b_")):
        upgrade(empty_database_url, names)
        assert status(empty_database_url, names).current
    with engine.begin() as connection:
        found = inspect(connection).get_table_names(None if sqlite else "one")
        assert {name[:2] for name in found if name != "sqlite_sequence"} == {"a_", "b_"}
        assert inspect(connection).get_table_names(None if sqlite else "public") == (sorted(found) if sqlite else [])
