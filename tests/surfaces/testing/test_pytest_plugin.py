"""Do the fixtures for users' tests do what they say, in a project that is not ours?"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.databases import NO_POSTGRES, POSTGRES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SHOP = """
from datetime import UTC, datetime, timedelta
from postdate import Context, NotSent, Postdate

app = Postdate("sqlite:///the-real-one.db")
ran = []

@app.action("remind")
async def remind(ctx: Context, payload: dict) -> None:
    ran.append((payload["text"], ctx.now))

@app.action("fail", auto_attempts=2)
def fail(ctx: Context, payload: dict) -> None:
    ran.append((f"attempt {ctx.attempt}", ctx.now))
    raise NotSent("not today")

def order(text, at):
    return app.sync.schedule("remind", {"text": text}, at=at)
"""
CONFTEST = """
import pytest
import shop

pytest_plugins = ["postdate.testing.pytest_plugin"]

@pytest.fixture(autouse=True)
def app(postdate_app):
    shop.ran.clear()
    return postdate_app(shop.app)
"""
# Most projects have no plugin for coroutines.
SYNC = ("-p", "no:asyncio")
ASYNC = ("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function")
HEAD = """
import asyncio
from datetime import timedelta
import pytest
import shop
from postdate import InvalidInstant, Postdate, Status
from postdate.testing.travel import travel
"""


def run(
    folder: Path, tests: str, *options: str, conftest: str = CONFTEST, mode: Sequence[str] = SYNC
) -> subprocess.CompletedProcess[str]:
    """Run tests that a user might have written; warnings are errors."""
    for name, text in {"shop.py": SHOP, "conftest.py": conftest, "test_shop.py": HEAD + tests}.items():
        (folder / name).write_text(text)
    others = {name: value for name, value in os.environ.items() if not name.startswith(("POSTDATE_", "PYTEST_"))}
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *mode, *options]
    return subprocess.run(command, cwd=folder, env=others, capture_output=True, text=True, timeout=100, check=False)


def passed(folder: Path, tests: str, *options: str, conftest: str = CONFTEST, mode: Sequence[str] = SYNC) -> None:
    ran = run(folder, tests, *options, conftest=conftest, mode=mode)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_time_passes_as_the_test_says_and_each_action_fires_at_its_instant(tmp_path: Path) -> None:
    passed(
        tmp_path,
        """
def test_it(app, manual_clock, run_due):
    began = manual_clock.now()
    second = shop.order("second", began + timedelta(hours=2))
    first = shop.order("first", began + timedelta(hours=1))
    later = shop.order("later", began + timedelta(days=2))
    assert run_due().due_count == 0
    assert run_due(after=timedelta(days=1)).due_count == 2
    assert shop.ran == [("first", began + timedelta(hours=1)), ("second", began + timedelta(hours=2))]
    assert manual_clock.now() == began + timedelta(days=1)
    assert app.sync.get(first.id).status is Status.PUBLISHED
    assert run_due(until=began + timedelta(days=2)).due_count == 1
    assert app.sync.get(later.id).status is Status.PUBLISHED
""",
    )


def test_retries_are_fired_on_the_way(tmp_path: Path) -> None:
    passed(
        tmp_path,
        """
def test_it(app, manual_clock, run_due):
    began = manual_clock.now()
    action = app.sync.schedule("fail", {}, at=began)
    assert run_due(after=timedelta(hours=1)).due_count == 2
    assert [what for what, _ in shop.ran] == ["attempt 1", "attempt 2"]
    assert began < shop.ran[1][1] < began + timedelta(hours=1)
    assert app.sync.get(action.id).reason == "exhausted"
""",
    )


def test_every_test_has_a_database_of_its_own_and_the_real_one_is_never_touched(tmp_path: Path) -> None:
    passed(
        tmp_path,
        """
@pytest.mark.parametrize("turn", [1, 2])
def test_it(app, manual_clock, turn, postdate_url):
    assert app.sync.list() == []
    shop.order("x", manual_clock.now())
    assert shop.app.settings.database_url == postdate_url

