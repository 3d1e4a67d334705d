"""How is a recurrence rule said in English?"""

from __future__ import annotations

import calendar
from datetime import datetime, time
from itertools import product
from typing import TYPE_CHECKING

from postdate.domain.recurrence.parts import Freq

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from postdate.domain.recurrence.parts import Parts, Until

_PERIOD = {
    Freq.YEARLY: "year",
    Freq.MONTHLY: "month",
    Freq.WEEKLY: "week",
    Freq.DAILY: "day",
    Freq.HOURLY: "hour",
    Freq.MINUTELY: "minute",
    Freq.SECONDLY: "second",
}
FEW = 4
"""So many times of the day are told one by one."""

_WORKING_WEEK = tuple((0, day) for day in range(5))


def rrule_in_words(parts: Parts, start: datetime, *, left_out: int = 0, added: int = 0) -> str:
    """Return what the parts (completed from the start) say, such as `every Tuesday at 09:00, 12 times`."""
    said = f"{_how_often(parts)}{_at(parts)}"
    if parts.positions:
        said += f", of these the {_listed(parts.positions)} in each {_PERIOD[parts.freq]}"
    if parts.count is not None:
        said += ", once" if parts.count == 1 else f", {parts.count} times"
    if parts.until is not None:
        said += f", until {_until(parts.until)}"
    if parts.freq >= Freq.HOURLY:
        said += f", from {start.isoformat(' ', 'seconds' if start.second else 'minutes')}"
    if left_out:
        said += f", but not on {_many(left_out)}"
    if added:
        said += f", and on {_many(added)} more"
    return said


def _many(dates: int) -> str:
    return "1 date" if dates == 1 else f"{dates} dates"


def _how_often(parts: Parts) -> str:
    simple = parts.interval == 1 and not parts.months
    if parts.freq is Freq.WEEKLY and simple:
        return f"every {_days(parts.weekdays)}"
    once = parts.interval == 1
    said = f"every {_PERIOD[parts.freq]}" if once else f"every {parts.interval} {_PERIOD[parts.freq]}s"
    if len(parts.months) == 1 and len(parts.month_days) == 1 and not parts.weekdays and parts.month_days[0] > 0:
        return f"{said} on {parts.month_days[0]} {calendar.month_name[parts.months[0]]}{_numbered(parts)}"
    if parts.weekdays:
        said += f" on {_days(parts.weekdays)}"
    if parts.month_days:
        days = f"the {_listed(parts.month_days, 'or' if parts.weekdays else 'and')}"
        said += f", if that is {days}" if parts.weekdays else f" on {days}"
    if parts.months:
        said += f" in {joined(calendar.month_name[month] for month in parts.months)}"
    return said + _numbered(parts)


def _numbered(parts: Parts) -> str:
    said = ""
    if parts.week_numbers:
        said += f" in the {_listed(parts.week_numbers)} week"
    if parts.year_days:
        said += f" on the {_listed(parts.year_days)} day of the year"
    return said


def _at(parts: Parts) -> str:
    if parts.freq < Freq.HOURLY and len(parts.hours) * len(parts.minutes) * len(parts.seconds) <= FEW:
        clocks = (time(*clock) for clock in product(parts.hours, parts.minutes, parts.seconds))
        return f" at {joined(clock.isoformat('seconds' if clock.second else 'minutes') for clock in clocks)}"
    named = (("hour", parts.hours), ("minute", parts.minutes), ("second", parts.seconds))
    said = [f"{unit} {joined(map(str, numbers))}" for unit, numbers in named if numbers and numbers != (0,)]
    return f" at {', '.join(said)}" if said else ""


def _until(until: Until) -> str:
    if not isinstance(until, datetime):
        return until.isoformat()
    precision = "seconds" if until.second else "minutes"
    return until.replace(tzinfo=None).isoformat(" ", precision) + (" UTC" if until.tzinfo else "")


def _days(weekdays: tuple[tuple[int, int], ...]) -> str:
    if weekdays == _WORKING_WEEK:
        return "Monday to Friday"
    return joined(_day(which, day) for which, day in weekdays)


def _day(which: int, day: int) -> str:
    return f"the {nth(which)} {calendar.day_name[day]}" if which else calendar.day_name[day]


def _listed(numbers: Iterable[int], link: str = "and") -> str:
    return joined(map(nth, sorted(numbers, key=lambda number: (number < 0, number))), link)


def nth(number: int) -> str:
    """Return `2nd` for 2, `last` for -1 and `2nd to last` for -2."""
    if number == -1:
        return "last"
    if number < 0:
        return f"{nth(-number)} to last"
    ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def joined(words: Iterable[str], link: str = "and") -> str:
    """Return `a`, `a and b` or `a, b and c`."""
    listed: Sequence[str] = list(words)
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} {link} {listed[-1]}"
