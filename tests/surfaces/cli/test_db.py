"""How does a database get its schema, and what happens on one that has another?"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from postdate.store.database import Database
from postdate.store.schema import REVISION
from tests.surfaces.cli.shell import Shell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Connection


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    database = Database(url)
    with database.sync_engine.begin() as connection:
        yield connection
    database.close_sync()


def say_revision(url: str, revision: str) -> None:
    with connected(url) as connection:
        schema = "" if connection.dialect.name == "sqlite" else "postdate."
        connection.exec_driver_sql(f"update {schema}postdate_version set version_num = '{revision}'")


@pytest.fixture
def empty(empty_database_url: str, elsewhere: Path) -> Shell:
    return Shell(empty_database_url)


def test_upgrade_makes_an_empty_database_ready_and_may_be_repeated(empty: Shell) -> None:
    before = empty("db", "status", "--json")
    assert before.code == 6
    standing = {"found": None, "expected": REVISION, "current": False, "newer": False, "held_because": None}
    assert before.json == standing
    assert "run `postdate db upgrade`" in before.err
    for _ in range(2):
        assert empty.done("db", "upgrade").out == f"the schema is at {REVISION}\n"
    assert empty.done("db", "status").out == f"the schema is at {REVISION}\n"
    assert empty.done("db", "status", "--json").json["current"] is True
    assert empty.reminder()


def test_the_printed_sql_makes_the_same_schema(empty: Shell, empty_database_url: str) -> None:
    script = empty.done("db", "sql").out
    with connected(empty_database_url) as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        if connection.dialect.name == "sqlite":
            driver.rollback()
            driver.executescript(script)
        else:
            driver.execute(script)
    assert empty("db", "status").code == 0
    assert empty.reminder()


@pytest.mark.parametrize(
    ("revision", "newer", "advice"),
    [
        ("0000", False, "run `postdate db upgrade` on it, or `app.migrate()`"),
        ("9999", True, "upgrade this installation"),
    ],
)
def test_on_another_schema_every_command_says_what_to_do(
    postdate: Shell, database_url: str, revision: str, newer: bool, advice: str
) -> None:
    say_revision(database_url, revision)
    status = postdate("db", "status", "--json")
    assert (status.code, status.json["newer"]) == (6, newer)
    for command in (
        ("list",),
        ("serve", "--types", "reminder"),
        ("schedule", "reminder", "--set", "text=Hi", "--at", "2099-01-01T00:00Z"),
    ):
        answer = postdate(*command)
        assert (answer.code, answer.out) == (4, "")
        assert answer.err == f"postdate: the schema is at {revision}, this version needs {REVISION}: {advice}\n" or (
            newer and advice in answer.err
        )


def test_a_database_that_is_ahead_is_not_upgraded(postdate: Shell, database_url: str) -> None:
    say_revision(database_url, "9999")
    answer = postdate("db", "upgrade")
    assert answer.code == 4
    assert "upgrade this installation" in answer.err


def test_looking_for_a_file_that_does_not_exist_does_not_make_one(elsewhere: Path) -> None:
    shell = Shell(None)
    for command in (("list",), ("serve", "--types", "reminder")):
        answer = shell(*command)
        assert answer.code == 4
        assert "there is no database postdate.db: run `postdate db upgrade`" in answer.err
    assert shell("db", "status").code == 6
    assert list(elsewhere.iterdir()) == []
    assert shell.done("db", "upgrade").out
    assert shell("db", "status").code == 0
    assert (elsewhere / "postdate.db").exists()
