"""How does a person look after recurring rules from a shell?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from postdate import Postdate
from postdate.clock import ManualClock
from postdate.testing.travel import travel

if TYPE_CHECKING:
    from tests.surfaces.cli.shell import Shell

TUESDAYS = ("--rrule", "FREQ=WEEKLY;BYDAY=TU", "--start", "2099-03-03T09:00", "--tz", "Europe/Lisbon")


def created(shell: Shell, *arguments: str) -> str:
    answer = shell.done("rules", "create", "reminder", "--set", "text=Hi", *(arguments or TUESDAYS), "--json")
    return str(answer.json["id"])


def test_a_rule_is_made_shown_changed_and_ended(postdate: Shell) -> None:
    rule = created(postdate)
    shown = postdate.done("rules", "show", rule).lines
    assert shown[0] == f"{rule} active reminder every Tuesday at 09:00 in Europe/Lisbon"
    assert shown[1] == "  2099-03-03T09:00:00+00:00"
    assert "rule_created by cli:" in shown[-1]
    changed = postdate.done(
        "rules", "update", rule, "--set", "text=Hello", "--ends-at", "2099-05-01T00:00", "--json"
    ).json
    assert (changed["payload_template"]["text"], changed["version"]) == ("Hello", 2)
    assert postdate.done("rules", "list").lines[0].endswith(" in Europe/Lisbon until 2099-04-30T23:00:00Z")
    wrong = postdate("rules", "update", rule, "--ends-at", "2099-05-01")
    assert (wrong.code, wrong.err.startswith("postdate: ends_at: must have the form")) == (2, True)
    assert postdate.done("rules", "update", rule, "--ends-at", "", "--json").json["ends_at"] is None
    for command, status in (("pause", "paused"), ("resume", "active"), ("end", "ended")):
        assert postdate.done("rules", command, rule, "--note", "why not", "--json").json["status"] == status
    assert [line["id"] for line in postdate.done("rules", "list", "--status", "ended", "--json").json_lines] == [rule]
    history = postdate.done("rules", "show", rule, "--json").json["history"]
    assert history[-1]["detail"] == {"note": "why not"}
    refused = postdate("rules", "resume", rule)
    assert (refused.code, refused.err) == (1, f"postdate: cannot resume rule {rule}: it is ended\n")


def test_single_occurrences_are_skipped_moved_and_given_something_else(postdate: Shell) -> None:
    rule = created(postdate)
    postdate.done("rules", "skip", rule, "2099-03-10T09:00")
    moved = postdate.done("rules", "move", rule, "2099-03-17T09:00Z", "--to", "2099-03-18 10:00", "--json").json
    assert (moved["occurrence"], moved["publish_at"]) == ("2099-03-17T09:00:00Z", "2099-03-18T10:00:00Z")
    postdate.done("rules", "override", rule, "2099-03-24T09:00", "--set", "text=special")
    assert postdate.done("rules", "preview", rule, "-n", "3").lines == [
        "2099-03-03T09:00:00+00:00",
        "2099-03-10T09:00:00+00:00 left out",
        "2099-03-18T10:00:00+00:00 moved from 2099-03-17T09:00:00+00:00",
    ]
    assert postdate("rules", "skip", rule, "2099-03-11T09:00").code == 3
    assert postdate.done("rules", "run-now", rule, "--json").json["origin"] == "recurring"


def test_a_preview_needs_no_rule(on_sqlite: Shell) -> None:
    monthly = ("FREQ=MONTHLY;BYDAY=-1FR", "--start", "2099-01-29T17:00", "--tz", "Asia/Tokyo")
    assert on_sqlite.done("rules", "preview", *monthly, "-n", "2").lines == [
        "2099-01-30T17:00:00+09:00",
        "2099-02-27T17:00:00+09:00",
    ]
    weekdays = on_sqlite.done("rules", "preview", "0 9 * * MON", "--tz", "UTC", "-n", "1", "--json").json
    assert weekdays["publish_at"].endswith("T09:00:00Z")
    wrong = on_sqlite("rules", "preview", "FREQ=MONTHLY;BYDAY=99FR", "--tz", "UTC")
    assert (wrong.code, "BYDAY" in wrong.err) == (2, True)


@pytest.mark.parametrize(
    "arguments", [("--cron", "0 9 * *", "--tz", "UTC"), ("--every", "0.1"), ("--cron", "0 9 * * *")]
)
def test_what_is_no_rule_is_refused(on_sqlite: Shell, arguments: tuple[str, ...]) -> None:
    answer = on_sqlite("rules", "create", "reminder", "--set", "text=Hi", *arguments)
    assert answer.code == 2
    assert answer.err


async def test_what_was_missed_is_listed(on_sqlite: Shell, sqlite_url: str) -> None:
    clock = ManualClock(datetime(2027, 3, 8, 12, tzinfo=UTC))
    app = Postdate(sqlite_url, clock=clock)
    app.action("post")(lambda ctx, payload: None)
    rule = await app.create_rule("post", {}, cron="0 9 * * *", tz="UTC", misfire="skip")
    clock.advance(timedelta(days=2))
    await travel(app, to=clock.now())
    await app.close()
    assert on_sqlite.done("rules", "missed", str(rule.id)).lines == [
        f"2027-03-10T09:00:00Z of rule {rule.id}",
        f"2027-03-09T09:00:00Z of rule {rule.id}",
    ]
    later = on_sqlite.done("rules", "missed", "--since", "2027-03-10T00:00Z", "--json").json_lines
    assert [line["nominal_at"] for line in later] == ["2027-03-10T09:00:00Z"]


async def test_a_rule_that_cannot_be_read_says_why(on_sqlite: Shell, sqlite_url: str) -> None:
    clock = ManualClock(datetime(2027, 3, 8, 12, tzinfo=UTC))
    app = Postdate(sqlite_url, clock=clock)
    app.action("post")(lambda ctx, payload: None)
    rule = await app.create_rule("post", {}, cron="0 9 * * *", tz="UTC")
    with app.kernel.transaction(None) as tx:
        tx.execute(tx.tables.recurring_schedules.update().values(tz="Mars/Phobos"))
    clock.advance(timedelta(days=2))
    await app.tick()
    await app.close()
    shown = on_sqlite.done("rules", "show", str(rule.id)).lines
    assert shown[0].startswith(f"{rule.id} active post 0 9 * * * in Mars/Phobos InvalidZone: ")
    assert len(shown) == 2, "and what people did to it"
