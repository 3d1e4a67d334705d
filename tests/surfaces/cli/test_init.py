"""Does `postdate init` write a project that runs as it stands, and overwrite nothing?"""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
from itertools import product
from typing import TYPE_CHECKING

import pytest

from postdate.cli.starter import BUILT_IN, Wanted, starter
from tests.surfaces.cli.program import SCRIPT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.surfaces.cli.program import Program
    from tests.surfaces.cli.shell import Shell

FILES = [".env.example", "app.py"]
# What a project may reasonably choose otherwise: two rules that exclude others, messages in place, loose modules.
OUR_STYLE = ["--isolated", "--select", "ALL", "--ignore", "D203,D213,COM812,EM,TRY003,INP001,CPY001"]
DUE = ("--at", "2020-01-01T00:00Z")


def tool(*arguments: str, folder: Path) -> str:
    """Return what a checker complains about."""
    ran = subprocess.run([sys.executable, "-m", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return "" if ran.returncode == 0 else ran.stdout + ran.stderr


@pytest.mark.timeout(400)  # mypy reads all of pydantic and SQLAlchemy
def test_what_is_written_passes_the_strictest_checks(tmp_path: Path) -> None:
    choices = ("publish_story", "reminder", ",".join(BUILT_IN), "act,b2b,reminder")
    for number, (types, tz) in enumerate(product(choices, (None, "Europe/Lisbon"))):
        wanted = Wanted(types=types.split(","), tz=tz, auto_attempts=3, max_attempts=5, database_url="sqlite:///x.db")
        (tmp_path / f"app_{number}.py").write_text(starter(wanted)["app.py"])
    assert tool("ruff", "check", *OUR_STYLE, ".", folder=tmp_path) == ""
    assert tool("ruff", "format", "--isolated", "--check", ".", folder=tmp_path) == ""
    assert tool("mypy", "--strict", "--config-file", os.devnull, ".", folder=tmp_path) == ""


def test_what_is_written_is_served_and_fires(program: Program, postdate: Shell, modules: Path) -> None:
    url = str(postdate.settings["POSTDATE_DATABASE_URL"])
    told = postdate.done("init", "--types", "publish_story,reminder", "--database-url", url)
    assert told.lines == ["app.py", ".env.example"]
    shutil.copy(".env.example", ".env")
    del program.environment["POSTDATE_DATABASE_URL"]  # which .env tells
    postdate.settings["POSTDATE_DATABASE_URL"] = None
    app = ("--app", "app:app")
    fields = ("--set", "thing_id=story-1", "--set", "text=Hi")
    story = postdate.done("schedule", *app, "publish_story", *fields, *DUE, "--json").json["id"]
    serving = program.serving("app:app")
    assert serving.wait_for("publish_story")["thing"] == "story-1"
    serving.signal(signal.SIGTERM)
    assert serving.ended() == 0
    shown = postdate.done("show", *app, story, "--json").json
    assert (shown["status"], shown["provider_id"]) == ("published", f"story-1-{story}")


def test_what_was_chosen_is_what_is_written(on_sqlite: Shell, elsewhere: Path, program: Program) -> None:
    limits = ("--auto-attempts", "2", "--max-attempts", "7")
    on_sqlite.done("init", "shop", "--types", "act,send_sms,reminder", "--tz", "Asia/Tokyo", *limits)
    assert sorted(path.name for path in (elsewhere / "shop").iterdir()) == FILES
    question = """
from app import app
for each in app.kernel.registry:
    print(each.name, each.policy.auto_attempts, each.policy.max_attempts)
print(app.kernel.zone_of(None, None), app.kernel.registry["send_sms"].policy.idempotent)
"""
    ran = subprocess.run(
        [sys.executable, "-c", question],
        cwd="shop",
        capture_output=True,
        text=True,
        check=True,
        env=program.environment,
    )
    assert ran.stdout.splitlines() == ["send_sms 2 7", "reminder 2 7", "act 2 7", "Asia/Tokyo False"]
    example = (elsewhere / "shop" / ".env.example").read_text()
    assert "POSTDATE_TWILIO_ACCOUNT_SID=" in example
    assert "SMTP" not in example


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_overwritten_and_nothing_is_written_beside_it(on_sqlite: Shell, elsewhere: Path, name: str) -> None:
    (elsewhere / name).write_text("mine")
    answer = on_sqlite("init", "--yes")
    assert (answer.code, answer.err) == (1, f"postdate: {name} exists already: name another folder\n")
    assert [path.name for path in elsewhere.iterdir()] == [name]
    assert (elsewhere / name).read_text() == "mine"


def test_a_password_is_not_written(on_sqlite: Shell, elsewhere: Path) -> None:
    on_sqlite.done("init", "--yes", "--database-url", "postgresql://ana:s3cret@db.example.com/shop")
    example = (elsewhere / ".env.example").read_text()
    assert "POSTDATE_DATABASE_URL=postgresql://ana:change-me@db.example.com/shop\n" in example
    assert "s3cret" not in example + (elsewhere / "app.py").read_text()


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--types", "publish-story"), 2, "types: must be"),
        (("--types", "class"), 2, "types: must be"),
        (("--types", "reminder,"), 2, "types: "),
        (("--types", "app"), 2, "types: must be"),
        (("--types", "str,publish_story"), 2, "types: must be"),
        (("--tz", "Lisbon"), 2, "tz: is not an IANA zone name"),
        (("--auto-attempts", "0"), 2, "auto_attempts: must be at least 1"),
        (("--auto-attempts", "9", "--max-attempts", "8"), 2, "auto_attempts: must be at least 1, and at most"),
        (("--database-url", "mysql://localhost/x"), 4, "no driver 'mysql'"),
    ],
)
def test_what_could_not_run_is_refused_before_anything_is_written(
    on_sqlite: Shell, elsewhere: Path, options: tuple[str, ...], code: int, said: str
) -> None:
    answer = on_sqlite("init", "new", *options)
    assert (answer.code, said in answer.err) == (code, True), answer.err
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("folder", ["file", "file/below", "/proc/new"])
def test_a_folder_that_cannot_be_written_to_is_told_in_one_line(on_sqlite: Shell, elsewhere: Path, folder: str) -> None:
    (elsewhere / "file").touch()
    answer = on_sqlite("init", folder, "--yes")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("postdate: dir: cannot be written to: ")
    assert answer.err.count("\n") == 1


