"""Does `LocalPostgres` start, survive a crash, and leave nothing behind?"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import Connection, NullPool, create_engine, text
from sqlalchemy.exc import OperationalError

from postdate.testing.postgres import LocalPostgres, ServerNotStarted, available

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not available(), reason="there is no PostgreSQL on this machine")

A_MINUTE = 60
OWNER = """
from postdate.testing.postgres import LocalPostgres
with LocalPostgres(fsync=False) as server:
    print(server._keeper.pid, server._folder, flush=True)
    input()
"""


@pytest.fixture(params=available())
def server(request: pytest.FixtureRequest) -> Iterator[LocalPostgres]:
    with LocalPostgres(request.param, fsync=False, settings={"application_name": "it's a test"}) as started:
        yield started


def connect(url: str) -> Connection:
    return create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT").connect()


def test_a_copied_database_has_the_rows_of_its_template_and_goes_away_when_dropped(
    server: LocalPostgres,
) -> None:
    with connect(server.create_database("template")) as template:
        template.execute(text("create table t as select 42 as n"))
    name = "a 'strange' \"name\""
    with connect(server.create_database(name, template="template")) as connection:
        assert connection.scalars(text("select n from t")).all() == [42]
        server.drop_database(name)
        with pytest.raises(OperationalError):
            connection.execute(text("select n from t"))
    with connect(server.url()) as connection:
        assert name not in connection.scalars(text("select datname from pg_database")).all()


def test_settings_reach_the_server_and_only_this_machine_can(server: LocalPostgres) -> None:
    expected = {
        "fsync": "off",
        "application_name": "it's a test",
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": str(server._folder),
    }
    with connect(server.url()) as connection:
        found = {name: connection.scalar(text(f'show "{name}"')) for name in expected}
    assert found == expected


def test_an_immediate_restart_breaks_connections_and_keeps_what_was_committed(server: LocalPostgres) -> None:
    with connect(server.url()) as before:
        before.execute(text("create table t as select 42 as n"))
        server.restart(immediate=True)
        with pytest.raises(OperationalError):
            before.execute(text("select n from t"))
    with connect(server.url()) as after:
        assert after.scalars(text("select n from t")).all() == [42]


def test_a_server_that_cannot_start_tells_why_and_leaves_no_folder() -> None:
    server = LocalPostgres(settings={"shared_buffers": "a lot"})
    with (
        pytest.raises(ServerNotStarted, match='invalid value for parameter "shared_buffers": "a lot"'),
        server,
    ):
        pass
    assert not server._folder.exists()


def test_a_source_that_is_not_here_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postdate.testing.postgres._programs", lambda _: None)
    with (
        pytest.raises(ServerNotStarted, match=r"PostgreSQL \(debian\) did not start"),
        LocalPostgres("debian"),
    ):
        pass


def test_neither_server_nor_folder_outlives_an_owner_that_was_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout
        keeper, folder = owner.stdout.readline().split()
        ended = os.pidfd_open(int(keeper))
        try:
            assert Path(folder).exists()
            owner.kill()
            assert select.select([ended], [], [], A_MINUTE)[0], "the keeper lives on"
            assert not Path(folder).exists()
        finally:
            os.close(ended)
