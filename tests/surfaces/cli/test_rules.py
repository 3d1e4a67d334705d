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

DATES = "a day (2027-12-25), a wall time (2027-12-25T09:00) or an instant (2027-12-25T09:00Z)"
TUESDAYS = ("--rrule", "FREQ=WEEKLY;BYDAY=TU", "--start", "2099-03-03T09:00", "--tz", "Europe/Lisbon")


def created(shell: Shell, *arguments: str) -> str:
    answer = shell.done("rules", "create", "reminder", "--set", "text=Hi", *(arguments or TUESDAYS), "--json")
    return str(answer.json["id"])


def test_a_rule_is_made_shown_changed_and_ended(postdate: Shell) -> None:
    rule = created(postdate)
    shown = postdate.done("rules", "show", rule).lines
    assert shown[:2] == [f"rule       {rule}", "status     active"]
    assert "when       every Tuesday at 09:00 in Europe/Lisbon" in shown
    assert shown[shown.index("next") + 1] == "  2099-03-03T09:00:00+00:00"
    assert "rule_created by cli:" in shown[-1]
    changed = postdate.done(
        "rules", "update", rule, "--set", "text=Hello", "--ends-at", "2099-05-01T00:00", "--json"
    ).json
    assert (changed["payload_template"]["text"], changed["version"]) == ("Hello", 2)
    assert postdate.done("rules", "list").lines[0].endswith(" in Europe/Lisbon until 2099-05-01T00:00:00+01:00")
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
    skipped = postdate.done("rules", "skip", rule, "2099-03-10T09:00").out
    assert skipped == f"2099-03-10T09:00:00+00:00 of rule {rule} left out (user)\n"
    again = postdate.done("rules", "skip", rule, "2099-03-10T09:00", "--json").json
    assert (again["rule_id"], again["state"], again["reason"]) == (rule, "skipped", "user")
    moved = postdate.done("rules", "move", rule, "2099-03-17T09:00Z", "--to", "2099-03-18 10:00", "--json").json
    assert (moved["occurrence"], moved["publish_at"]) == ("2099-03-17T09:00:00Z", "2099-03-18T10:00:00Z")
    special = postdate.done("rules", "override", rule, "2099-03-31T09:00", "--set", "text=special").out
    assert special == f'2099-03-31T09:00:00+01:00 of rule {rule} with {{"text": "special"}}\n'
    usual = postdate.done("rules", "override", rule, "2099-03-31T09:00").out
    assert usual == f"2099-03-31T09:00:00+01:00 of rule {rule} as the rule says\n"
    assert postdate.done("rules", "preview", rule, "-n", "3").lines == [
        "2099-03-03T09:00:00+00:00",
        "2099-03-10T09:00:00+00:00 left out (user)",
        "2099-03-18T10:00:00+00:00 moved from 2099-03-17T09:00:00+00:00",
    ]
    assert postdate("rules", "skip", rule, "2099-03-11T09:00").code == 3
    assert postdate.done("rules", "run-now", rule, "--json").json["origin"] == "recurring"


def test_show_tells_what_a_rule_fires_and_what_it_does_about_being_late(on_sqlite: Shell) -> None:
    rule = created(
        on_sqlite,
        *(*TUESDAYS, "--exdate", "2099-03-10", "--rdate", "2099-03-12", "--holidays", "team", "--target", "phone"),
        *("--misfire", "all", "--grace", "60", "--overlap", "skip", "--gap", "reject", "--ends-at", "2099-06-01T00:00"),
    )
    on_sqlite.done("rules", "override", rule, "2099-03-24T09:00", "--set", "text=special")
    shown = on_sqlite.done("rules", "show", rule).out
    for said in (
        "begins     2099-03-03T09:00:00+00:00",
        "ends       2099-06-01T00:00:00+01:00",
        "clocks     gap reject, fold first",
        "left out   2099-03-10",
        "added      2099-03-12",
        "holidays   team",
        "target     phone",
        "missed     all, when late by more than 60 s",
        "overlap    skip",
        '  "text": "Hi"',
        '    "text": "special"',
    ):
        assert f"{said}\n" in shown.replace(",\n", "\n"), said
    told = on_sqlite.done("rules", "show", rule, "--json").json
    assert (told["misfire"], told["grace_seconds"], told["overlap"], told["holidays"]) == ("all", 60, "skip", "team")
    assert (told["exdates"], told["payload_template"]["text"]) == (["2099-03-10"], "Hi")
    assert told["upcoming"][0]["publish_at"] == "2099-03-03T09:00:00Z"


def test_an_empty_option_takes_a_value_away(on_sqlite: Shell) -> None:
    rule = created(on_sqlite, *TUESDAYS, "--holidays", "team", "--target", "phone", "--ends-at", "2099-06-01T00:00")
    told = on_sqlite.done("rules", "update", rule, "--holidays", "", "--target", "", "--ends-at", "", "--json").json
    assert (told["holidays"], told["target_key"], told["ends_at"]) == (None, None, None)
    assert (told["rrule"], told["starts_wall"]) == ("FREQ=WEEKLY;BYDAY=TU", "2099-03-03T09:00:00"), "the rest stays"


