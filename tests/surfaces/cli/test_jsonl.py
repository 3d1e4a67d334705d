"""What does `postdate schedule --jsonl` make of a file?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from postdate.cli.lines import MAX_LINE

if TYPE_CHECKING:
    from tests.surfaces.cli.shell import Shell

AT = "2099-03-14T09:00Z"


def test_each_line_is_an_action_and_keeps_the_types_of_json(postdate: Shell) -> None:
    rows = [
        {"type": "call_webhook", "at": AT, "url": "https://example.com", "body": {"n": 1, "ok": True}},
        {"at": AT, "payload": {"text": "inner"}, "thing": "t-1", "target": None},
    ]
    stdin = "\ufeff" + "\r\n\r\n".join(map(json.dumps, rows))
    first, second = postdate("schedule", "reminder", "--jsonl", "-", "--json", stdin=stdin).json_lines
    assert (first["line"], first["payload"]["body"]) == (1, {"n": 1, "ok": True})
    assert second["line"] == 3
    assert second["payload"].items() >= {"text": "inner", "thing_id": "t-1"}.items()


def test_a_bad_line_is_told_by_its_number_and_stops_nothing_else(postdate: Shell) -> None:
    good = json.dumps({"at": AT, "text": "good"}).encode()
    content = [
        good,
        b"{",
        b'["text"]',
        b'{"at": 5, "text": "x"}',
        b'{"text": NaN}',
        b'{"text": "\xff"}',
        b'{"at": "' + AT.encode() + b'", "text": "\\ud800"}',
        b"[" * 100_000,
        b'{"text": "' + b"x" * MAX_LINE + b'"}',
        b'{"payload": "[]", "at": "' + AT.encode() + b'"}',
        b'{"gap": "sideways", "text": "x", "at": "' + AT.encode() + b'"}',
        b'{"n": ' + b"9" * 5000 + b"}",
        good,
    ]
    answer = postdate("schedule", "reminder", "--jsonl", "-", "--json", stdin=b"\n".join(content))
    assert answer.code == 5
    assert [row["line"] for row in answer.json_lines] == [1, 13]
    told = answer.err.splitlines()
    expected = [
        "line 2: row: must be JSON: Expecting property name enclosed in double quotes at character 2",
        "line 3: row: must be a JSON object (got ['text'])",
        "line 4: at: must be text (got 5)",
        "line 5: row: must be JSON: NaN is not JSON",
        "line 6: row: must be UTF-8",
        "line 7: payload: must not hold lone surrogates",
        "line 8: row: must be JSON",
        f"line 9: row: must be at most {MAX_LINE} bytes long",
        "line 10: payload: must be a JSON object",
        "line 11: gap: must be one of forward, reject (got 'sideways')",
        "line 12: row: must be JSON",
        "2 scheduled, 11 refused",
    ]
    assert len(told) == len(expected)
    for said, start in zip(told, expected, strict=True):
        assert said.removeprefix("postdate: ").startswith(start)


def test_what_list_prints_says_enough_to_be_scheduled_elsewhere(postdate: Shell) -> None:
    """The field names of the output and the columns of the input are two things; this shows the way across."""
    postdate.reminder("--thing", "t-1", "--target", "phone")
    (listed,) = postdate.done("list", "--json").json_lines
    row = {
        "type": listed["action_type"],
        "at": listed["publish_at"],
        "target": "post",
        "payload": listed["payload"],
    }
    answer = postdate("schedule", "--jsonl", "-", "--json", stdin=json.dumps(row))
    assert answer.json["payload"] == listed["payload"]


def test_a_row_says_what_becomes_of_its_wall_time_and_the_option_says_it_for_the_others(on_sqlite: Shell) -> None:
    wall = {"text": "x", "at": "2099-03-14T09:00"}
    rows = [wall | {"zone_policy": "pin"}, wall, wall | {"zone_policy": "never"}]
    stdin = "\n".join(map(json.dumps, rows))
    options = ("--tz", "Europe/Lisbon", "--zone-policy", "ask", "--json")
    answer = on_sqlite("schedule", "reminder", "--jsonl", "-", *options, stdin=stdin)
    assert [made["zone_policy"] for made in answer.json_lines] == ["pin", "ask"]
    assert "line 3: zone_policy: must be one of follow, ask, pin (got 'never')" in answer.err
