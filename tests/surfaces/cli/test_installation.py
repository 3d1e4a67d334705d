"""Which application and which database does a command work on, and what if there is none?"""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

from tests.surfaces.cli.shell import Shell

if TYPE_CHECKING:
    from pathlib import Path

SHOP = """
from pydantic import BaseModel
from postdate import Context, Postdate

app = Postdate({url})

class Post(BaseModel):
    thing_id: str
    text: str

@app.action("announce")
async def announce(ctx: Context, post: Post) -> str:
    return "id-1"
"""
POST = ("schedule", "announce", "--thing", "p-1", "--set", "text=Hi", "--at", "2099-01-01T00:00Z")


@pytest.mark.parametrize(
    ("before", "behind", "setting"),
    [
        (("--app", "shop1:app"), (), None),
        ((), ("--app", "shop1:app"), None),
        ((), (), "shop1:app"),
        (("--app", "shop1:app"), (), "nonsense:app"),
        (("--app", "nonsense:app"), ("--app", "shop1:app"), "nonsense:app"),
    ],
)
def test_the_nearest_application_is_taken(
    on_sqlite: Shell, modules: Path, before: tuple[str, ...], behind: tuple[str, ...], setting: str | None
) -> None:
    (modules / "shop1.py").write_text(SHOP.format(url=""))
    settings = {} if setting is None else {"POSTDATE_APP": setting}
    assert "queued" in on_sqlite.done(*before, *POST, *behind, **settings).out
    assert "action_type: is not registered" in on_sqlite(*POST).err


def test_database_url_wins_over_the_one_an_application_names(on_sqlite: Shell, modules: Path) -> None:
    (modules / "shop2.py").write_text(SHOP.format(url="'sqlite:///its-own.db'"))
    on_sqlite.done("--app", "shop2:app", "db", "upgrade")
    on_sqlite.done("--app", "shop2:app", *POST)
    assert "announce" in on_sqlite.done("--app", "shop2:app", "list").out
    given = on_sqlite.settings["POSTDATE_DATABASE_URL"]
    assert given is not None
    for arguments in (("--database-url", given, "list"), ("list", "--database-url", given)):
        assert on_sqlite.done("--app", "shop2:app", *arguments).out == ""


def test_an_application_that_cannot_be_loaded_is_told_clearly(on_sqlite: Shell, modules: Path) -> None:
    (modules / "shop3.py").write_text(SHOP.format(url="") + "other = 5\n")
    (modules / "needy.py").write_text("import not_there\n")
    (modules / "broken.py").write_text("\n1 / 0\n")
    (modules / "leaving.py").write_text("import sys\nsys.exit(0)\n")
    (modules / "unread.py").write_text("def (:\n")
    (modules / "odd.py").write_text("from postdate import Postdate\napp = Postdate('mysql://u:secret@host/name')\n")
    told = {
        "shop3": "app: must be module:app",
        ":app": "app: must be module:app",
        "missing:app": "there is no module 'missing'",
        "missing.inner:app": "there is no module 'missing'",
        "shop3.inner:app": "there is no module 'shop3.inner'",
        "shop3:ap": "shop3 has no 'ap': did you mean shop3:app?",
        "shop3:other": "shop3:other is not a Postdate but of type int: did you mean shop3:app?",
        "needy:app": f"importing needy failed: ModuleNotFoundError: No module named 'not_there' ({modules}/needy.py:1)",
        "broken:app": f"importing broken failed: ZeroDivisionError: division by zero ({modules}/broken.py:2)",
        "leaving:app": "importing leaving failed: SystemExit: 0",
        "unread:app": "importing unread failed: SyntaxError: invalid syntax (unread.py, line 1)\n",
        "odd:app": "importing odd failed: no driver 'mysql'",
    }
    for reference, said in told.items():
        answer = on_sqlite("--app", reference, "list")
        assert answer.err.startswith(f"postdate: {said}"), reference
        assert answer.err.count("\n") == 1
        assert answer.code == (2 if "module:app" in said else 4)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://u:secret@127.0.0.1:1/name", "the database cannot be used: OperationalError: connection"),
        ("postgresql://u:secret@127.0.0.1:port/name", "the database URL cannot be read"),
        ("postgresql://u:pass/word@127.0.0.1/name", "the database"),
        ("mysql://u:secret@127.0.0.1/name", "no driver 'mysql'"),
        ("secret", "the database URL cannot be read"),
        ("sqlite://", "an in-memory SQLite forgets"),
        ("sqlite:////no/such/folder/postdate.db", "the folder of the SQLite file does not exist"),
        ("sqlite:////etc/passwd", "the database cannot be used: "),
    ],
)
@pytest.mark.parametrize("command", [("db", "upgrade"), ("list",)])
def test_a_database_that_cannot_be_used_is_one_line_without_its_password(
    elsewhere: Path, url: str, said: str, command: tuple[str, ...]
) -> None:
    answer = Shell(url)(*command)
    assert (answer.code, answer.out) == (4, "")
    if "/no/such" in url and command == ("list",):
        said = "there is no database /no/such/folder/postdate.db"
    assert answer.err.startswith(f"postdate: {said}")
    assert answer.err.count("\n") == 1
    assert "secret" not in answer.err
    assert "pass/word" not in answer.err


