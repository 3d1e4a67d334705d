"""How does each test get a database that looks as if nobody had used it?

Copying a database takes PostgreSQL longer than most tests run. So one that a test has used is emptied for the next,
unless more than its rows has changed.
"""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from postdate.store.migrate import upgrade
from postdate.testing.postgres import LocalPostgres, available, create_database, drop_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

URL_GIVEN = os.environ.get("POSTDATE_TEST_POSTGRES_URL")
LOCAL = {f"postgresql-{source}": source for source in available()}
NO_POSTGRES = "postgresql-missing"
POSTGRES = [*LOCAL, *(["postgresql-env"] if URL_GIVEN else [])] or [NO_POSTGRES]
# Statistics change only where a test says so. Race tests open many connections.
SETTINGS = {"autovacuum": "off", "max_connections": "200"}

FIRST_USER_OID = 16384
# Everything but rows: a row's xmin tells when it was written, and so whether it is the one that was there.
SHAPE = f"""
select md5(string_agg(fact, ',' order by fact)) from (
  select concat('relation', oid, relname, relowner, relacl, reloptions) as fact
    from pg_class where oid >= {FIRST_USER_OID} and relkind <> 't'
  union all select concat('column', attrelid, attname, xmin) from pg_attribute where attrelid >= {FIRST_USER_OID}
  union all select concat('constraint', oid, xmin) from pg_constraint where oid >= {FIRST_USER_OID}
  union all select concat('trigger', oid, xmin) from pg_trigger
  union all select concat('function', oid, xmin) from pg_proc where oid >= {FIRST_USER_OID}
  union all select concat('schema', oid, xmin) from pg_namespace
  union all select concat('default right', oid, xmin) from pg_default_acl
  union all select concat('policy', oid, xmin) from pg_policy
  union all select concat('setting', setdatabase, setrole, setconfig) from pg_db_role_setting
  union all select concat('right', datacl) from pg_database where datname = current_database()
  union all select concat('statistics', starelid) from pg_statistic where starelid >= {FIRST_USER_OID}
) as facts
"""
TABLES = f"select oid::regclass::text from pg_class where relkind = 'r' and oid >= {FIRST_USER_OID}"
WRITTEN = f"{TABLES} and pg_relation_size(oid) > 0"
ALONE = """
select coalesce(bool_and(pg_terminate_backend(pid, 5000)), true)
from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
"""


class PostgresServer:
    """A server on which tests get databases of their own, copied from one that was migrated once."""

    def __init__(self, admin_url: str) -> None:
        self.admin_url = admin_url
        self._empty: dict[str, str] = {}
        self._shapes: dict[str, str] = {}

    @contextmanager
    def migrated(self) -> Iterator[str]:
        """Give the URL of a database that was migrated and holds nothing."""
        name, url = self._empty.popitem() if self._empty else self._copied()
        kept = False
        try:
            yield url
            kept = self._emptied(name, url)
        finally:
            if kept:
                self._empty[name] = url
            else:
                drop_database(self.admin_url, name)

    @contextmanager
    def unmigrated(self) -> Iterator[str]:
        """Give the URL of a database without our tables."""
        name = f"test_{uuid4().hex}"
        try:
            yield create_database(self.admin_url, name)
        finally:
            drop_database(self.admin_url, name)

    def close(self) -> None:
        for name in self._empty:
            drop_database(self.admin_url, name)
        if "_template" in self.__dict__:
            drop_database(self.admin_url, self._template)

    @cached_property
    def _template(self) -> str:
        name = f"template_{uuid4().hex}"
        url = create_database(self.admin_url, name)
        upgrade(url)
        with connected(url) as connection:
            self._first_rows = {
                table: rows
                for (table,) in connection.execute(WRITTEN).fetchall()
                if (rows := _copied_out(connection, table))
            }
        return name

    def _copied(self) -> tuple[str, str]:
        name = f"test_{uuid4().hex}"
        url = create_database(self.admin_url, name, self._template)
        with connected(url) as connection:
            self._shapes[name] = _shape(connection)
        return name, url

    def _emptied(self, name: str, url: str) -> bool:
        """Make the database what it was, and say whether that is possible by its rows alone."""
        with connected(url) as connection:
            (alone,) = connection.execute(ALONE).fetchone() or (False,)
            if not alone or _shape(connection) != self._shapes[name]:
                return False
            written = [table for (table,) in connection.execute(WRITTEN)]
            connection.execute("set session_replication_role = replica")  # no triggers
            connection.execute(sql.SQL(f"truncate {', '.join(written)} restart identity"))
            for table, rows in self._first_rows.items():
                with connection.cursor().copy(sql.SQL(f"copy {table} from stdin")) as copy:
                    copy.write(rows)
        return True


@contextmanager
def connected(url: str) -> Iterator[psycopg.Connection[Any]]:
    """Connect to a database for a moment, without transactions."""
    parsed = make_url(url)
    where: dict[str, Any] = parsed.translate_connect_args(username="user", database="dbname")
    with psycopg.connect(autocommit=True, **where | dict(parsed.query)) as connection:
        yield connection


def _shape(connection: psycopg.Connection[Any]) -> str:
    (shape,) = connection.execute(SHAPE).fetchone() or ("",)
    return str(shape)


def _copied_out(connection: psycopg.Connection[Any], table: str) -> bytes:
    with connection.cursor().copy(sql.SQL(f"copy {table} to stdout")) as copy:
        return b"".join(bytes(rows) for rows in copy)


class Databases:
    """What one worker has started so far."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._servers: dict[str, PostgresServer] = {}
        self._undo = ExitStack()

    @contextmanager
    def fresh(self, kind: str, folder: Path, *, migrated: bool = True) -> Iterator[str]:
        """Give the URL of a database that looks as if nobody had used it."""
        if kind == "sqlite":
            file = folder / "postdate.db"
            if migrated:
                shutil.copyfile(self._sqlite_template, file)
            yield f"sqlite:///{file}"
            return
        if kind == NO_POSTGRES:
            pytest.skip("there is no PostgreSQL on this machine")
        server = self._server(kind)
        with server.migrated() if migrated else server.unmigrated() as url:
            yield url

    def close(self) -> None:
        self._undo.close()

    @cached_property
    def _sqlite_template(self) -> Path:
        file = self._folder / "template.db"
        upgrade(f"sqlite:///{file}")
        return file

    def _server(self, kind: str) -> PostgresServer:
        if kind not in self._servers:
            if kind in LOCAL:
                local = LocalPostgres(LOCAL[kind], fsync=False, settings=SETTINGS)
                admin_url = self._undo.enter_context(local).url()
            else:
                admin_url = str(URL_GIVEN)
            self._servers[kind] = PostgresServer(admin_url)
            self._undo.callback(self._servers[kind].close)
        return self._servers[kind]
