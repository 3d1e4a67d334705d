"""Does the doctor see what is wrong with a database?"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import make_url

from postdate.clock import host_time
from postdate.doctor import Health, database, sqlite_file
from postdate.doctor.sqlite_file import file_findings
from postdate.store.diagnosis import Server
from postdate.testing.postgres import drop_database
from tests.surfaces.doctor.conftest import changed, findings, found, opened
from tests.surfaces.doctor.pooler import pooled

if TYPE_CHECKING:
    from postdate import Postdate

WITHOUT_A_DATABASE = ["database", "zone rules", "action type"]


def test_a_fit_installation_is_told_to_be(fit: Postdate) -> None:
    seen = findings(fit)
    assert {finding.health for finding in seen if finding.check != "zone rules"} == {Health.OK}
    own = ["file", "journal", "disk"] if fit.kernel.database.is_sqlite else ["encoding", "clock", "listen"]
    assert [finding.check for finding in seen] == [
        "database",
        "schema",
        *own,
        "zone rules",
        "action type",
        "owners",
        "hold",
        "pauses",
        "queue",
        "handlers",
        "overdue",
        "leases",
        "unconfirmed",
    ]


def test_which_database_it_is_stands_first(fit: Postdate) -> None:
    said = findings(fit)[0].found
    assert str(fit.kernel.database.url.database) in said
    assert said.startswith("SQLite 3." if fit.kernel.database.is_sqlite else "PostgreSQL 1")


def test_a_file_that_does_not_exist_is_told_and_not_made(tmp_path: Path) -> None:
    file = tmp_path / "nowhere.db"
    with opened(f"sqlite:///{file}") as app:
        seen = findings(app)
    assert [finding.check for finding in seen] == WITHOUT_A_DATABASE
    assert (seen[0].health, seen[0].advice) == (
        Health.FAIL,
        "run `postdate db upgrade`, with the same --app if any",
    )
    assert not file.exists()


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    file = tmp_path / "letter.db"
    file.write_text("Dear Ana, " * 100)
    with opened(f"sqlite:///{file}") as app:
        seen = findings(app)
    assert [finding.check for finding in seen] == WITHOUT_A_DATABASE
    assert (seen[0].health, seen[0].found) == (Health.FAIL, "cannot be used: file is not a database")


def test_a_server_that_cannot_be_reached_is_told_without_the_password() -> None:
    with opened("postgresql://ana:s3cret@127.0.0.1:1/shop") as app:
        seen = findings(app)
    assert [finding.check for finding in seen] == WITHOUT_A_DATABASE
    assert seen[0].health is Health.FAIL
    assert "refused" in seen[0].found
    assert "s3cret" not in str(seen)


def test_an_empty_database_needs_an_upgrade(empty_database_url: str) -> None:
    with opened(empty_database_url) as app:
        if app.kernel.database.is_sqlite:
            changed(empty_database_url, "create table orders (id integer)")  # so that there is a file
        schema = found(app, "schema")
        assert "queue" not in {finding.check for finding in findings(app)}
    assert (schema.health, schema.advice) == (
        Health.FAIL,
        "run `postdate db upgrade`, with the same --app if any",
    )
    assert schema.found.startswith("at nothing, this version needs ")


def test_a_schema_from_the_future_needs_a_newer_postdate(fit: Postdate, database_url: str) -> None:
    qualifier = fit.kernel.names.qualifier(fit.kernel.database.dialect)
    changed(database_url, f"update {qualifier}postdate_version set version_num = '9999'")
    schema = found(fit, "schema")
    assert schema.health is Health.FAIL
    assert "upgrade this installation" in str(schema.advice)


@pytest.mark.parametrize("table", ["queue", "pauses"])
def test_a_table_that_is_missing_from_the_right_version_is_told(fit: Postdate, database_url: str, table: str) -> None:
    qualifier = fit.kernel.names.qualifier(fit.kernel.database.dialect)
    changed(database_url, f"drop view {qualifier}scheduled_actions")
    changed(database_url, f"drop table {qualifier}{table}")
    assert found(fit, "schema").health is Health.OK
    last = findings(fit)[-1]
    assert (last.check, last.health) == ("tables", Health.FAIL)
    assert table in last.found


def test_a_version_that_is_too_old_is_refused(fit: Postdate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "OLDEST", {"SQLite": (99, 1), "PostgreSQL": (99, 1)})
    old = found(fit, "database")
    assert old.health is Health.FAIL
    assert str(old.advice).endswith(" 99.1 or newer")


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_an_encoding_that_is_not_utf8_is_told(postgres_url: str, encoding: str) -> None:
    name = f"other_{uuid4().hex}"
    admin = make_url(postgres_url).set(drivername="postgresql")
    with psycopg.connect(admin.render_as_string(hide_password=False), autocommit=True) as connection:
        connection.execute(f"create database {name} encoding '{encoding}' locale 'C' template template0".encode())
    try:
        with opened(admin.set(database=name).render_as_string(hide_password=False)) as app:
            told = found(app, "encoding")
    finally:
        drop_database(postgres_url, name)
    assert (told.health, told.found) == (Health.FAIL, encoding)


def test_behind_a_pooler_in_transaction_mode_nothing_is_heard(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(postgres_url) as app:
        assert found(app, "listen").health is Health.OK
    monkeypatch.setattr(database, "_HEARD_WITHIN", 0.2)
    with pooled(postgres_url) as url, opened(url) as app:
        heard = found(app, "listen")
        assert found(app, "queue").health is Health.OK
    assert (heard.health, heard.page) == (Health.WARN, "operations#postgresql-behind-a-pooler")
    assert "at most a minute" in str(heard.advice)


@pytest.mark.parametrize(("ahead", "said"), [(5, "ahead of it"), (-5, "behind it")])
def test_a_host_whose_clock_is_off_is_told(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, ahead: int, said: str
) -> None:
    monkeypatch.setattr(database, "host_time", lambda: host_time() + timedelta(seconds=ahead))
    with opened(postgres_url) as app:
        clock = found(app, "clock")
    assert (clock.health, clock.found.endswith(said)) == (Health.WARN, True)
    assert clock.found.startswith(("the host is 4.9", "the host is 5.0"))


def test_a_file_that_everybody_can_change_is_told(sqlite_url: str) -> None:
    file = Path(str(make_url(sqlite_url).database))
    with opened(sqlite_url) as app:
        file.chmod(0o640)
        assert (found(app, "file").health, found(app, "file").advice) == (Health.OK, None)
        file.chmod(0o644)
        assert "can read the payloads" in str(found(app, "file").advice)
        file.chmod(0o666)
        assert (found(app, "file").health, found(app, "file").found) == (Health.WARN, "mode 0666")


def test_a_file_that_cannot_be_written_is_told(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write anywhere, so the system's answer is stood in for."""
    file = make_url(sqlite_url).database
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != file)
    with opened(sqlite_url) as app:
        assert found(app, "file").health is Health.FAIL


def test_a_file_system_without_wal_is_told(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    file.touch()
    seen = {
        each.check: each for each in file_findings(file, Server(name="SQLite", version=(3,), journal_mode="delete"))
    }
    assert (seen["journal"].health, seen["journal"].found) == (Health.FAIL, "delete, not WAL")


def test_a_disk_that_is_nearly_full_is_told(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "LITTLE_SPACE", 1 << 60)
    with opened(sqlite_url) as app:
        assert found(app, "disk").health is Health.WARN
