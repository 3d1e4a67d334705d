"""What does `postdate schedule` do with one action?"""

from __future__ import annotations

import getpass
import json
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from postdate import Postdate

if TYPE_CHECKING:
    from tests.surfaces.cli.shell import Shell

AT = ("--at", "2099-03-14T09:00Z")
TEXT = ("--set", "text=Hi")


def test_a_wall_time_is_scheduled_in_its_zone_and_kept_beside_the_instant(postdate: Shell) -> None:
    made = postdate.done(
        "schedule", "reminder", *TEXT, "--at", "2027-06-14 09:00", "--tz", "Europe/Lisbon", "--json"
    ).json
    assert made["publish_at"] == "2027-06-14T08:00:00Z"
    assert (made["wall_time"], made["tz"]) == ("2027-06-14 09:00", "Europe/Lisbon")
    assert (made["status"], made["action_type"], made["payload"]["text"]) == ("queued", "reminder", "Hi")


def test_without_json_the_id_comes_first(on_sqlite: Shell) -> None:
    line = on_sqlite.done("schedule", "reminder", *TEXT, *AT).out
    assert str(UUID(line.split()[0])) == line[:36]
    assert "queued, due 2099-03-14T09:00:00Z" in line


def test_every_option_reaches_the_action(postdate: Shell) -> None:
    made = postdate.done(
        *("schedule", "reminder", "--payload", '{"text": "from the payload"}', *AT),
        *("--target", "phone", "--thing", "bill-7", "--occurrence", "second", "--expires-at", "2099-03-15T00:00Z"),
        *("--overlap-key", "only-one", "--json"),
    ).json
    assert made["payload"].items() >= {"text": "from the payload", "thing_id": "bill-7"}.items()
    assert (made["target_key"], made["thing_id"], made["occurrence"]) == ("phone", "bill-7", "second")
    assert (made["expires_at"], made["overlap_key"]) == ("2099-03-15T00:00:00Z", "only-one")


def test_set_wins_over_payload(on_sqlite: Shell) -> None:
    made = on_sqlite.done("schedule", "reminder", "--payload", '{"text": "a"}', "--set", "text=b=c", *AT, "--json").json
    assert made["payload"]["text"] == "b=c"


@pytest.mark.parametrize(
    ("policies", "publish_at"),
    [
        ((), "2027-10-31T00:30:00Z"),
        (("--fold", "second"), "2027-10-31T01:30:00Z"),
    ],
)
def test_the_side_of_a_fold_can_be_chosen(on_sqlite: Shell, policies: tuple[str, ...], publish_at: str) -> None:
    twice = ("--at", "2027-10-31T01:30", "--tz", "Europe/Lisbon")
    assert on_sqlite.done("schedule", "reminder", *TEXT, *twice, *policies, "--json").json["publish_at"] == publish_at


def test_a_skipped_wall_time_can_be_refused(on_sqlite: Shell) -> None:
    answer = on_sqlite(
        "schedule", "reminder", *TEXT, "--at", "2027-03-28T01:30", "--tz", "Europe/Lisbon", "--gap", "reject"
    )
    assert answer.code == 2
    assert "clocks skip it" in answer.err


def test_the_login_name_is_the_actor_unless_one_is_given(postdate: Shell) -> None:
    histories = [
        postdate.done("show", postdate.reminder(*actor), "--json").json["history"] for actor in ((), ("--actor", "ana"))
    ]
    assert [history[0]["actor"] for history in histories] == [f"cli:{getpass.getuser()}", "ana"]


def test_a_login_without_a_name_can_schedule_too(on_sqlite: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr(getpass, "getuser", nameless)
    shown = on_sqlite.done("show", on_sqlite.reminder(), "--json").json
    assert shown["history"][0]["actor"] == "cli"


def test_a_repeated_idempotency_key_answers_the_same_action(postdate: Shell) -> None:
    assert postdate.reminder("--idempotency-key", "k") == postdate.reminder("--idempotency-key", "k")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nope", *AT), "action_type: is not registered (known: call_webhook, "),
        (("reminder", *AT), "payload.text: Field required"),
        (("reminder", *TEXT), "at: is needed"),
        (TEXT, "type: is needed"),
        (("reminder", *TEXT, "--at", "2027-03-14 09:00"), "tz: is needed"),
        (("reminder", *TEXT, "--at", "2027-03-14 09:00", "--tz", "Lisbon"), "tz: is not an IANA zone name"),
        (("reminder", "--payload", "{", *AT), "payload: must be JSON"),
        (("reminder", "--payload", "[1]", *AT), "payload: must be a JSON object"),
        (("reminder", "--payload", '{"text": NaN}', *AT), "payload: must be JSON: NaN is not JSON"),
        (("reminder", "--payload", "[" * 100_000, *AT), "payload: must be JSON"),
        (("reminder", "--set", "text", *AT), "set: must be KEY=VALUE"),
        (("reminder", "--set", "text=\0", *AT), "payload: must not hold NUL"),
        (("reminder", *TEXT, *AT, "--target", "a\x1fb"), "target: must not hold control characters"),
        (("reminder", *TEXT, *AT, "--workspace", "x"), "workspace: must be a uuid"),
        (("reminder", *TEXT, *AT, "--actor", ""), "actor: must have 1 to 255 characters"),
    ],
)
def test_what_is_wrong_is_told_in_one_line_by_field_and_rule(
    on_sqlite: Shell, arguments: tuple[str, ...], said: str
) -> None:
    answer = on_sqlite("schedule", *arguments)
    assert answer.code == 2
    assert answer.err.startswith(f"postdate: {said}")
    assert answer.err.count("\n") == 1
    assert answer.out == ""


@pytest.mark.parametrize("option", ["--gap", "--fold"])
def test_an_unknown_policy_is_wrong_usage(on_sqlite: Shell, option: str) -> None:
    answer = on_sqlite("schedule", "reminder", *TEXT, *AT, option, "sideways")
    assert answer.code == 2
    assert "sideways" in answer.err


def test_a_thing_that_is_scheduled_already_is_refused(postdate: Shell) -> None:
    first = postdate.reminder("--thing", "bill-7")
    answer = postdate("schedule", "reminder", *TEXT, *AT, "--thing", "bill-7")
    assert answer.code == 1
    assert f"already scheduled as action {first}" in answer.err


def test_an_owner_that_does_not_exist_is_not_found(postdate: Shell) -> None:
    answer = postdate("schedule", "reminder", *TEXT, *AT, "--user", "0193e000-0000-7000-8000-000000000000")
    assert answer.code == 3


def test_what_is_printed_is_what_the_database_holds(postdate: Shell, database_url: str) -> None:
    answer = postdate.done("schedule", "reminder", "--set", "text=Olá 👋", *AT, "--json")
    app = Postdate(database_url)
    stored = app.sync.get(json.loads(answer.out)["id"])
    app.kernel.database.close_sync()
    assert stored.payload["text"] == "Olá 👋"
    assert answer.json["payload"] == stored.payload
