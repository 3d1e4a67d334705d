"""How are actions stopped from a shell, and let go on?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import update

from postdate import Postdate
from postdate.testing.factories import make_workspace

if TYPE_CHECKING:
    from tests.surfaces.cli.shell import Shell

UNKNOWN = "0193e000-0000-7000-8000-000000000000"


@pytest.fixture
def workspace(database_url: str) -> str:
    app = Postdate(database_url)
    made = make_workspace(app, account_timezone="Asia/Tokyo")
    app.kernel.database.close_sync()
    return str(made)


def test_a_pause_is_begun_listed_and_ended_with_who_and_why(postdate: Shell, workspace: str) -> None:
    scope = ("--workspace", workspace, "--type", "reminder")
    begun = postdate.done("pause", *scope, "--note", "too many", "--actor", "ana", "--json").json
    assert (begun["workspace_id"], begun["action_type"]) == (workspace, "reminder")
    assert (begun["paused_by"], begun["note"]) == ("ana", "too many")
    postdate.done("pause", "--type", "send_sms")
    of_both, of_type = postdate.done("pauses").lines
    assert of_both.endswith(f" reminder in workspace {workspace} by ana: too many")
    assert " send_sms by cli:" in of_type
    assert postdate("resume", "--workspace", workspace).code == 1, "of another scope"
    ended = postdate.done("resume", *scope, "--actor", "bo", "--json").json
    assert (ended["paused_by"], ended["ended_by"], ended["ended_note"]) == ("ana", "bo", None)
    assert len(postdate.done("pauses", "--json").json_lines) == 1
    assert postdate.done("pauses", "--ended", "--json").json == ended
    assert ", ended 20" in postdate.done("pauses", "--ended").out


def test_a_pause_is_about_something(postdate: Shell) -> None:
    assert postdate("pause").code == 2
    assert postdate("pause", "--workspace", UNKNOWN).code == 3
    again = postdate("resume", "--type", "reminder")
    assert (again.code, again.err) == (1, "postdate: there is no pause of action type 'reminder'\n")


def test_a_pause_of_a_type_that_is_not_known_is_told_of_since_it_may_be_misspelt(postdate: Shell) -> None:
    assert postdate.done("pause", "--type", "reminder").err == ""
    misspelt = postdate.done("pause", "--type", "send_smss")
    assert "nothing here has the action type 'send_smss', which is paused all the same (known: " in misspelt.err
    assert "send_sms," in misspelt.err
    assert len(postdate.done("pauses").lines) == 2


def test_what_is_paused_says_so_wherever_it_is_shown(postdate: Shell, workspace: str) -> None:
    paused = postdate.reminder("--workspace", workspace)
    other = postdate.reminder()
    postdate.done("pause", "--workspace", workspace)
    told = {action["id"]: action["paused"] for action in postdate.done("list", "--json").json_lines}
    assert told == {paused: True, other: False}
    assert [line.endswith("paused") for line in postdate.done("list", "--workspace", workspace).lines] == [True]
    assert "queued (paused)" in postdate.done("show", paused).out
    assert postdate.done("show", paused, "--json").json["paused"] is True


def test_quiet_hours_are_set_listed_and_cleared(postdate: Shell, workspace: str) -> None:
    set_ = ("quiet-hours", "set", workspace)
    kept = postdate.done(*set_, "mon-fri 22:00-08:00", "sat,sun 00:00-00:00", "--actor", "ana", "--json").json_lines
    assert [each["hours"] for each in kept] == ["mon,tue,wed,thu,fri 22:00-08:00", "sat,sun 00:00-00:00"]
    postdate.done(*set_, "20:00-10:00", "--type", "send_sms", "--tz", "Europe/Lisbon", "--note", "the law")
    of_all, _, of_type = postdate.done("quiet-hours", "list", "--workspace", workspace).lines[::1]
    assert {of_all.split()[1], of_type.split()[1]} == {"every", "send_sms"}
    everything = postdate.done("quiet-hours", "list").out
    assert " send_sms 20:00-10:00 in Europe/Lisbon, set " in everything
    assert " every type sat,sun 00:00-00:00 in the zone of the workspace, set " in everything
    assert ": the law" in everything
    assert len(postdate.done("quiet-hours", "clear", workspace, "--json").json_lines) == 2
    assert len(postdate.done("quiet-hours", "list", "--json").json_lines) == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["22-08"], 2),
        (["00:00-00:00"], 2),
        (["22:00-08:00", "--tz", "Mars/Base"], 2),
        (["22:00-08:00", "--type", "call_webhook"], 2),
        ([], 2),
    ],
)
def test_quiet_hours_that_make_no_sense_are_refused(
    postdate: Shell, workspace: str, arguments: list[str], code: int
) -> None:
    assert postdate("quiet-hours", "set", workspace, *arguments).code == code
    assert postdate("quiet-hours", "set", UNKNOWN, "22:00-08:00", "--tz", "UTC").code == 3
    assert postdate.done("quiet-hours", "list").out == ""


@pytest.fixture
def on_hold(database_url: str) -> None:
    """Let the database be one that nobody has looked at for two days, and an engine find it."""
    app = Postdate(database_url)
    with app.kernel.transaction(None) as tx:
        long_ago = app.kernel.now(tx) - timedelta(days=2)
        tx.execute(update(tx.tables.heartbeat).values(last_tick_at=long_ago))
    app.kernel.database.close_sync()


def test_an_installation_on_hold_says_so_until_somebody_releases_it(postdate: Shell, on_hold: None) -> None:
    old = postdate.reminder(at="2020-01-01T00:00Z")
    new = postdate.reminder()
    assert postdate("tick", "--types", "reminder").code == 1
    status = postdate.done("db", "status")
    assert "on hold until `postdate release`: the last tick of any engine was at " in status.err
    assert "the last tick" in postdate.done("db", "status", "--json").json["held_because"]
    refused = postdate("release", stdin="n\n")
    assert refused.code == 1
    assert "due: 1 of reminder, the first since 2020-01-01T00:00:00Z" in refused.err
    assert "see --cancel-due-before" in refused.err
    assert refused.err.endswith("still on hold\n")
    assert postdate("release", stdin="").code == 1, "nobody is there to be asked"
    answer = postdate.done(
        *("release", "--cancel-due-before", "2021-01-01T00:00Z", "--yes", "--actor", "ana", "--note", "checked"),
        "--json",
    )
    released = answer.json
    assert (released["released_by"], released["note"], released["cancelled"]) == ("ana", "checked", 1)
    assert postdate.done("show", old, "--json").json["status"] == "cancelled"
    assert postdate.done("show", new, "--json").json["status"] == "queued"
    assert postdate.done("db", "status").err == ""
    again = postdate("release")
    assert (again.code, again.err) == (1, "postdate: nothing is on hold\n")


def test_it_is_released_when_the_answer_is_yes(postdate: Shell, on_hold: None) -> None:
    postdate("tick", "--types", "reminder")
    assert ", 0 cancelled\n" in postdate("release", stdin="y\n").out
    assert postdate("release", "--cancel-due-before", "yesterday").code == 1
