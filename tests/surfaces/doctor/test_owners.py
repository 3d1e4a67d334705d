"""Does the doctor see that other tables are named as owners than those that the schema was made for?"""

from __future__ import annotations

import pytest

from postdate import Postdate, Settings
from postdate.doctor import Finding, Health
from postdate.doctor.owners import owners_findings
from postdate.store.database import Database
from tests.surfaces.doctor.conftest import changed


@pytest.fixture
def url(empty_database_url: str) -> str:
    kind = "text" if Database(empty_database_url).is_sqlite else "uuid"
    for table in ("people", "users", "teams"):
        changed(empty_database_url, f"create table {table} (id {kind} primary key)")
    return empty_database_url


def app(url: str, **settings: str) -> Postdate:
    return Postdate(settings=Settings(database_url=url, **settings))  # type: ignore[arg-type]


def owners(url: str, **settings: str) -> list[Finding]:
    opened = app(url, **settings)
    try:
        return list(owners_findings(opened))
    finally:
        opened.kernel.database.close_sync()


@pytest.mark.parametrize(
    "named",
    [
        {},
        {"profiles_table": "users"},
        {"profiles_table": "users", "workspaces_table": "teams", "table_prefix": "ours_"},
    ],
)
def test_owners_that_were_named_before_the_first_upgrade_are_watched(url: str, named: dict[str, str]) -> None:
    app(url, **named).migrate()
    (finding,) = owners(url, **named)
    assert finding.health is Health.OK
    assert finding.found.startswith(named.get("profiles_table", "") or ("profiles" if "sqlite" in url else "postdate"))


def test_a_schema_before_the_table_makes_no_difference(url: str) -> None:
    schema = "" if Database(url).is_sqlite else "public."
    app(url, profiles_table="users").migrate()
    (finding,) = owners(url, profiles_table=f"{schema}users")
    assert finding.health is Health.OK


@pytest.mark.parametrize("before", [{}, {"profiles_table": "people"}])
def test_a_table_that_was_named_later_is_told_not_to_be_watched(url: str, before: dict[str, str]) -> None:
    app(url, **before).migrate()
    (finding,) = owners(url, profiles_table="users")
    watched = before.get("profiles_table") or ("profiles" if Database(url).is_sqlite else "postdate.profiles")
    assert finding.health is Health.FAIL
    assert finding.found == f"deleting a row of users deletes no actions: {watched} is watched instead"
    assert finding.advice is not None
    assert f"set POSTDATE_PROFILES_TABLE back to {watched}" in finding.advice


def test_both_are_told_where_both_were_changed(url: str) -> None:
    app(url).migrate()
    assert [finding.health for finding in owners(url, profiles_table="users", workspaces_table="teams")] == [
        Health.FAIL,
        Health.FAIL,
    ]


def test_a_table_that_took_the_trigger_along_is_told(url: str) -> None:
    app(url, profiles_table="users").migrate()
    changed(url, "drop table users")
    (finding,) = owners(url, profiles_table="users")
    assert finding.health is Health.FAIL
    assert "no table is watched" in finding.found