@pytest.fixture(scope="session", autouse=True)
def afterwards():
    yield
    assert shop.app.settings.database_url == "sqlite:///the-real-one.db"
""",
    )
    assert not (tmp_path / "the-real-one.db").exists()


def test_coroutines_travel_for_themselves_and_are_told_so(tmp_path: Path) -> None:
    passed(
        tmp_path,
        """
async def test_it(app, manual_clock, run_due):
    action = await app.schedule("remind", {"text": "x"}, at=manual_clock.now() + timedelta(days=1))
    with pytest.raises(RuntimeError, match="await travel"):
        run_due(after=timedelta(days=1))
    journey = await travel(app, to=manual_clock.now() + timedelta(days=1))
    assert journey.due_count == 1
    assert journey.fired[0].action == await app.get(action.id)
    assert (await app.get(action.id)).status is Status.PUBLISHED
""",
        mode=ASYNC,
    )


def test_what_the_test_left_open_is_closed(tmp_path: Path) -> None:
    """Also what a loop that has ended had opened: warnings are errors here."""
    passed(
        tmp_path,
        """
@pytest.mark.parametrize("turn", [1, 2])
def test_it(app, manual_clock, turn, run_due):
    asyncio.run(app.schedule("remind", {"text": "x"}, at=manual_clock.now()))
    assert run_due().due_count == 1
""",
    )


def test_several_apps_can_share_a_test(tmp_path: Path) -> None:
    passed(
        tmp_path,
        """
def test_it(postdate_app, manual_clock, run_due, tmp_path):
    other = Postdate(f"sqlite:///{tmp_path}/real.db")
    seen = []
    other.action("note")(lambda ctx, payload: seen.append(ctx.now))
    postdate_app(other, f"sqlite:///{tmp_path}/other.db")
    at = manual_clock.now() + timedelta(minutes=1)
    shop.order("x", at)
    other.sync.schedule("note", {}, at=at)
    assert run_due(after=timedelta(hours=1)).due_count == 2
    assert seen == [at]
    assert shop.ran == [("x", at)]
""",
    )


def test_a_database_that_the_test_brings_is_migrated_under_the_apps_own_names(tmp_path: Path) -> None:
    passed(
        tmp_path,
        """
from postdate import Settings

def test_it(postdate_app, manual_clock, postdate_url):
    app = Postdate("sqlite:///x.db", settings=Settings(table_prefix="shop_"))
    app.action("act")(lambda ctx, payload: None)
    postdate_app(app)
    assert app.sync.schedule("act", {}, at=manual_clock.now()).status is Status.QUEUED
""",
    )


@pytest.mark.skipif(POSTGRES == [NO_POSTGRES], reason="there is no PostgreSQL on this machine")
@pytest.mark.parametrize("how", [["--postdate-database", "postgresql"], ["-o", "postdate_database=postgresql"]])
def test_postgresql_is_a_word_away(tmp_path: Path, how: list[str]) -> None:
    passed(
        tmp_path,
        """
@pytest.mark.parametrize("turn", [1, 2])
def test_it(app, manual_clock, run_due, turn):
    assert app.kernel.database.dialect == "postgresql"
    assert app.sync.list() == []
    asyncio.run(app.schedule("remind", {"text": "x"}, at=manual_clock.now()))
    assert run_due().due_count == 1
""",
        *how,
    )


def test_a_mistake_is_told(tmp_path: Path) -> None:
    alone = 'pytest_plugins = ["postdate.testing.pytest_plugin"]'
    passed(
        tmp_path,
        """
def test_it(run_due, manual_clock):
    with pytest.raises(RuntimeError, match="postdate_app"):
        run_due()
    run_due.apps.append(shop.app)
    with pytest.raises(InvalidInstant, match="stands at"):
        run_due(until=manual_clock.now() - timedelta(seconds=1))
""",
        conftest=alone,
    )
    refused = run(tmp_path, "", "-o", "postdate_database=oracle", conftest=alone)
    assert refused.returncode == pytest.ExitCode.USAGE_ERROR
    assert "postdate_database must be one of sqlite, postgresql" in refused.stderr
