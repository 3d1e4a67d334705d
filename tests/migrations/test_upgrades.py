"""Does a database get from any schema to the newest, whole or not at all, whoever asks for it at the same time?"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from alembic import command
from sqlalchemy import text

from postdate import Context, Postdate, SchemaMismatch, Status
from postdate.clock import ManualClock
from postdate.store import migrate
from postdate.store.database import Database
from postdate.store.migrate import status, upgrade
from postdate.store.names import Names
from postdate.store.schema import REVISION
from postdate.testing.postgres import create_database, drop_database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOON = datetime(2027, 3, 14, 12, tzinfo=UTC)
FIRST = "0001"
PROCESSES, ROUNDS = 2, 8
A_WHILE = 30


def upgrade_to(url: str, revision: str) -> None:
    """Bring an empty database to an older revision."""
    database = Database(url)
    with database.sync_engine.begin() as connection:
        command.upgrade(migrate._config(Names(), connection=connection), revision)
    database.close_sync()


@pytest.fixture
def new_url(empty_database_url: str, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Make empty databases beside `empty_database_url`."""
    made: list[str] = []

    def make() -> str:
        name = f"more_{uuid4().hex}"
        if empty_database_url.startswith("sqlite"):
            return f"sqlite:///{tmp_path / name}.db"
        made.append(name)
        return create_database(empty_database_url, name)

    yield make
    for name in made:
        drop_database(empty_database_url, name)


def test_upgrades_of_two_processes_at_once_both_succeed(new_url: Callable[[], str]) -> None:
    program = [sys.executable, "-m", "tests.migrations.upgrading"]
    root = Path(__file__).parents[2]
    with ExitStack() as running:
        upgraders = [
            running.enter_context(
                subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root)
            )
            for _ in range(PROCESSES)
        ]
        said = [_hear(upgrader) for upgrader in upgraders]
        for _ in range(ROUNDS):
            url = new_url()
            for upgrader in upgraders:
                _tell(upgrader, url)
            said += [_hear(upgrader) for upgrader in upgraders]
            assert status(url).current
        for upgrader in upgraders:
            upgrader.communicate()
    assert said == ["ready"] * PROCESSES + ["ok"] * PROCESSES * ROUNDS


def _tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def _hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


async def test_a_database_of_the_first_revision_is_refused_until_it_is_upgraded_and_then_keeps_its_actions(
    empty_database_url: str,
) -> None:
    upgrade_to(empty_database_url, FIRST)
    view = "scheduled_actions" if empty_database_url.startswith("sqlite") else "postdate.scheduled_actions"
    publish_at = int(NOON.timestamp()) * 1_000_000 if view == "scheduled_actions" else f"'{NOON.isoformat()}'"
    database = Database(empty_database_url)
    with database.sync_engine.begin() as connection:
        connection.execute(
            text(
                f"insert into {view} (user_id, action_type, payload, publish_at)"
                f" values ('00000000-0000-0000-0000-000000000000', 'act', '{{}}', {publish_at})"
            )
        )
    database.close_sync()
    app = Postdate(empty_database_url, clock=ManualClock(NOON))

    @app.action("act")
    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    with pytest.raises(SchemaMismatch, match=f"{FIRST}, this version needs {REVISION}: run `postdate db upgrade`"):
        await app.list()
    app.migrate()
    await app.tick()
    assert [action.status for action in await app.list()] == [Status.PUBLISHED]
    await app.close()


def test_an_upgrade_that_fails_leaves_the_schema_it_found(empty_database_url: str) -> None:
    upgrade_to(empty_database_url, FIRST)
    table = "disabled_endpoints" if empty_database_url.startswith("sqlite") else "postdate.disabled_endpoints"
    database = Database(empty_database_url)
    with database.sync_engine.begin() as connection:
        connection.execute(text(f"create view {table} as select 1 as n"))  # in the way of the second revision
    with pytest.raises(Exception, match="disabled_endpoints"):
        upgrade(empty_database_url)
    assert status(empty_database_url).found == FIRST
    with database.sync_engine.begin() as connection:
        connection.execute(text(f"drop view {table}"))
    database.close_sync()
    upgrade(empty_database_url)
    assert status(empty_database_url).current


@pytest.mark.parametrize("found", [None, FIRST, "9999"])
async def test_verbs_and_engine_refuse_to_work_on_another_schema(empty_database_url: str, found: str | None) -> None:
    if found is not None:
        upgrade_to(empty_database_url, FIRST)
        table = "postdate_version" if empty_database_url.startswith("sqlite") else "postdate.postdate_version"
        database = Database(empty_database_url)
        with database.sync_engine.begin() as connection:
            connection.execute(text(f"update {table} set version_num = '{found}'"))
        database.close_sync()
    for clock in (None, ManualClock(NOON)):
        app = Postdate(empty_database_url, clock=clock)
        for start in (app.list, app.run, app.tick):
            with pytest.raises(SchemaMismatch) as caught:
                await asyncio.wait_for(start(), A_WHILE)
            assert (caught.value.found, caught.value.newer) == (found, found == "9999")
        await app.close()
