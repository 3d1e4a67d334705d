"""How is a cron expression said in English?"""

from __future__ import annotations

import calendar
from itertools import product
from typing import TYPE_CHECKING

from postdate.domain.recurrence.words import FEW, joined, nth

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_RUN = 3
_WEEK = 7
_MINUTES = range(60)
_HOURS = range(24)


def cron_in_words(plain: str) -> str:
    """Return what five plain fields say, such as `at 09:00 on Monday to Friday`."""
    minute, hour, day, month, weekday = plain.split()
    months = "" if month == "*" else f" in {_said(month, range(1, 13), _month)}"
    days = _days(day, weekday)
    if "*" in (minute, hour) or minute.startswith("*"):
        return _often(minute, hour) + days + months
    minutes, hours = _numbers(minute, _MINUTES), _numbers(hour, _HOURS)
    if len(minutes) * len(hours) > FEW:
        return _often(minute, hour) + (days or " every day") + months
    clocks = joined(f"{at:02}:{past:02}" for at, past in product(hours, minutes))
    return f"at {clocks}{days or ' every day'}{months}"


def _often(minute: str, hour: str) -> str:
    step = minute.removeprefix("*/")
    if minute == "*":
        said = "every minute"
    elif minute != step and step.isdigit() and len(_MINUTES) % int(step) == 0:
        said = f"every {step} minutes"
    else:
        said = f"at minute {_said(minute, _MINUTES, str)}"
    return f"{said} of {'every hour' if hour == '*' else f'hour {_said(hour, _HOURS, str)}'}"


def _days(day: str, weekday: str) -> str:
    of_month = f"the {_said(day, range(1, 32), nth)}" if day != "*" else ""
    of_week = _said(weekday, range(7), _weekday) if weekday != "*" else ""
    if of_month and of_week:
        if day.startswith("*") or weekday.startswith("*"):
            return f" on {of_week}, if that is {of_month},"
        return f" on {of_month} or on {of_week}"
    return f" on {of_month or of_week}" if of_month or of_week else ""


def _said(field: str, every: range, word: Callable[[int], str]) -> str:
    """Return the items of a field, numbers that follow one another as a range."""
    others = [_other(item) for item in field.split(",") if not item.isdigit() and not item.startswith("*")]
    return joined([*_ranges(_numbers(field, every), word), *others])


def _numbers(field: str, every: range) -> list[int]:
    found: set[int] = set()
    for item in field.split(","):
        if item.startswith("*"):
            found.update(every[:: int(item[2:] or 1)])
        elif item.isdigit():
            found.add(int(item))
    return sorted(found)


def _ranges(numbers: list[int], word: Callable[[int], str]) -> Iterator[str]:
    while numbers:
        run = [number for place, number in enumerate(numbers) if number == numbers[0] + place]
        if len(run) < _RUN:
            run = run[:1]
        yield word(run[0]) if len(run) == 1 else f"{word(run[0])} to {word(run[-1])}"
        numbers = numbers[len(run) :]


def _other(item: str) -> str:
    if item in {"L", "LW"}:
        return "last day" if item == "L" else "last working day"
    day, numbered, which = item.partition("#")
    return f"the {nth(int(which))} {_weekday(int(day))}" if numbered else f"the last {_weekday(int(item[:-1]))}"


def _month(number: int) -> str:
    return calendar.month_name[number]


def _weekday(number: int) -> str:
    return calendar.day_name[(number - 1) % _WEEK]
