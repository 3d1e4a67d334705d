"""Is what docs/operations.md says of settings and of other programs' SQL so?"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import psycopg
from sqlalchemy import make_url

from postdate import Settings
from tests.surfaces.docs.pages import ROOT, blocks, table_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

PAGE = ROOT / "docs" / "operations.md"


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    alias = Settings.model_fields[name].validation_alias
    return alias if isinstance(alias, str) else f"POSTDATE_{name.upper()}"


def told() -> Mapping[str, str | None]:
    """Return the defaults that the page tells, by variable; None for those it calls none."""
    cells = {name.strip("`"): default for name, default, _ in table_rows(PAGE, "Settings")}
    return {name: None if default == "none" else default.strip("`") for name, default in cells.items()}


def sql(kind: str) -> str:
    (found,) = (block.text for block in blocks(PAGE) if block.language == f"sql {kind}")
    return found


def test_every_setting_is_told_and_no_other() -> None:
    assert list(told()) == [variable(name) for name in Settings.model_fields]


def test_the_defaults_told_are_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in told():
        monkeypatch.delenv(name, raising=False)
    plain = Settings()
    for name, default in told().items():
        if default is not None:
            monkeypatch.setenv(name, default)
    assert Settings() == plain
    unset = [name for name in Settings.model_fields if told()[variable(name)] is None]
    assert all(not getattr(plain, name) for name in unset)


def test_another_program_inserts_cancels_and_inserts_again_on_postgresql(postgres_url: str) -> None:
    url = make_url(postgres_url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url) as connection:
        connection.execute(sql("postgresql").encode())
        found = connection.execute("select status, reason from postdate.scheduled_actions order by publish_at")
        assert found.fetchall() == [("cancelled", "user"), ("queued", None)]


def test_another_program_inserts_cancels_and_inserts_again_on_sqlite(sqlite_url: str) -> None:
    connection = sqlite3.connect(str(make_url(sqlite_url).database))
    connection.executescript(sql("sqlite"))
    found = connection.execute("select status, reason from scheduled_actions order by publish_at").fetchall()
    connection.close()
    assert found == [("cancelled", "user"), ("queued", None)]
