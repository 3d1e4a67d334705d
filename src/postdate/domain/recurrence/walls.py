"""Which wall times does a rule name that repeats by days, weeks, months or years?

Periods are stepped over by arithmetic, from wherever somebody looks. The calendar repeats after 400 years, and with
it every pattern of periods: a rule that found nothing for so long never will.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, time
from functools import lru_cache
from itertools import product
from math import gcd
from typing import TYPE_CHECKING

from postdate.domain.recurrence.days import CYCLE, LAST_DAY, days_of_month, days_of_year, next_day
from postdate.domain.recurrence.parts import Freq, Parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MONTHS = 12
_WEEK = 7
_DAYS_IN_CYCLE = 146_097


def completed(parts: Parts, start: datetime) -> Parts:
    """Return the parts with what the text left open taken from the start (RFC 5545, 3.3.10)."""
    if parts.freq >= Freq.HOURLY:
        return parts
    by_date = not parts.picks_days
    month = start.month if by_date and parts.freq is Freq.YEARLY else 0
    day = start.day if by_date and parts.freq <= Freq.MONTHLY else 0
    weekday = start.weekday() if not parts.weekdays else 0
    return _completed(parts, month, day, weekday=weekday, at=start.time())


@lru_cache(maxsize=4096)
def _completed(parts: Parts, month: int, day: int, *, weekday: int, at: time) -> Parts:
    """Return the same: many rules are alike but for when they began, and their parts are then one object."""
    found: dict[str, object] = {}
    match parts.freq:
        case Freq.YEARLY if not parts.picks_days:
            found |= {"months": parts.months or (month,), "month_days": (day,)}
        case Freq.YEARLY if parts.week_numbers and not (parts.year_days or parts.month_days or parts.weekdays):
            found["weekdays"] = ((0, weekday),)
        case Freq.MONTHLY if not parts.picks_days:
            found["month_days"] = (day,)
        case Freq.WEEKLY if not parts.weekdays:
            found["weekdays"] = ((0, weekday),)
        case Freq.DAILY if parts.weekdays and parts.interval == 1 and not (parts.month_days or parts.positions):
            found["freq"] = Freq.WEEKLY  # the same days, told as a pattern
        case _:
            pass
    if not (parts.hours and parts.minutes and parts.seconds):
        found["hours"] = parts.hours or (at.hour,)
        found["minutes"] = parts.minutes or (at.minute,)
        found["seconds"] = parts.seconds or (at.second,)
    return replace(parts, **found)  # type: ignore[arg-type] # each is what its field takes


def walls(parts: Parts, start: datetime, *, since: datetime, last: datetime) -> Iterator[datetime]:
    """Yield the wall times of a rule of `completed` parts from `start` and `since` on, up to `last`; naive, rising."""
    floor = max(start, since)
    times = [time(*clock) for clock in product(parts.hours, parts.minutes, parts.seconds)]
    most = len(parts.weekdays) if parts.freq is Freq.WEEKLY else _MOST_DAYS[parts.freq]
    if parts.positions and min(map(abs, parts.positions)) > most * len(times):
        return
    cycle = _CYCLES[parts.freq] // gcd(_CYCLES[parts.freq], parts.interval)
    barren = 0
    for days in _PERIODS[parts.freq](parts, start.date(), floor.date().toordinal(), last.date().toordinal()):
        barren += 1
        for wall in _at_positions(days, times, parts.positions) if parts.positions else _each(days, times):
            barren = 0
            if wall > last:
                return
            if wall >= floor:
                yield wall
        if barren > cycle:
            return


def _each(days: Sequence[int], times: Sequence[time]) -> Iterator[datetime]:
    for day in days:
        on = date.fromordinal(day)
        for at in times:
            yield datetime.combine(on, at)


def _at_positions(days: Sequence[int], times: Sequence[time], positions: Sequence[int]) -> Iterator[datetime]:
    """Yield what stands at the positions of all the wall times of a period, counted from 1 or, back, from -1."""
    many = len(days) * len(times)
    places = {position - 1 if position > 0 else many + position for position in positions}
    for place in sorted(places):
        if 0 <= place < many:
            day, at = divmod(place, len(times))
            yield datetime.combine(date.fromordinal(days[day]), times[at])


def _first_step(begin: int, since: int, interval: int) -> int:
    """Return the last of begin, begin + interval, ... that is not beyond `since`, or `begin`."""
    return begin + max(0, since - begin) // interval * interval


def _years(parts: Parts, start: date, since: int, last: int) -> Iterator[list[int]]:
    first = _first_step(start.year, date.fromordinal(since).year, parts.interval)
    for year in range(first, date.fromordinal(last).year + 1, parts.interval):
        yield days_of_year(parts, year)


def _months(parts: Parts, start: date, since: int, last: int) -> Iterator[list[int]]:
    first = _first_step(_month_number(start), _month_number(date.fromordinal(since)), parts.interval)
    for number in range(first, _month_number(date.fromordinal(last)) + 1, parts.interval):
        year, month = divmod(number, _MONTHS)
        yield days_of_month(parts, year, month + 1)


def _month_number(day: date) -> int:
    return day.year * _MONTHS + day.month - 1


def _weeks(parts: Parts, start: date, since: int, last: int) -> Iterator[list[int]]:
    begin = start.toordinal() - (start.weekday() - parts.week_start) % _WEEK
    offsets = sorted((day - parts.week_start) % _WEEK for _, day in parts.weekdays)
    for week in range(_first_step(begin, since, parts.interval * _WEEK), last + 1, parts.interval * _WEEK):
        days = [week + offset for offset in offsets if 1 <= week + offset <= LAST_DAY]
        if parts.months:
            days = [day for day in days if date.fromordinal(day).month in parts.months]
        yield days


def _days(parts: Parts, start: date, since: int, last: int) -> Iterator[list[int]]:
    begin = start.toordinal()
    if not (parts.months or parts.picks_days):
        for day in range(_first_step(begin, since, parts.interval), last + 1, parts.interval):
            yield [day]
        return
    if next_day(parts, since) is None:
        return
    cycle = CYCLE * parts.interval // gcd(_DAYS_IN_CYCLE, parts.interval)
    found = first = date.fromordinal(since).year
    for year in range(first, date.fromordinal(last).year + 1):
        fitting = [day for day in days_of_year(parts, year, since=since) if not (day - begin) % parts.interval]
        if fitting:
            found = year
        elif year - found > cycle:
            return
        yield from ([day] for day in fitting)


_PERIODS = {Freq.YEARLY: _years, Freq.MONTHLY: _months, Freq.WEEKLY: _weeks, Freq.DAILY: _days}
_MOST_DAYS = {Freq.YEARLY: 366, Freq.MONTHLY: 31, Freq.DAILY: 1}
_CYCLES = {
    Freq.YEARLY: CYCLE,
    Freq.MONTHLY: CYCLE * _MONTHS,
    Freq.WEEKLY: _DAYS_IN_CYCLE // _WEEK,
    Freq.DAILY: _DAYS_IN_CYCLE,
}
