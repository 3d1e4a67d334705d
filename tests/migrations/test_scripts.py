"""Can people run the migrations with tools of their own?"""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime

import pytest
from sqlalchemy import make_url

from postdate import Context, Postdate, Settings, Status
from postdate.clock import ManualClock
from postdate.store.migrate import script, status, upgrade
from postdate.store.names import Names
from postdate.testing.postgres import _programs, available

NOON = datetime(2027, 3, 14, 12, tzinfo=UTC)
SCHEMAS = [Names(), Names(schema="elsewhere", prefix="ours_")]


def run(url: str, sql: str) -> subprocess.CompletedProcess[str]:
    """Let the database's own client run this, up to the first error."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        client = shutil.which("sqlite3")
        arguments = ["-bail", str(parsed.database)]
    else:
        folders = [_programs(source) for source in available()]
        client = shutil.which("psql") or next((str(folder / "psql") for folder in folders if folder), None)
        conninfo = parsed.set(drivername="postgresql").render_as_string(hide_password=False)
        arguments = ["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", conninfo]
    if client is None:
        pytest.skip(f"there is no command-line client for {parsed.get_backend_name()} on this machine")
    return subprocess.run([client, *arguments], input=sql, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("names", SCHEMAS, ids=["by default", "elsewhere"])
async def test_the_script_makes_a_database_that_works_when_psql_or_sqlite3_runs_it(
    empty_database_url: str, names: Names
) -> None:
    ran = run(empty_database_url, script(empty_database_url, names))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert status(empty_database_url, names).current
    upgrade(empty_database_url, names)  # nothing to do

    settings = Settings(schema_name=names.schema, table_prefix=names.prefix)
    app = Postdate(empty_database_url, settings=settings, clock=ManualClock(NOON))

    @app.action("act")
    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    made = await app.schedule("act", {"thing_id": "t"}, at=NOON, target="here")
    await app.tick()
    assert (await app.get(made.id)).status is Status.PUBLISHED
    await app.close()


def test_a_script_that_fails_leaves_nothing_half_made(empty_database_url: str) -> None:
    sql, names = script(empty_database_url), Names()
    broken = sql.replace("create index action_events_action", "create index action_events_action on nothing (x); --", 1)
    assert broken != sql
    ran = run(empty_database_url, broken)
    assert ran.returncode != 0
    assert status(empty_database_url, names).found is None
    upgrade(empty_database_url, names)
    assert status(empty_database_url, names).current