def test_a_server_that_is_not_there_is_one_line_with_asyncpg_too(elsewhere: Path) -> None:
    answer = Shell("postgresql+asyncpg://u:secret@127.0.0.1:1/name")("serve", "--types", "reminder")
    assert answer.code == 4
    assert answer.err.startswith("postdate: the database cannot be used: ConnectionRefusedError: ")
    assert answer.err.count("\n") == 1


def test_a_driver_that_is_not_installed_is_told_with_what_to_install(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    answer = Shell("postgresql://127.0.0.1:1/name")("list")
    assert (answer.code, answer.err) == (4, "postdate: psycopg is not installed: install postdate[postgres]\n")


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("POSTDATE_STOP_GRACE", "-1", "POSTDATE_STOP_GRACE: "),
        ("POSTDATE_STOP_GRACE", "soon", "POSTDATE_STOP_GRACE: "),
        ("POSTDATE_WEBHOOK_ALLOW_HTTP", "perhaps", "POSTDATE_WEBHOOK_ALLOW_HTTP: "),
        ("POSTDATE_SCHEMA", "No Good", "schema must be at most 20 lower-case letters"),
    ],
)
def test_a_setting_that_is_wrong_is_named(on_sqlite: Shell, setting: str, value: str, said: str) -> None:
    answer = on_sqlite("list", **{setting: value})
    assert answer.code == 4
    assert answer.err.startswith(f"postdate: {said}")
    assert answer.err.count("\n") == 1


def test_a_setting_that_is_wrong_is_named_when_an_application_reads_it(on_sqlite: Shell, modules: Path) -> None:
    (modules / "shop4.py").write_text(SHOP.format(url=""))
    answer = on_sqlite("--app", "shop4:app", "list", POSTDATE_STOP_GRACE="soon")
    assert answer.code == 4
    assert answer.err.startswith("postdate: importing shop4 failed: POSTDATE_STOP_GRACE: ")
    assert answer.err.count("\n") == 1


def test_version_and_help_need_neither_database_nor_settings(elsewhere: Path) -> None:
    shell = Shell("nonsense")
    assert shell.done("--version").out == f"postdate {version('postdate')}\n"
    helped = " ".join(shell.done("--help", POSTDATE_STOP_GRACE="soon").out.split())
    assert "5 partly done" in helped
    assert shell.done("-h").out == shell.done("--help").out
    for command in ("serve", "schedule", "list", "show", "cancel", "reschedule", "post-now", "retry", "db"):
        assert shell.done(command, "--help").out
