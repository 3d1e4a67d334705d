"""Is what others' recurrences were reported to do wrong impossible here?"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from itertools import islice, pairwise

import pytest

from postdate.domain.recurrence import Rule, cron, every, rrule
from postdate.domain.walltime import resolve
from postdate.errors import InvalidRule
from tests.unit.recurrence.cases import at, at_most, lines, told

AREAS = {"cron", "rrule", "zone", "dst"}

REPORTED: list[tuple[str, Rule, str, list[str]]] = [
    (
        "BL02",
        cron("0 20 * * *", tz="Europe/Paris"),
        "2022-10-30T00:00+02:00",
        ["2022-10-30T19:00:00Z", "2022-10-31T19:00:00Z", "2022-11-01T19:00:00Z"],
    ),
    (
        "BL03",
        cron("0 0 */5 * *", tz="UTC"),
        "2022-02-20T00:00Z",
        [f"2022-{day}T00:00:00Z" for day in ("02-21", "02-26", "03-01", "03-06", "03-11")],
    ),
    (
        "BL05",
        cron("0 5-5 * * *", tz="UTC"),
        "2026-01-01T00:00Z",
        ["2026-01-01T05:00:00Z", "2026-01-02T05:00:00Z", "2026-01-03T05:00:00Z"],
    ),
    (
        "BL08",
        cron("30 1 * * *", tz="America/New_York"),
        "2026-10-31T12:00Z",
        ["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"],
    ),
    (
        "BL13",
        cron("* * * */3 *", tz="America/New_York"),
        "2015-02-15T00:00-05:00",
        ["2015-04-01T04:00:00Z", "2015-04-01T04:01:00Z"],
    ),
    (
        "BL14",
        cron("30 * * * *", tz="Europe/Helsinki"),
        "2017-10-29T03:45+02:00",
        ["2017-10-29T02:30:00Z", "2017-10-29T03:30:00Z"],
    ),
    (
        "BL17",
        cron("0 0 * * 1-5", tz="US/Central"),
        "2021-03-12T00:00:00.000001-06:00",
        ["2021-03-15T05:00:00Z", "2021-03-16T05:00:00Z"],
    ),
    (
        "BL18",
        cron("0 2 * * *", tz="US/Eastern"),
        "2013-03-10T01:59-05:00",
        ["2013-03-10T07:00:00Z", "2013-03-11T06:00:00Z"],
    ),
    (
        "BL44",
        cron("0 6 * * MON", tz="America/New_York"),
        "2021-11-01T12:00Z",
        ["2021-11-08T11:00:00Z", "2021-11-15T11:00:00Z"],
    ),
    (
        "BL59",
        rrule("FREQ=MONTHLY;UNTIL=20180819;INTERVAL=12;BYDAY=3MO", start="2017-08-21T00:00", tz="UTC"),
        "2017-01-01T00:00Z",
        ["2017-08-21T00:00:00Z"],
    ),
    (
        "BL63",
        rrule("FREQ=WEEKLY;BYDAY=MO,WE,TH;COUNT=3", start="2022-09-25T01:00", tz="America/Denver"),
        "2022-09-01T00:00Z",
        ["2022-09-26T07:00:00Z", "2022-09-28T07:00:00Z", "2022-09-29T07:00:00Z"],
    ),
    (
        "BL65",
        rrule("FREQ=DAILY;COUNT=5", start="2018-10-27T00:00", tz="Australia/Eucla"),
        "2018-10-01T00:00Z",
        [f"2018-10-{day}T15:15:00Z" for day in range(26, 31)],
    ),
    (
        "BL67",
        cron("0 1 4 11 *", tz="America/Sao_Paulo"),
        "2018-11-03T23:00-03:00",
        ["2018-11-04T03:00:00Z"],
    ),
    (
        "BL69",
        cron("45 1 * * *", tz="Australia/Lord_Howe"),
        "2026-04-04T00:00Z",
        ["2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"],
    ),
    (
        "BL75",
        cron("* * * * *", tz="America/Los_Angeles"),
        "2025-11-02T08:58:30Z",
        [f"2025-11-02T{clock}:00Z" for clock in ("08:59", "09:00", "09:01", "09:02")],
    ),
]


def test_every_report_on_recurrence_is_tried() -> None:
    reported = {case["id"] for case in lines("buglog.jsonl") if case["area"] in AREAS}
    tried = {name for name, _, _, _ in REPORTED} | {
        number.upper() for name in globals() for number in re.findall(r"bl\d\d", name)
    }
    assert reported - tried == set()


@pytest.mark.parametrize(
    ("rule", "after", "expected"),
    [case[1:] for case in REPORTED],
    ids=[case[0] for case in REPORTED],
)
def test_the_reported_input_gives_the_right_instants(rule: Rule, after: str, expected: list[str]) -> None:
    assert told(islice(rule.after(at(after)), len(expected))) == expected


@pytest.mark.parametrize("expr", ["", "* * * *"])
def test_bl11_fewer_than_five_fields_are_refused(expr: str) -> None:
    with pytest.raises(InvalidRule, match="text must have"):
        cron(expr, tz="UTC")


@pytest.mark.parametrize(
    "rule",
    [
        rrule("FREQ=MINUTELY;INTERVAL=10", start="2020-10-24T00:00", tz="Europe/Paris"),
        cron("*/10 * * * *", tz="Europe/Paris"),
        every(timedelta(minutes=10), anchor=at("2020-10-24T00:00Z")),
    ],
    ids=["rrule", "cron", "every"],
)
def test_bl22_every_ten_minutes_goes_on_through_the_repeated_hour(rule: Rule) -> None:
    before = at("2020-10-25T00:00Z") - timedelta(seconds=1)
    instants = list(rule.between(before, at("2020-10-25T02:59Z")))
    assert len(instants) == 18
    assert {right - left for left, right in pairwise(instants)} == {timedelta(minutes=10)}


def test_bl32_eight_in_new_york_is_another_instant_in_winter() -> None:
    rule = cron("0 8 * * *", tz="America/New_York")
    assert next(rule.after(at("2026-07-01T00:00Z"))) == at("2026-07-01T12:00Z")
    assert next(rule.after(at("2026-12-01T00:00Z"))) == at("2026-12-01T13:00Z")


def test_bl39_a_time_in_tokyo_is_not_one_of_the_machine() -> None:
    once = rrule("FREQ=DAILY;COUNT=1", start="2026-06-17T15:30", tz="Asia/Tokyo")
    assert once.preview(2) == (at("2026-06-17T06:30Z"),)


def test_bl48_sc41_nine_stays_nine_when_the_clocks_change() -> None:
    rule = rrule("FREQ=DAILY", start="2026-03-01T09:00", tz="America/New_York")
    window = rule.between(at("2026-03-07T00:00Z"), at("2026-03-10T00:00Z"))
    assert told(window) == ["2026-03-07T14:00:00Z", "2026-03-08T13:00:00Z", "2026-03-09T13:00:00Z"]


def test_bl52_nine_is_nine_beyond_a_change_that_is_still_to_come() -> None:
    assert resolve("2021-11-08T09:00", "America/New_York") == at("2021-11-08T14:00Z")
    rule = rrule("FREQ=WEEKLY", start="2021-10-25T09:00", tz="America/New_York")
    assert at("2021-11-08T14:00Z") in rule.preview(5)


def test_bl57_hours_that_the_steps_never_meet_are_no_error() -> None:
    rule = rrule("FREQ=HOURLY;INTERVAL=2;BYHOUR=0,6,12,18", start="2026-01-05T23:00", tz="UTC")
    with at_most(calls=1_000):
        assert rule.preview(1) == ()


def test_bl61_twenty_days_of_hours_never_come_to_five_o_clock() -> None:
    rule = rrule("FREQ=HOURLY;COUNT=10;INTERVAL=480;BYHOUR=5", start="2020-01-01T00:00", tz="UTC")
    with at_most(calls=1_000):
        assert rule.preview(1) == ()


@pytest.mark.parametrize("expr", ["30 2 * * *", "30 1 * * *"])
@pytest.mark.parametrize("day", ["2026-03-08", "2026-11-01"])
def test_bl70_one_run_a_day_when_the_clocks_change(expr: str, day: str) -> None:
    midnight = datetime.fromisoformat(f"{day}T00:00")
    begin, end = (resolve(midnight + timedelta(days=days), "America/New_York") for days in (0, 1))
    assert len(list(cron(expr, tz="America/New_York").between(begin, end))) == 1


def test_sc26_creating_a_rule_does_not_fire_it() -> None:
    noon = at("2026-05-20T12:00Z")
    assert cron("0 9 * * *", tz="UTC").preview(1, after=noon) == (at("2026-05-21T09:00Z"),)
    rule = rrule("FREQ=DAILY", start="2026-05-01T09:00", tz="UTC")
    assert rule.preview(1, after=noon) == (at("2026-05-21T09:00Z"),)


def test_sc42_a_rule_counts_from_its_first_run_not_from_when_it_was_made() -> None:
    made = at("2026-05-20T14:32Z")
    rule = rrule("FREQ=WEEKLY", start="2026-05-23T08:00", tz="UTC")
    assert told(rule.preview(3, after=made)) == [f"2026-{day}T08:00:00Z" for day in ("05-23", "05-30", "06-06")]
