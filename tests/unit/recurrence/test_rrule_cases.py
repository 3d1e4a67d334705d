"""Does an RRULE fire when the published cases say, and is what is none refused?"""

from __future__ import annotations

import ast
import re
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from postdate.domain import zones
from postdate.domain.recurrence import RRule, rrule
from postdate.errors import InvalidRule
from tests.unit.recurrence.cases import Case, at_most, each, lines, told

if TYPE_CHECKING:
    from postdate.domain.walltime import Gap

CASES = lines("rrule.jsonl")
VALID = [case for case in CASES if case["valid"]]
INVALID = [case for case in CASES if not case["valid"]]

READ_AS = {
    # The reading taken where libraries differ, by a library that shares it. What RFC 5545's table expands is
    # expanded; what is still missing then comes from the start; INTERVAL counts calendar years.
    "byweekno-without-byday": "rrule-temporal",
    "yearly-bymonthday-without-bymonth": "rrule-temporal",
    "bysetpos-partial-first-interval": "rrule-temporal",
    "byweekno-week-year-interval": "dateutil",
    "tzdata-version": "dateutil",
}
REFUSED_TOPICS = {"rfc-forbidden-combination"}
ELAPSED_TOPICS = {"subday-steps-across-dst"}
TAKEN = {
    # Cases that may be refused or read leniently, and are read: UNTIL is a wall time of the zone, or an instant.
    "rr-bad-until-floating-zoned",
    "rr-bad-until-z-floating",
}


def text_of(case: Case) -> str:
    build = case.get("rrule_build")
    text: str = case["rrule"]
    return build["prefix"] + build["sep"].join([build["repeat"]] * build["times"]) if build else text


def rule_of(case: Case, gap: Gap = "forward") -> RRule:
    return rrule(
        text_of(case),
        start=case["dtstart"],
        tz=case["tz"] or "UTC",
        exdates=case.get("exdate", ()),
        rdates=case.get("rdate", ()),
        gap=gap,
    )


def fired(case: Case, many: int, gap: Gap = "forward") -> list[datetime]:
    rule = rule_of(case, gap)
    return list(islice(rule.after(datetime.fromisoformat("0001-01-03T00:00Z")), many))


def local(case: Case, instants: list[datetime]) -> list[str]:
    zone = zones.zone(case["tz"] or "UTC")
    return [instant.astimezone(zone).replace(tzinfo=None).isoformat() for instant in instants]


def agrees(found: list[str], expected: list[str], *, complete: bool) -> bool:
    return found == expected if complete else found[: len(expected)] == expected


def listed_by(case: Case, library: str) -> list[str]:
    """Return what a library answered, from how its answer differs."""
    listed = case["expect"]["local"]
    if any(name.split()[0] == library for name in case["agree"]):
        return list(listed)
    extra, missing = (set(ast.literal_eval(part)) for part in re.findall(r"\[.*?\]", case["differ"][library]))
    return sorted({*listed} - missing | extra)


def test_every_line_is_run_by_one_of_these_tests() -> None:
    topics = {case["topic"] for case in VALID if case["certainty"] == "contested"}
    assert topics == READ_AS.keys() | REFUSED_TOPICS | ELAPSED_TOPICS
    kinds = {case["certainty"] for case in VALID}
    assert kinds == {"firm", "contested", "policy"}
    assert {case["topic"] for case in VALID if case["certainty"] == "policy"} == {"gap-shift-or-skip"}


@each(case for case in VALID if case["certainty"] == "firm")
def test_what_is_certain_is_so(case: Case) -> None:
    expect = case["expect"]
    with at_most(calls=100_000):
        instants = fired(case, len(expect["local"]) + 1)
    complete = expect.get("complete", True)
    assert agrees(local(case, instants), expect["local"], complete=complete)
    assert "utc" not in expect or agrees(told(instants), expect["utc"], complete=complete)


@each(case for case in VALID if case["certainty"] == "policy")
def test_a_skipped_time_moves_on_or_is_left_out_by_the_policy(case: Case) -> None:
    expect = case["expect"]
    with at_most(calls=100_000):
        moved = told(fired(case, len(expect["utc_shift"]) + ("COUNT" in case["rrule"])))
        left_out = told(fired(case, len(expect["utc_skip"]) + 1, gap="reject"))
    assert moved == expect["utc_shift"]
    assert left_out == expect["utc_skip"]


@each(case for case in VALID if case.get("topic") in READ_AS and case["certainty"] == "contested")
def test_where_libraries_differ_one_reading_is_kept(case: Case) -> None:
    if case["topic"] == "tzdata-version" and zones.tzdata_version()[0] < "2026f":
        pytest.skip("the values are those of tzdata 2026f")
    expected = listed_by(case, READ_AS[case["topic"]])
    complete = case["expect"]["complete"]
    assert agrees(local(case, fired(case, len(expected) + complete)), expected, complete=complete)


@each(case for case in VALID if case.get("topic") in ELAPSED_TOPICS)
def test_hours_are_elapsed_ones_on_the_day_of_a_change(case: Case) -> None:
    assert told(fired(case, 10)) == case["expect"]["utc_elapsed"]


@each(case for case in VALID if case.get("topic") in REFUSED_TOPICS)
def test_what_the_rfc_rules_out_is_refused_by_its_name(case: Case) -> None:
    with pytest.raises(InvalidRule) as refusal:
        rule_of(case)
    assert refusal.value.part == case["rfc_forbids"][0].split()[0]


@each(case for case in INVALID if case["id"] not in TAKEN)
def test_what_is_no_rule_is_refused(case: Case) -> None:
    with at_most(calls=1_000), pytest.raises(InvalidRule) as refusal:
        rule_of(case)
    assert refusal.value.field == "rrule"
    assert refusal.value.part
    assert len(str(refusal.value)) < 400


@each(case for case in INVALID if case["id"] in TAKEN)
def test_an_until_of_the_other_kind_is_read_for_what_it_says(case: Case) -> None:
    assert case["level"] == "either"
    assert local(case, fired(case, 10))[-1] == "2026-01-10T09:00:00"
    assert len(fired(case, 10)) == 6
