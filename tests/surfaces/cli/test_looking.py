"""What do `postdate list` and `postdate show` tell?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from postdate import Postdate, Unconfirmed
from postdate.cli.printing import WIDE
from tests.surfaces.cli.acting import fire

if TYPE_CHECKING:
    from tests.surfaces.cli.shell import Shell

UNKNOWN = "0193e000-0000-7000-8000-000000000000"

FIELDS = [
    "id",
    "status",
    "reason",
    "action_type",
    "publish_at",
    "workspace_id",
    "user_id",
    "target_key",
    "payload",
    "occurrence",
    "expires_at",
    "origin",
    "origin_id",
    "replaces_id",
    "overlap_key",
    "traceparent",
    "created_at",
    "attempt_count",
    "next_attempt_at",
    "last_error",
    "provider_id",
    "submitted_at",
    "finished_at",
    "paused",
    "updated_at",
    "thing_id",
    "wall_time",
    "tz",
    "gap",
    "fold",
    "tz_source",
    "zone_policy",
]


def ids(listed: list[dict[str, str]]) -> list[str]:
    return [action["id"] for action in listed]


def test_the_fields_of_the_json_are_the_documented_ones(postdate: Shell) -> None:
    action = postdate.reminder()
    (listed,) = postdate.done("list", "--json").json_lines
    shown = postdate.done("show", action, "--json").json
    assert list(listed) == FIELDS
    assert list(shown) == [*FIELDS, "history"]
    assert list(shown["history"][0]) == ["at", "cause", "actor", "detail"]


def test_list_is_ordered_by_due_time_and_goes_on_after_a_page(postdate: Shell) -> None:
    late, early, middle = (postdate.reminder(at=f"2099-0{month}-01T00:00Z") for month in (3, 1, 2))
    first = postdate.done("list", "--limit", "2", "--json")
    assert ids(first.json_lines) == [early, middle]
    assert first.err == f"postdate: 2 shown; what follows: --after {middle}\n"
    rest = postdate.done("list", "--limit", "2", "--after", middle, "--json")
    assert (ids(rest.json_lines), rest.err) == ([late], "")


def test_each_filter_lets_through_what_it_names(postdate: Shell) -> None:
    wanted = postdate.reminder("--thing", "t-1", "--target", "phone", at="2099-05-01T00:00Z")
    other = postdate.reminder(at="2099-04-01T00:00Z")
    postdate.done("cancel", other)
    for filters in (
        ("--status", "queued"),
        ("--thing", "t-1"),
        ("--target", "phone"),
        ("--since", "2099-05-01T00:00Z"),
        ("--since", "2099-05-01 09:00", "--tz", "Asia/Tokyo"),
    ):
        assert ids(postdate.done("list", *filters, "--json").json_lines) == [wanted], filters
    for filters in (("--status", "cancelled"), ("--reason", "user"), ("--until", "2099-05-01T00:00Z")):
        assert ids(postdate.done("list", *filters, "--json").json_lines) == [other], filters
    assert ids(postdate.done("list", "--type", "reminder", "--json").json_lines) == [other, wanted]
    assert postdate.done("list", "--type", "send_email", "--workspace", UNKNOWN, "--user", UNKNOWN).out == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--limit", "0"), "limit: must be a whole number from 1 to 10000"),
        (("--limit", "10001"), "limit: must be a whole number from 1 to 10000"),
        (("--since", "soon", "--tz", "Asia/Tokyo"), "since: must have the form"),
        (("--until", "2099-05-01 09:00"), "tz: is needed"),
        (("--tz", "Lisbon"), "tz: is not an IANA zone name"),
        (("--after", "x"), "after: must be a uuid"),
        (("--workspace", "x"), "workspace: must be a uuid"),
    ],
)
def test_a_filter_that_makes_no_sense_is_an_invalid_value(
    on_sqlite: Shell, arguments: tuple[str, ...], said: str
) -> None:
    answer = on_sqlite("list", *arguments)
    assert answer.code == 2
    assert answer.err.startswith(f"postdate: {said}")


def test_a_status_that_does_not_exist_is_wrong_usage(on_sqlite: Shell) -> None:
    assert on_sqlite("list", "--status", "lost").code == 2
    assert on_sqlite("list", "--reason", "whim").code == 2


def test_a_piped_list_has_one_whole_line_for_each_action(postdate: Shell) -> None:
    action = postdate.reminder("--thing", "t" * 200, "--target", "phone")
    (line,) = postdate.done("list").lines
    assert line == f"2099-03-14T09:00:00Z queued    reminder {action} thing {'t' * 200}, target phone"


@pytest.mark.parametrize(("columns", "lines"), [(80, 2), (WIDE, 1)])
def test_on_a_terminal_a_line_is_as_wide_as_there_is_room(postdate: Shell, columns: int, lines: int) -> None:
    action = postdate.reminder("--thing", "bill-7", at="2099-03-14T09:00Z")
    heading, *told = postdate.done("list", COLUMNS=str(columns), FORCE_COLOR="1", NO_COLOR="1").lines
    assert len(told) == lines
    assert "STATUS" in heading
    assert all(len(line) <= columns for line in told)
    assert action in told[0]
    assert "thing bill-7" in told[-1]


def test_times_are_shown_in_the_zone_that_is_asked_for_but_json_stays_in_utc(postdate: Shell) -> None:
    action = postdate.reminder()
    for command in (("list",), ("show", action)):
        assert "2099-03-14T18:00:00+09:00" in postdate.done(*command, "--tz", "Asia/Tokyo").out
        assert '"publish_at": "2099-03-14T09:00:00Z"' in postdate.done(*command, "--tz", "Asia/Tokyo", "--json").out


def test_the_last_hours_of_the_calendar_can_be_shown_too(postdate: Shell) -> None:
    postdate.reminder(at="9999-12-31T23:59Z")
    assert postdate.done("list", "--tz", "Asia/Tokyo").out.startswith("9999-12-31T23:59:00Z")


def test_show_tells_what_was_asked_how_it_stands_and_who_did_what(postdate: Shell) -> None:
    action = postdate.reminder("--thing", "bill-7", "--tz", "Europe/Lisbon", at="2099-06-14 09:00")
    postdate.done("cancel", action, "--note", "no longer needed", "--actor", "ana")
    shown = postdate.done("show", action).out
    for said in (
        f"action     {action}",
        "status     cancelled (user)",
        "due        2099-06-14T08:00:00Z",
        "asked for  2099-06-14 09:00 in Europe/Lisbon (gap forward, fold first)",
        '"text": "Hi"',
        "schedule by cli:",
        "cancel by ana",
        "no longer needed",
    ):
        assert said in shown


def test_whose_zone_it_is_and_what_becomes_of_a_shift_is_told(postdate: Shell) -> None:
    action = postdate.reminder("--tz", "Europe/Lisbon", "--zone-policy", "ask", at="2099-06-14 09:00")
    assert "09:00 in Europe/Lisbon (gap forward, fold first, zone policy ask)" in postdate.done("show", action).out
    told = postdate.done("show", action, "--json").json
    assert (told["tz_source"], told["zone_policy"]) == ("call", "ask")
    moved = postdate.done("reschedule", action, "--at", "2099-06-15 09:00", "--zone-policy", "pin", "--json").json
    assert (moved["tz"], moved["zone_policy"]) == ("Europe/Lisbon", "pin")
    instant = postdate.done("show", postdate.reminder(), "--json").json
    assert [instant[name] for name in ("wall_time", "tz", "gap", "fold", "tz_source", "zone_policy")] == [None] * 6


def test_an_action_that_does_not_exist_is_not_found(postdate: Shell) -> None:
    answer = postdate("show", UNKNOWN)
    assert (answer.code, answer.out) == (3, "")
    assert answer.err == f"postdate: no action '{UNKNOWN}'\n"


def test_what_a_provider_says_cannot_drive_the_terminal(postdate: Shell, database_url: str) -> None:
    def hostile(ctx: object, payload: dict[str, str]) -> None:
        raise Unconfirmed("\x1b]0;owned\x07\x9b31m[red]\nsecond line")

    app = Postdate(database_url)
    app.action("note")(hostile)
    action = fire(app, "note", {})
    for command in (("list",), ("show", action)):
        out = postdate.done(*command).out
        assert "\x1b" not in out
        assert "\x07" not in out
        assert "\x9b" not in out
        assert "[red] second line" in out
    assert "second line" in postdate.done("show", action, "--json").json["last_error"]
