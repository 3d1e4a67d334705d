"""How are actions moved from a shell, and what is refused?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from postdate import Context, Postdate, Rejected, Unconfirmed
from postdate.cli.installation import Installation
from tests.surfaces.cli.acting import fire

if TYPE_CHECKING:
    from pathlib import Path

    from tests.surfaces.cli.shell import Shell

UNKNOWN = "0193e000-0000-7000-8000-000000000000"


def failed(database_url: str, error: Exception, *, thing: str = "bill-7") -> str:
    """Return the id of an action whose only run ended with `error`."""
    app = Postdate(database_url)

    @app.action("reminder", auto_attempts=1)
    async def remind(ctx: Context, payload: dict[str, str]) -> None:
        raise error

    return fire(app, "reminder", {"text": "Hi", "thing_id": thing})


def test_cancel_is_idempotent_and_keeps_the_note(postdate: Shell) -> None:
    action = postdate.reminder()
    for _ in range(2):
        cancelled = postdate.done("cancel", action, "--note", "changed my mind", "--json").json
        assert (cancelled["status"], cancelled["reason"]) == ("cancelled", "user")
    history = postdate.done("show", action, "--json").json["history"]
    assert [event["cause"] for event in history] == ["schedule", "cancel"]
    assert history[1]["detail"]["note"] == "changed my mind"


def test_of_several_one_that_cannot_be_moved_stops_nothing_else(postdate: Shell) -> None:
    first, second = postdate.reminder(), postdate.reminder()
    answer = postdate("cancel", first, "nonsense", UNKNOWN, second, "--json")
    assert answer.code == 5
    assert [action["id"] for action in answer.json_lines] == [first, second]
    assert answer.err.splitlines() == [
        "postdate: action: must be a uuid (got 'nonsense')",
        f"postdate: no action '{UNKNOWN}'",
    ]


def test_what_went_out_cannot_be_cancelled(postdate: Shell, database_url: str) -> None:
    app = Postdate(database_url)
    app.action("note")(lambda ctx, payload: "id-1")
    published = fire(app, "note", {})
    answer = postdate("cancel", published)
    assert (answer.code, answer.out) == (1, "")
    assert answer.err == f"postdate: cannot cancel action {published}: it is published\n"


def test_cancel_can_free_the_idempotency_key(postdate: Shell) -> None:
    first = postdate.reminder("--idempotency-key", "k")
    postdate.done("cancel", first, "--free-idempotency-key")
    assert postdate.reminder("--idempotency-key", "k") != first


def test_reschedule_makes_a_new_action_in_the_zone_of_the_first(postdate: Shell) -> None:
    old = postdate.reminder("--tz", "Asia/Tokyo", at="2099-03-14 09:00")
    new = postdate.done("reschedule", old, "--at", "2099-03-15 09:00", "--note", "a day later", "--json").json
    assert (new["publish_at"], new["tz"], new["replaces_id"]) == ("2099-03-15T00:00:00Z", "Asia/Tokyo", old)
    assert postdate.done("show", old, "--json").json["reason"] == "rescheduled"
    again = postdate("reschedule", old, "--at", "2099-03-15 09:00")
    assert again.code == 1
    assert "it is cancelled (rescheduled)" in again.err


def test_reschedule_takes_a_zone_a_policy_and_an_expiry(postdate: Shell) -> None:
    new = postdate.done(
        *("reschedule", postdate.reminder(), "--at", "2027-10-31 01:30", "--tz", "Europe/Lisbon", "--fold", "second"),
        *("--gap", "reject", "--expires-at", "2027-11-01T00:00Z", "--json"),
    ).json
    assert (new["publish_at"], new["gap"], new["fold"]) == ("2027-10-31T01:30:00Z", "reject", "second")
    assert new["expires_at"] == "2027-11-01T00:00:00Z"


def test_post_now_replaces_a_queued_action_by_one_that_is_due(postdate: Shell) -> None:
    old = postdate.reminder()
    new = postdate.done("post-now", old, "--json").json
    assert (new["replaces_id"], new["status"]) == (old, "queued")
    assert new["publish_at"] == new["created_at"]


def test_retry_queues_a_failed_action_again(postdate: Shell, database_url: str) -> None:
    action = failed(database_url, Rejected("no such number"))
    assert postdate("retry", postdate.reminder()).code == 1
    retried = postdate.done("retry", action, "--json").json
    assert (retried["id"], retried["status"]) == (action, "queued")


BUSY = """
from postdate import NotSent, Postdate

app = Postdate()

@app.action("call", auto_attempts=1, max_attempts=1)
async def call(ctx, payload):
    raise NotSent("busy")
"""


def test_a_retry_beyond_the_budget_of_its_type_needs_force_and_a_note(
    postdate: Shell, modules: Path, database_url: str
) -> None:
    (modules / "busy.py").write_text(BUSY)
    postdate.settings["POSTDATE_APP"] = "busy:app"
    with Installation(app="busy:app", database_url=database_url).opened() as app:
        action = fire(app, "call", {})
    spent = postdate("retry", action)
    assert (spent.code, spent.err) == (1, f"postdate: action {action} has used 1 of 1 attempts\n")
    assert postdate("retry", action, "--force").code == 2
    assert postdate.done("retry", action, "--force", "--note", "they are back", "--json").json["status"] == "queued"


def test_confirm_says_that_it_went_out(postdate: Shell, database_url: str) -> None:
    action = failed(database_url, Unconfirmed("cut off"))
    confirmed = postdate.done("confirm", action, "--provider-id", "p-1", "--note", "seen it", "--json").json
    assert (confirmed["status"], confirmed["provider_id"]) == ("published", "p-1")
    assert postdate("confirm", action).code == 1


def test_dismiss_says_that_it_did_not_and_frees_its_thing(postdate: Shell, database_url: str) -> None:
    action = failed(database_url, Unconfirmed("cut off"), thing="bill-7")
    guarded = postdate("schedule", "reminder", "--set", "text=Hi", "--thing", "bill-7", "--at", "2099-01-01T00:00Z")
    assert guarded.code == 1
    assert "already published, or unconfirmed" in guarded.err
    assert "failed (dismissed)" in postdate.done("dismiss", action, "--note", "asked them").out
    assert postdate.reminder("--thing", "bill-7")


@pytest.mark.parametrize("command", ["cancel", "post-now", "retry", "confirm", "dismiss", "show"])
def test_what_does_not_exist_is_not_found_and_what_is_no_id_is_invalid(on_sqlite: Shell, command: str) -> None:
    assert on_sqlite(command, UNKNOWN).code == 3
    assert on_sqlite(command, "nonsense").code == 2
    assert on_sqlite(command).code == 2


def test_reschedule_needs_a_time(on_sqlite: Shell) -> None:
    assert on_sqlite("reschedule", UNKNOWN).code == 2
    assert on_sqlite("reschedule", UNKNOWN, "--at", "2099-01-01T00:00Z").code == 3
