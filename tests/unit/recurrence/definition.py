"""When does an RRULE fire by the letter of its definition? Found by looking at every day, or period, one by one."""

from __future__ import annotations

import calendar
from datetime import date, datetime, time, timedelta
from itertools import groupby, product
from typing import TYPE_CHECKING

from postdate.domain.recurrence.parts import Freq, Parts, parts
from postdate.domain.walltime import resolve
from postdate.domain.zones import zone
from postdate.errors import InvalidWallTime

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from postdate.domain.walltime import Fold, Gap

DAY = timedelta(days=1)
UNITS = {Freq.HOURLY: 3600, Freq.MINUTELY: 60, Freq.SECONDLY: 1}


def fired(text: str, start: datetime, tz: str, *, until: datetime, gap: Gap, fold: Fold) -> list[datetime]:
    """Return the instants (UTC) of a rule from its start up to `until`."""
    said = parts(text)
    if said.freq >= Freq.HOURLY:
        instants = list(_stepped(said, start, tz, until=until, fold=fold))
    else:
        walls = _named(said, start, (until + 2 * DAY).date())
        found = [_placed(wall, tz, gap, fold) for wall in walls]
        instants = [instant for instant in found if instant is not None]
    kept = instants[: said.count]
    return sorted({instant for instant in kept if instant <= until})


def _placed(wall: datetime, tz: str, gap: Gap, fold: Fold) -> datetime | None:
    try:
        return resolve(wall, tz, gap=gap, fold=fold)
    except InvalidWallTime:
        return None


def _named(said: Parts, start: datetime, last: date) -> Iterator[datetime]:
    first = date(start.year, 1, 1) - 7 * DAY
    days = [first + number * DAY for number in range((date(last.year, 12, 31) - first).days + 8)]
    origin = _period(said, start.date())
    for period, within in groupby(days, key=lambda day: _period(said, day)):
        if period < origin or (period - origin) % said.interval:
            continue
        fitting = [day for day in within if _fits(said, start, day)]
        clocks = product(said.hours or (start.hour,), said.minutes or (start.minute,), said.seconds or (start.second,))
        times = [time(*clock) for clock in clocks]
        walls = [datetime.combine(day, at) for day in fitting for at in times]
        yield from (wall for wall in _at_positions(walls, said.positions) if start <= wall and wall.date() <= last)


def _at_positions(items: Sequence[datetime], positions: tuple[int, ...]) -> list[datetime]:
    if not positions:
        return list(items)
    return [item for place, item in enumerate(items) if place + 1 in positions or place - len(items) in positions]


def _period(said: Parts, day: date) -> int:
    match said.freq:
        case Freq.YEARLY:
            return day.year
        case Freq.MONTHLY:
            return day.year * 12 + day.month
        case Freq.WEEKLY:
            return (day.toordinal() - 1 - said.week_start) // 7  # the calendar begins with a Monday
        case _:
            return day.toordinal()


def _fits(said: Parts, start: datetime, day: date) -> bool:
    picked = said.picks_days
    if said.months and day.month not in said.months:
        return False
    if said.freq is Freq.YEARLY and not picked and not said.months and day.month != start.month:
        return False
    if said.freq in {Freq.YEARLY, Freq.MONTHLY} and not picked and day.day != start.day:
        return False
    only_weeks = said.week_numbers and not (said.year_days or said.month_days or said.weekdays)
    if ((said.freq is Freq.WEEKLY and not said.weekdays) or only_weeks) and day.weekday() != start.weekday():
        return False
    return _fits_numbers(said, day) and (not said.weekdays or any(_is(said, day, *which) for which in said.weekdays))


def _fits_numbers(said: Parts, day: date) -> bool:
    in_month, in_year = calendar.monthrange(day.year, day.month)[1], 366 if calendar.isleap(day.year) else 365
    number = (day - date(day.year, 1, 1)).days + 1
    if said.month_days and not {day.day, day.day - in_month - 1} & {*said.month_days}:
        return False
    if said.year_days and not {number, number - in_year - 1} & {*said.year_days}:
        return False
    return not said.week_numbers or bool({*_week(day, said.week_start)} & {*said.week_numbers})


def _week(day: date, week_start: int) -> tuple[int, int]:
    """Return the number of a day's week in the year that has most of its days, from the begin and from the end."""
    begin = day - (day.weekday() - week_start) % 7 * DAY
    year = (begin + 3 * DAY).year
    first, following = (_first_week(year, week_start), _first_week(year + 1, week_start))
    number = (begin - first).days // 7 + 1
    return number, number - (following - first).days // 7 - 1


def _first_week(year: int, week_start: int) -> date:
    fourth = date(year, 1, 4)
    return fourth - (fourth.weekday() - week_start) % 7 * DAY


def _is(said: Parts, day: date, which: int, weekday: int) -> bool:
    if day.weekday() != weekday:
        return False
    if not which:
        return True
    if said.freq is Freq.MONTHLY or said.months:
        first, last = 1, calendar.monthrange(day.year, day.month)[1]
        begin, end = day.replace(day=first), day.replace(day=last)
    else:
        begin, end = date(day.year, 1, 1), date(day.year, 12, 31)
    return which in {(day - begin).days // 7 + 1, -((end - day).days // 7) - 1}


def _stepped(said: Parts, start: datetime, tz: str, *, until: datetime, fold: Fold) -> Iterator[datetime]:
    """Step through the periods in elapsed time, and through the seconds of each that clocks may name."""
    unit, rules = UNITS[said.freq], zone(tz)
    anchor = resolve(start, tz, fold=fold)
    minutes, seconds = said.minutes or (start.minute,), said.seconds or (start.second,)
    expands = (said.freq is Freq.HOURLY and said.minutes) or (said.freq < Freq.SECONDLY and said.seconds)
    shown = anchor.astimezone(rules)
    into = (shown.minute * 60 + shown.second) % unit if expands else 0
    begin = anchor - timedelta(seconds=into)
    # zones move by whole minutes here, so that only these seconds of a period can be named
    within = [minute * 60 + second for minute in range(unit // 60) for second in seconds] if expands else [0]
    while begin <= until:
        found = []
        for instant in (begin + timedelta(seconds=second) for second in within):
            wall = instant.astimezone(rules).replace(tzinfo=None)
            named = not expands or said.freq is Freq.MINUTELY or wall.minute in minutes
            if named and _fits_clock(said, wall) and _fits_day(said, wall.date()):
                found.append(instant)
        yield from (instant for instant in _at_positions(found, said.positions) if instant >= anchor)
        begin += timedelta(seconds=unit * said.interval)


def _fits_clock(said: Parts, wall: datetime) -> bool:
    named = ((said.hours, wall.hour), (said.minutes, wall.minute), (said.seconds, wall.second))
    return all(not numbers or number in numbers for numbers, number in named)


def _fits_day(said: Parts, day: date) -> bool:
    if said.months and day.month not in said.months:
        return False
    return _fits_numbers(said, day) and (not said.weekdays or any(_is(said, day, *which) for which in said.weekdays))