def on_a_terminal(folder: Path, *arguments: str, answers: str) -> str:
    """Run `postdate init` on a terminal where somebody types the answers, and return what it shows."""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POSTDATE_")}
    process = subprocess.Popen(
        [SCRIPT, "init", *arguments], cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    os.write(ours, answers.encode())
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:  # so Linux tells that the other side is closed
            break
    os.close(ours)
    assert process.wait(30) == 0, shown
    return shown.decode()


def test_on_a_terminal_it_asks_for_what_is_not_given(tmp_path: Path) -> None:
    shown = on_a_terminal(tmp_path, "--max-attempts", "9", answers="act\nEurope/Lisbon\n4\nsqlite:///shop.db\n")
    assert [question in shown for question in ("Action types", "Zone of", "by itself", "Database")] == [True] * 4
    assert "a person's too" not in shown
    written = (tmp_path / "app.py").read_text()
    assert [text in written for text in ('"Europe/Lisbon"', "AUTO_ATTEMPTS = 4", "MAX_ATTEMPTS = 9")] == [True] * 3
    assert "POSTDATE_DATABASE_URL=sqlite:///shop.db\n" in (tmp_path / ".env.example").read_text()


def test_on_a_terminal_empty_answers_take_what_is_usual(tmp_path: Path) -> None:
    on_a_terminal(tmp_path, answers="\n" * 5)
    (tmp_path / "other").mkdir()
    shown = on_a_terminal(tmp_path / "other", "--yes", answers="")
    assert "Action types" not in shown
    for name in FILES:
        assert (tmp_path / name).read_text() == (tmp_path / "other" / name).read_text()
    assert "async def publish_story(" in (tmp_path / "app.py").read_text()
