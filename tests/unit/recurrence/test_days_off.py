"""Is a day off left out by the clocks of its zone, however many instants fall on it?"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from postdate.domain.recurrence import every, rrule
from postdate.domain.recurrence.calendar_rule import RRule
from postdate.domain.recurrence.days_off import MOST_COUNTED, without_days_off

if TYPE_CHECKING:
    from collections.abc import Iterator

DAY = timedelta(days=1)
HALF_HOURS = every(timedelta(minutes=30), anchor=datetime(2000, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("zone", "off", "seen"),
    [
        ("America/Sao_Paulo", "2018-11-03", "which ends where clocks skip midnight"),
        ("America/Sao_Paulo", "2018-11-04", "which begins where clocks skip midnight"),
        ("America/Havana", "2018-11-03", "before clocks show midnight twice"),
        ("America/Havana", "2018-11-04", "on which clocks show midnight twice"),
        ("America/Sao_Paulo", "2018-02-17", "which clocks come back to from the next"),
        ("America/Sao_Paulo", "2018-02-18", "which clocks leave once more"),
        ("Pacific/Apia", "2011-12-29", "before a day that there was not"),
        ("Pacific/Apia", "2011-12-30", "that there was not"),
        ("Asia/Kathmandu", "2018-11-04", "of a zone with odd minutes"),
    ],
)
@pytest.mark.parametrize("most", [1, 3, 47, MOST_COUNTED])
def test_a_day_off_is_left_out_whole_and_nothing_else(
    zone: str, off: str, seen: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postdate.domain.recurrence.days_off.MOST_COUNTED", most)
    clocks, day = ZoneInfo(zone), date.fromisoformat(off)
    days = {day, day + 2 * DAY, day + 3 * DAY}
    lo = datetime(day.year, day.month, day.day, tzinfo=UTC) - 2 * DAY
    hi = lo + 8 * DAY
    left = without_days_off(HALF_HOURS.between, lo, hi, is_off=days.__contains__, zone=clocks)
    assert list(left) == [each for each in HALF_HOURS.between(lo, hi) if each.astimezone(clocks).date() not in days], (
        seen
    )


@pytest.mark.parametrize(("zone", "kept"), [("Pacific/Kiritimati", [*range(10, 24)]), ("Etc/GMT+12", [*range(12)])])
def test_where_the_calendar_ends_what_clocks_cannot_show_is_on_no_day(zone: str, kept: list[int]) -> None:
    last = date(9999, 12, 31)
    lo = datetime(9999, 12, 30, 23, 59, tzinfo=UTC)
    hours = every(timedelta(hours=1), anchor=datetime(2000, 1, 1, tzinfo=UTC))
    left = without_days_off(hours.between, lo, lo + DAY, is_off=last.__eq__, zone=ZoneInfo(zone))
    assert [each.hour for each in left] == kept


def test_years_of_days_off_are_not_counted_through() -> None:
    seconds = every(timedelta(seconds=1), anchor=datetime(2026, 1, 1, tzinfo=UTC))
    counted = 0

    def counting(lo: datetime, hi: datetime) -> Iterator[datetime]:
        nonlocal counted
        for each in seconds.between(lo, hi):
            counted += 1
            yield each

    found = without_days_off(
        counting, seconds.anchor, datetime(2099, 1, 1, tzinfo=UTC), is_off=lambda day: day.year < 2040, zone=UTC
    )
    assert next(found) == datetime(2040, 1, 1, tzinfo=UTC)
    assert counted == MOST_COUNTED + 1


@pytest.mark.parametrize("text", ["FREQ=SECONDLY", "FREQ=SECONDLY;UNTIL=20400101", "FREQ=MINUTELY;BYSECOND=1,2,3"])
def test_a_rule_whose_dates_leave_out_years_is_not_counted_through(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    repeated = RRule._repeated

    def counting(*args: Any) -> Iterator[datetime]:
        for number, each in enumerate(repeated(*args)):
            assert number <= MOST_COUNTED
            yield each

    monkeypatch.setattr(RRule, "_repeated", counting)
    first = date(2026, 1, 1)
    rule = rrule(text, start=first, tz="UTC", exdates=[first + number * DAY for number in range(1000)])
    ((found),) = rule.preview(1)
    assert found.date() == first + 1000 * DAY
