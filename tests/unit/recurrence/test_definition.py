"""Does every rule fire when its definition says, whichever way it is expanded?"""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import get_args

import pytest
from dateutil.rrule import rrulestr
from hypothesis import example, given, settings
from hypothesis import strategies as st

from postdate.domain.recurrence import rrule
from postdate.domain.walltime import Fold, Gap
from tests.unit.recurrence.cases import at, lines
from tests.unit.recurrence.definition import fired
from tests.unit.recurrence.texts import texts_by_clock, texts_by_day

EXAMPLES = int(os.environ.get("POSTDATE_RECURRENCE_EXAMPLES", "100"))
ZONES = st.sampled_from(
    [
        "UTC",
        "America/New_York",
        "Australia/Lord_Howe",  # half an hour
        "Pacific/Apia",  # skipped 2011-12-30
        "Asia/Beirut",  # at midnight
        "Africa/Casablanca",  # four times a year
        "America/St_Johns",  # at one minute past midnight
        "Antarctica/Troll",  # two hours
    ]
)
STARTS = st.datetimes(datetime(1995, 1, 1), datetime(2030, 1, 1)).map(  # noqa: DTZ001 - wall times
    lambda wall: wall.replace(minute=wall.minute // 15 * 15, second=0, microsecond=0)
)
DAYS = st.integers(0, 900).map(timedelta)
LENGTHS = st.integers(1, 120).map(timedelta)
GAPS = st.sampled_from(get_args(Gap))
FOLDS = st.sampled_from(get_args(Fold))


@settings(max_examples=3 * EXAMPLES, deadline=None)
@given(text=texts_by_day(), start=STARTS, tz=ZONES, wait=DAYS, length=LENGTHS, gap=GAPS, fold=FOLDS)
@example(  # the wall times of one change, out of their order
    text="FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0,30",
    start=datetime(2026, 3, 1),  # noqa: DTZ001
    tz="America/New_York",
    wait=timedelta(0),
    length=timedelta(30),
    gap="forward",
    fold="second",
)
def test_days_weeks_months_and_years_by_the_letter(
    text: str, start: datetime, tz: str, wait: timedelta, length: timedelta, gap: Gap, fold: Fold
) -> None:
    rule = rrule(text, start=start, tz=tz, gap=gap, fold=fold)
    lo = start.replace(tzinfo=UTC) + wait
    hi = lo + length
    expected = fired(text, start, tz, until=hi, gap=gap, fold=fold)
    assert list(rule.between(lo, hi)) == [instant for instant in expected if instant > lo]


@settings(max_examples=EXAMPLES, deadline=None)
@given(text=texts_by_clock(), start=STARTS, tz=ZONES, wait=st.integers(0, 25), length=st.integers(1, 6), fold=FOLDS)
@example(  # clocks go back by half an hour within a period, for these begin at half past
    text="FREQ=HOURLY;BYMINUTE=0,15,40;BYMONTH=4",
    start=datetime(2025, 9, 25),  # noqa: DTZ001
    tz="Australia/Lord_Howe",
    wait=185,
    length=12,
    fold="first",
)
@example(  # periods that reach into the next hour, after the same change
    text="FREQ=HOURLY;INTERVAL=5;BYMINUTE=10;BYHOUR=3,11",
    start=datetime(2026, 4, 4, 12),  # noqa: DTZ001
    tz="Australia/Lord_Howe",
    wait=0,
    length=20,
    fold="first",
)
@example(  # where the next match lies beyond a change
    text="FREQ=HOURLY;INTERVAL=13;BYHOUR=9",
    start=datetime(2026, 10, 29),  # noqa: DTZ001
    tz="America/New_York",
    wait=0,
    length=20,
    fold="first",
)
def test_hours_minutes_and_seconds_by_the_letter(
    text: str, start: datetime, tz: str, wait: int, length: int, fold: Fold
) -> None:
    rule = rrule(text, start=start, tz=tz, fold=fold)
    lo = start.replace(tzinfo=UTC) + timedelta(wait)
    hi = lo + timedelta(length)
    expected = fired(text, start, tz, until=hi, gap="forward", fold=fold)
    assert list(rule.between(lo, hi)) == [instant for instant in expected if instant > lo]


@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(text=texts_by_day() | texts_by_clock(), start=STARTS, tz=ZONES, wait=DAYS, gap=GAPS)
def test_looking_from_anywhere_is_looking_from_the_start(
    text: str, start: datetime, tz: str, wait: timedelta, gap: Gap
) -> None:
    rule = rrule(text, start=start, tz=tz, gap=gap)
    lo = start.replace(tzinfo=UTC) + wait
    whole = islice(rule.between(start.replace(tzinfo=UTC) - timedelta(2), lo + timedelta(60)), 20_000)
    later = [instant for instant in whole if instant > lo]
    assert list(islice(rule.between(lo, lo + timedelta(60)), len(later))) == later


@settings(max_examples=3 * EXAMPLES, deadline=None)
@given(
    text=texts_by_day(),
    start=STARTS,
    tz=ZONES,
    wait=DAYS,
    length=st.integers(0, 20).map(timedelta),
    gap=GAPS,
    fold=FOLDS,
)
def test_the_fast_ways_find_what_the_general_one_finds(
    text: str, start: datetime, tz: str, wait: timedelta, length: timedelta, gap: Gap, fold: Fold
) -> None:
    rule = rrule(text, start=start, tz=tz, gap=gap, fold=fold)
    lo = start.replace(tzinfo=UTC) + wait - timedelta(1)
    assert list(rule.between(lo, lo + length)) == list(rule._by_walls(lo, lo + length))


@pytest.mark.parametrize("week_start", ["MO", "SU", "TH"])
def test_numbered_weeks_by_the_letter_in_every_kind_of_year(week_start: str) -> None:
    start, until = datetime(2000, 1, 1), datetime(2031, 1, 10, tzinfo=UTC)  # noqa: DTZ001
    for weeks in ("1", "53", "-1,2", "-53", "-52"):
        text = f"FREQ=YEARLY;BYWEEKNO={weeks};BYDAY=MO,TU,WE,TH,FR,SA,SU;WKST={week_start}"
        expected = fired(text, start, "UTC", until=until, gap="forward", fold="first")
        assert list(rrule(text, start=start, tz="UTC").between(datetime(1999, 1, 1, tzinfo=UTC), until)) == expected


@pytest.mark.parametrize("number", [1, 9, 52, 53])
def test_weeks_that_begin_on_monday_are_those_of_iso_8601(number: int) -> None:
    rule = rrule(f"FREQ=YEARLY;BYWEEKNO={number};BYDAY=MO,TU,WE,TH,FR,SA,SU", start="1990-01-01", tz="UTC")
    found = {instant.date() for instant in rule.between(at("1990-01-01T00:00Z"), at("2060-01-01T00:00Z"))}
    days = (date(1990, 1, 2) + timedelta(days=number) for number in range(25_567))
    assert found == {day for day in days if day.isocalendar().week == number and day < date(2060, 1, 2)}


FIRM = [case for case in lines("rrule.jsonl") if case.get("certainty") == "firm"]
SHARED = {case["rrule"] for case in FIRM if "dateutil" in case.get("agree", ()) and "Z" not in case["rrule"]}


@pytest.mark.parametrize("text", sorted(SHARED))
def test_dateutil_expands_a_whole_rule_to_the_same(text: str) -> None:
    start = datetime(2019, 12, 31, 9, 45)  # noqa: DTZ001 - the last day of a year, in a week of the next
    whole = rrulestr(text, dtstart=start)
    ours = rrule(text, start=start, tz="UTC").preview(20)
    assert [instant.replace(tzinfo=None) for instant in ours] == list(islice(whole, 20))
