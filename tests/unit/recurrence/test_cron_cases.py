"""Does a cron expression fire when the published cases say, and is what is none refused?"""

from __future__ import annotations

from itertools import islice

import pytest

from postdate.domain.recurrence import cron
from postdate.errors import InvalidRule
from tests.unit.recurrence.cases import Case, at, at_most, each, lines, told

CASES = lines("cron.jsonl")
TAKEN = {
    # Forms that may be refused or read, and are read: last and numbered days, and steps from a weekday on.
    "cr-1-step",
    "cr-7-step",
    "cr-ext-last-day-lower",
    "cr-ext-last-sun-0",
    "cr-ext-second-mon",
    "cr-ext-l-list",
    "cr-ext-last-name",
}


def fired(case: Case) -> list[str]:
    with at_most(calls=100_000):
        return told(islice(cron(case["expr"], tz=case["tz"]).after(at(case["from"])), case["limit"]))


def test_every_line_is_run_by_one_of_these_tests() -> None:
    assert {str(case["valid"]) for case in CASES} == {"True", "False", "either"}
    assert {case["id"] for case in CASES if case["valid"] == "either"} >= TAKEN


@each(case for case in CASES if case["valid"] is True)
def test_an_expression_fires_as_debians_cron_does(case: Case) -> None:
    assert fired(case) == case["expect"]["utc"]


@each(case for case in CASES if case["id"] in TAKEN)
def test_a_form_beyond_the_classic_ones_is_read_for_what_it_says(case: Case) -> None:
    assert fired(case) == case["expect"]["utc_if_accepted"]


@each(case for case in CASES if case["valid"] is not True and case["id"] not in TAKEN)
def test_what_is_no_expression_is_refused(case: Case) -> None:
    with at_most(calls=1_000), pytest.raises(InvalidRule) as refusal:
        cron(case["expr"], tz=case["tz"])
    assert refusal.value.field == "cron"
    assert refusal.value.part
    assert len(str(refusal.value)) < 400
