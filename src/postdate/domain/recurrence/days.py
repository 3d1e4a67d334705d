"""Which days of one year, or of one month, does a rule name?

dateutil answers, one period at a time, so that it never searches: the next period would lie beyond the calendar.
As a year is like any other that begins with the same weekday and is as long, a few answers serve all years.
"""

from __future__ import annotations

import calendar
from bisect import bisect_left
from datetime import date, datetime
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal

from dateutil import rrule as dateutil

if TYPE_CHECKING:
    from postdate.domain.recurrence.parts import Parts

CYCLE = 400
"""The Gregorian calendar repeats after so many years, weekdays included."""

LAST_DAY = date.max.toordinal()

_BEYOND = 12 * date.max.year  # periods: more than the calendar has from anywhere
_ANY_DAY = tuple(range(1, 32))
_WEEK = 7


def days_of_year(parts: Parts, year: int, *, since: int = 1) -> list[int]:
    """Return the ordinals, from `since` on, of the days of `year` that the rule names.

    Neither this nor `days_of_month` looks at the interval and the positions.
    """
    begin, offsets = _year(parts, year)
    return [begin + offset for offset in offsets[bisect_left(offsets, since - begin) :]]


def days_of_month(parts: Parts, year: int, month: int) -> list[int]:
    """Return the ordinals of the days of a month that the rule names."""
    begin = date(year, month, 1).toordinal()
    return [begin + offset for offset in _of_month(parts, _alike(*_kind(year)), month)]


def next_day(parts: Parts, ordinal: int) -> int | None:
    """Return the first day from `ordinal` on that the rule names, or None where it names no day at all."""
    first = date.fromordinal(ordinal).year
    for year in range(first, min(first + CYCLE, date.max.year) + 1):
        begin, offsets = _year(parts, year)
        place = bisect_left(offsets, ordinal - begin)
        if place < len(offsets):
            return begin + offsets[place]
    return None


def _year(parts: Parts, year: int) -> tuple[int, tuple[int, ...]]:
    """Return the ordinal of a year's first day, and how many days later those are that the rule names."""
    return date(year, 1, 1).toordinal(), _of_year(parts, _alike(*_kind(year)))


def _kind(year: int) -> tuple[int, ...]:
    """Return what decides on which days of a year weekdays and numbered weeks fall, those of its neighbours too."""
    return (date(year, 1, 1).weekday(), *(calendar.isleap(year + away) for away in (-1, 0, 1)))


@cache
def _alike(*kind: int) -> int:
    return next(year for year in range(2000, 2000 + CYCLE) if _kind(year) == kind)


@lru_cache(maxsize=2048)
def _of_year(parts: Parts, year: int) -> tuple[int, ...]:
    return _named(parts, dateutil.YEARLY, datetime(year, 1, 1))  # noqa: DTZ001 - days have no zone


@lru_cache(maxsize=2048)
def _of_month(parts: Parts, year: int, month: int) -> tuple[int, ...]:
    return _named(parts, dateutil.MONTHLY, datetime(year, month, 1))  # noqa: DTZ001


def _named(parts: Parts, freq: Literal[0, 1], first: datetime) -> tuple[int, ...]:
    # dateutil finds no day that is both "the first Monday" and "a Wednesday": the two are asked for apart
    counted = [dateutil.weekday(day, which) for which, day in parts.weekdays if which]
    plain = [dateutil.weekday(day) for which, day in parts.weekdays if not which]
    picked = parts.month_days or parts.year_days or parts.weekdays
    rules = [
        dateutil.rrule(
            freq,
            dtstart=first,
            interval=_BEYOND,
            wkst=parts.week_start,
            bymonth=parts.months or None,
            byyearday=parts.year_days or None,
            bymonthday=parts.month_days or (None if picked else _ANY_DAY),
            byweekday=weekdays or None,
            byhour=0,
            byminute=0,
            bysecond=0,
        )
        for weekdays in ([group for group in (counted, plain) if group] or [[]])
    ]
    days = {day for rule in rules for day in rule}
    if parts.week_numbers:  # dateutil counts the weeks of the year before wrongly where that is of another length
        days = {day for day in days if _week_numbers(day.date(), parts.week_start) & {*parts.week_numbers}}
    return tuple(sorted((day - first).days for day in days))


def _week_numbers(day: date, week_start: int) -> set[int]:
    """Return the number of a day's week, and that from the end, in the year that has most of the week's days."""
    begin = day.toordinal() - (day.weekday() - week_start) % _WEEK
    year = date.fromordinal(begin + _WEEK // 2).year
    first, following = _first_week(year, week_start), _first_week(year + 1, week_start)
    return {(begin - first) // _WEEK + 1, (begin - following) // _WEEK}


def _first_week(year: int, week_start: int) -> int:
    """Return the ordinal of the day with which the first week of a year begins: the one that holds 4 January."""
    fourth = date(year, 1, 4)
    return fourth.toordinal() - (fourth.weekday() - week_start) % _WEEK