def test_a_rule_that_has_ended_previews_nothing(on_sqlite: Shell) -> None:
    rule = created(on_sqlite)
    on_sqlite.done("rules", "end", rule)
    answer = on_sqlite.done("rules", "preview", rule)
    assert (answer.out, answer.err) == ("", "postdate: nothing is to come\n")
    assert on_sqlite.done("rules", "show", rule, "--json").json["upcoming"] == []


def test_a_preview_takes_every_form_that_a_rule_has(on_sqlite: Shell) -> None:
    every = ("rules", "preview", "--every", "5400", "--start", "2099-03-03T09:00Z", "-n", "2")
    assert on_sqlite.done(*every).lines == ["2099-03-03T09:00:00Z", "2099-03-03T10:30:00Z"]
    said = {
        form: on_sqlite.done("rules", "preview", *form, *TUESDAYS[2:]).out
        for form in ((TUESDAYS[1],), ("--rrule", TUESDAYS[1]))
    }
    assert len(set(said.values())) == 1
    for wrong, told in (
        ((), "rrule: or cron, or every, is needed"),
        (
            ("0 9 * * *", "--every", "60"),
            "every: must not be given beside cron: a rule has one of rrule, cron and every",
        ),
        (("every 8 hours",), "rule: must be a rule's id, an RRULE (FREQ=WEEKLY;BYDAY=TU) or a cron expression"),
        (("0193e000",), "rule: must be a rule's id"),
        (("@weakly",), "cron: text must be five fields or one of @yearly"),
        (("0 9 * * *", "--cron", "0 9 * * *"), "cron: must be given once"),
        ((created(on_sqlite), "--every", "60"), "every: must not be given with a rule"),
    ):
        answer = on_sqlite("rules", "preview", *wrong, "--tz", "UTC")
        assert (answer.code, answer.err.startswith(f"postdate: {told}")) == (2, True), answer.err


def test_holidays_are_kept_for_rules_without_an_application(postdate: Shell) -> None:
    said = postdate.done("holidays", "set", "team", "2099-03-10=Founders' day", "2099-03-17").lines
    assert said == ["2099-03-10 Founders' day", "2099-03-17"]
    rule = created(postdate, *TUESDAYS, "--holidays", "team")
    first, second = postdate.done("rules", "preview", rule, "--after", "2099-03-03T09:00Z", "-n", "2").lines
    assert (first[:10], second[:10]) == ("2099-03-24", "2099-03-31")
    assert postdate.done("holidays", "show", "team", "--json").json_lines == [
        {"day": "2099-03-10", "name": "Founders' day"},
        {"day": "2099-03-17", "name": None},
    ]
    assert postdate.done("holidays", "set", "team").out == ""
    emptied = postdate.done("holidays", "show", "team")
    assert (emptied.out, emptied.err) == ("", "postdate: the calendar team has no days\n")
    wrong = postdate("holidays", "set", "team", "2099-02-30")
    assert (wrong.code, wrong.err.startswith("postdate: days: must be days of the calendar")) == (2, True)


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


def test_a_rule_that_was_split_ends_before_the_one_that_goes_on(on_sqlite: Shell) -> None:
    rule = created(on_sqlite)
    on_sqlite.done("rules", "update", rule, "--following", "2099-04-07T09:00", "--set", "text=After")
    assert "ends       before 2099-04-07T09:00:00+01:00" in on_sqlite.done("rules", "show", rule).lines
    old, new = on_sqlite.done("rules", "list").lines
    assert old.endswith(" every Tuesday at 09:00 in Europe/Lisbon before 2099-04-07T09:00:00+01:00")
    assert new.endswith(" every Tuesday at 09:00 in Europe/Lisbon")


def test_a_rule_that_took_over_says_from_when_it_counts(on_sqlite: Shell) -> None:
    rule = created(on_sqlite, *("--rrule", "FREQ=WEEKLY;BYDAY=TU;COUNT=5"), *TUESDAYS[2:])
    split = on_sqlite.done("rules", "update", rule, "--following", "2099-03-24T09:00", "--target", "phone")
    assert split.out.endswith(" every Tuesday at 09:00, 5 times in Europe/Lisbon counted from 2099-03-03T09:00:00\n")
    left = on_sqlite.done("rules", "preview", split.out[:36]).lines
    assert [line[:10] for line in left] == ["2099-03-24", "2099-03-31"], "three of the five are the first rule's"
    first = on_sqlite.done("rules", "list").lines[0]
    assert first.endswith(" every Tuesday at 09:00, 5 times in Europe/Lisbon before 2099-03-24T09:00:00+00:00")


