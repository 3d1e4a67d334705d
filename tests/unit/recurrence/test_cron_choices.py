"""What does a cron rule do by its gap policy and at the calendar's end, and how are many times said?"""

from __future__ import annotations

from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from postdate.domain.recurrence import cron, every
from tests.unit.recurrence.cases import at, told

if TYPE_CHECKING:
    from postdate.domain.walltime import Gap


@pytest.mark.parametrize(
    ("gap", "on_the_day"),
    [("forward", ["2027-03-14T07:00:00Z"]), ("reject", [])],  # right after the gap, at three; or not that day
)
def test_half_past_two_on_the_night_when_new_yorks_clocks_skip_it(gap: Gap, on_the_day: list[str]) -> None:
    rule = cron("30 2 * * *", tz="America/New_York", gap=gap)
    days = rule.between(at("2027-03-13T05:00Z"), at("2027-03-16T05:00Z"))
    assert told(days) == ["2027-03-13T07:30:00Z", *on_the_day, "2027-03-15T06:30:00Z"]


@pytest.mark.parametrize(
    ("expr", "last"),
    [("30 23 * * *", "9999-12-31T04:30:00Z"), ("*/30 17-18 * * *", "9999-12-31T23:30:00Z")],
    ids=["fixed times", "whenever clocks show it"],
)
def test_the_last_time_is_the_last_that_falls_within_the_calendar_in_utc(expr: str, last: str) -> None:
    """The wall times of New York's last evening lie in the year 10000 in UTC."""
    found = list(islice(cron(expr, tz="America/New_York").after(at("9999-12-28T12:00Z")), 20))
    assert told(found)[-1] == last


@pytest.mark.parametrize(
    ("expr", "words"),
    [
        ("0 0 * * *", "at 00:00 every day"),
        ("0,20 9,12 * * *", "at 09:00, 09:20, 12:00 and 12:20 every day"),
        ("0,20 9,12,15 * * *", "at minute 0 and 20 of hour 9, 12 and 15 every day"),
        ("5 */6 * * MON", "at 00:05, 06:05, 12:05 and 18:05 on Monday"),
        ("5 */4 * * MON", "at minute 5 of hour 0, 4, 8, 12, 16 and 20 on Monday"),
        ("* * * * *", "every minute of every hour"),
        ("0 9 1 * MON", "at 09:00 on the 1st or on Monday"),
        ("0 9 1-7 * */7", "at 09:00 on Sunday, if that is the 1st to 7th,"),
    ],
)
def test_an_expression_is_said_in_words_however_many_times_it_names(expr: str, words: str) -> None:
    assert cron(expr, tz="UTC").describe() == words


def test_an_interval_that_counts_from_within_a_second_says_so() -> None:
    rule = every(timedelta(hours=1), anchor=at("2026-03-01T09:00:00.5Z"))
    assert rule.describe() == "every hour from 2026-03-01 09:00:00.500000 UTC"
