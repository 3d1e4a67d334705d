"""Does `postdate doctor` say what is to be mended, to people and to programs, and by its exit code?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.surfaces.cli.shell import Shell

if TYPE_CHECKING:
    from pathlib import Path

APP = """
from postdate import Postdate
app = Postdate()
app.action("act")(lambda ctx, payload: None)
"""


def test_an_app_that_is_fit_ends_with_0(postdate: Shell, modules: Path) -> None:
    (modules / "fit.py").write_text(APP)
    answer = postdate.done("doctor", "--app", "fit:app")
    assert "ok   action type  act: ready" in answer.lines
    assert answer.lines[-1].startswith("0 to mend, ")


def test_what_is_to_be_mended_ends_with_7_and_says_how(postdate: Shell) -> None:
    answer = postdate("doctor", "--types", "send_email")
    assert answer.code == 7
    (place,) = (place for place, line in enumerate(answer.lines) if line.startswith("fail "))
    assert answer.lines[place] == "fail action type  send_email needs POSTDATE_SMTP_URL: such as smtp://localhost:25"
    assert answer.lines[place + 1].strip().startswith("set POSTDATE_SMTP_URL, or serve without this type")
    assert answer.lines[-1].startswith("1 to mend, ")


def test_what_nobody_has_set_up_is_worth_a_word_unless_it_is_asked_for(on_sqlite: Shell) -> None:
    answer = on_sqlite.done("doctor")
    assert "warn action type  send_email needs POSTDATE_SMTP_URL: such as smtp://localhost:25" in answer.lines
    half = on_sqlite("doctor", POSTDATE_SMTP_URL="smtp://localhost")
    assert (half.code, "fail action type  send_email needs POSTDATE_SMTP_FROM" in half.out) == (7, True)


def test_programs_read_a_json_object_a_line(postdate: Shell) -> None:
    told = postdate.done("doctor", "--types", "reminder", "--json").json_lines
    assert [set(line) for line in told] == [{"check", "health", "found", "advice", "page"}] * len(told)
    assert {line["health"] for line in told} <= {"ok", "warn"}
    assert told[0]["check"] == "database"


def test_a_file_that_does_not_exist_is_not_made(elsewhere: Path) -> None:
    answer = Shell(None)("doctor")
    assert answer.code == 7
    assert answer.lines[:2] == [
        "fail database     there is no file postdate.db",
        "                  run `postdate db upgrade`, with the same --app if any (postdate docs operations#the-schema)",
    ]
    assert list(elsewhere.iterdir()) == []


def test_a_type_that_there_is_not_is_wrong_usage(on_sqlite: Shell) -> None:
    assert on_sqlite("doctor", "--types", "send_letter").code == 2
    assert on_sqlite("doctor", "--types", "reminder,").code == 2


def test_an_app_that_cannot_be_loaded_is_told_as_everywhere(on_sqlite: Shell) -> None:
    answer = on_sqlite("doctor", "--app", "nowhere:app")
    assert (answer.code, "nowhere" in answer.err) == (4, True)