def test_an_update_that_changes_nothing_is_refused(on_sqlite: Shell) -> None:
    rule = created(on_sqlite)
    for nothing in ((), ("--note", "why"), ("--following", "2099-04-07T09:00")):
        answer = on_sqlite("rules", "update", rule, *nothing)
        assert (answer.code, answer.err.startswith("postdate: rule: is given nothing to change")) == (2, True)
    assert on_sqlite.done("rules", "show", rule, "--json").json["version"] == 1


def test_what_can_never_fire_is_told_of(on_sqlite: Shell) -> None:
    past = ("--rrule", "FREQ=DAILY;COUNT=3", "--start", "2020-01-01T09:00", "--tz", "UTC")
    made = on_sqlite.done("rules", "create", "reminder", "--set", "text=Hi", *past)
    assert made.err == f"postdate: rule {made.out[:36]} has ended: by what it says nothing is to come\n"
    assert on_sqlite.done("rules", "preview", *past).err == "postdate: nothing is to come\n"


def test_a_calendar_without_days_is_told_of(on_sqlite: Shell) -> None:
    made = ("rules", "create", "reminder", "--set", "text=Hi", *TUESDAYS, "--holidays")
    said = "postdate: the calendar taem has no days yet: `postdate holidays set taem DAY...`\n"
    answer = on_sqlite.done(*made, "taem")
    assert answer.err == said
    on_sqlite.done("holidays", "set", "team", "2099-03-10")
    assert on_sqlite.done(*made, "team").err == ""
    assert on_sqlite.done("rules", "update", answer.out[:36], "--holidays", "team").err == ""
    assert on_sqlite.done("rules", "update", answer.out[:36], "--holidays", "taem").err == said
    assert on_sqlite.done("rules", "update", answer.out[:36], "--target", "phone").err == "", "only where it is given"


def test_a_rule_that_is_given_no_start_begins_on_a_whole_second(on_sqlite: Shell) -> None:
    for form in (("--every", "60"), ("--cron", "* * * * *", "--tz", "UTC")):
        made = on_sqlite.done("rules", "create", "reminder", "--set", "text=Hi", *form, "--json").json
        assert "." not in made["starts_at"], form


@pytest.mark.parametrize("form", [("--cron", "0 9 * * TUE"), ("--rrule", "FREQ=WEEKLY;BYDAY=TU;BYHOUR=9")])
def test_a_rule_may_begin_on_a_day(on_sqlite: Shell, form: tuple[str, ...]) -> None:
    shown = on_sqlite.done("rules", "preview", *form, "--start", "2099-03-03", "--tz", "Europe/Lisbon", "-n", "1")
    assert shown.lines == ["2099-03-03T09:00:00+00:00"]


def test_errors_show_times_and_spans_as_people_write_them(on_sqlite: Shell) -> None:
    rule = created(on_sqlite, *TUESDAYS, "--ends-at", "2099-04-01T00:00")
    for arguments, told in (
        (("rules", "preview", "--every", "0.5"), "every: interval must be at least a second (got 0:00:00.500000)"),
        (
            ("rules", "update", rule, "--following", "2099-04-01T00:00", "--target", "phone"),
            "following: must be an occurrence that is still to come, or before one (got 2099-03-31T23:00:00+00:00)",
        ),
        (
            ("rules", "preview", *TUESDAYS, "--exdate", "soon"),
            f"rrule: exdates must be {DATES} (got 'soon')",
        ),
    ):
        assert on_sqlite(*arguments).err == f"postdate: {told}\n"


async def test_what_was_missed_is_listed(on_sqlite: Shell, sqlite_url: str) -> None:
    clock = ManualClock(datetime(2027, 3, 8, 12, tzinfo=UTC))
    app = Postdate(sqlite_url, clock=clock)
    app.action("post")(lambda ctx, payload: None)
    rule = await app.create_rule("post", {}, cron="0 9 * * *", tz="UTC", misfire="skip")
    clock.advance(timedelta(days=2))
    await travel(app, to=clock.now())
    await app.close()
    assert on_sqlite.done("rules", "missed", str(rule.id)).lines == [
        f"2027-03-10T09:00:00Z of rule {rule.id} left out (missed)",
        f"2027-03-09T09:00:00Z of rule {rule.id} left out (missed)",
    ]
    there = on_sqlite.done("rules", "missed", "--tz", "Asia/Tokyo").lines
    assert there[0].startswith("2027-03-10T18:00:00+09:00 of rule ")
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
    assert shown[2].startswith("error      InvalidZone: ")
    assert "when       0 9 * * * in Mars/Phobos" in shown
    assert shown[-1].endswith(" rule_created by api"), "and what people did to it"
    (listed,) = on_sqlite.done("rules", "list").lines
    assert listed.startswith(f"{rule.id} active post 0 9 * * * in Mars/Phobos InvalidZone: ")
