"""What do the five fields of a cron expression say, and which text is none?

Every field is read here, strictly, and written anew for cronsim: plain numbers, beside the stars that cron takes
account of and the forms for last and numbered days.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

from postdate.errors import InvalidRule

MAX_TEXT = 500

ALIASES = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
}

_ODD = re.compile(r"[^\x20-\x7e\t]")
_ITEM = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d{1,4}))?", re.ASCII)
_NUMBER = re.compile(r"\d{1,2}", re.ASCII)
_LAST_WEEKDAY = re.compile(r"(\w+)L", re.ASCII)
_NUMBERED_WEEKDAY = re.compile(r"(\w+)#([1-5])", re.ASCII)
_LONGEST_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, kw_only=True)
class _Field:
    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()  # of the numbers from `least` on


_MINUTE = _Field(name="minute", least=0, most=59)
_HOUR = _Field(name="hour", least=0, most=23)
_DAY = _Field(name="day of month", least=1, most=31)
_MONTH = _Field(
    name="month",
    least=1,
    most=12,
    names=("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"),
)
_WEEKDAY = _Field(name="day of week", least=0, most=7, names=("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))
_FIELDS = (_MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY)


@dataclass(frozen=True, kw_only=True)
class Crontab:
    """A cron expression as cronsim is to read it."""

    plain: str

    @property
    def by_wall(self) -> bool:
        """Whether it fires at fixed times of the day, which cron treats specially where clocks change."""
        minute, hour = self.plain.split()[:2]
        return not (minute.startswith("*") or hour.startswith("*"))


def crontab(text: str) -> Crontab:
    """Return what a cron expression, or an alias such as `@daily`, says. Case does not matter.

    Raises `InvalidRule`, which names the field.
    """
    if not isinstance(text, str):
        _refuse("text", "must be text", text)
    if not 1 <= len(text) <= MAX_TEXT:
        _refuse("text", f"must have 1 to {MAX_TEXT} characters", text)
    return _read(text)


@lru_cache(maxsize=2048)
def _read(text: str) -> Crontab:
    if _ODD.search(text):
        _refuse("text", "must be printable ASCII on one line", text)
    upper = " ".join(text.upper().split())
    if upper.startswith("@") and upper not in ALIASES:
        _refuse("text", f"must be five fields or one of {', '.join(ALIASES).lower()}", text)
    fields = ALIASES.get(upper, upper).split(" ")
    if len(fields) != len(_FIELDS):
        _refuse("text", "must have five fields: minute, hour, day of month, month, day of week", text)
    plain = [_plain(field, value) for field, value in zip(_FIELDS, fields, strict=True)]
    _check_days(*plain[2:])
    return Crontab(plain=" ".join(plain))


def _refuse(part: str, why: str, value: object) -> NoReturn:
    raise InvalidRule("cron", part=part, why=why, value=value)


def _plain(field: _Field, value: str) -> str:
    return ",".join(_plain_item(field, item) for item in value.split(","))


def _plain_item(field: _Field, item: str) -> str:
    if field is _DAY and item in {"L", "LW"}:
        return item
    if field is _WEEKDAY:
        last, numbered = _LAST_WEEKDAY.fullmatch(item), _NUMBERED_WEEKDAY.fullmatch(item)
        if last:
            return f"{_number(field, last[1])}L"
        if numbered:
            return f"{_number(field, numbered[1])}#{numbered[2]}"
    form = _ITEM.fullmatch(item)
    if form is None:
        _refuse(field.name, "must be numbers, names, ranges, or * with or without a step", item)
    star, first, last_one, step = form.groups()
    many = field.most - field.least + 1
    if step is not None and not 1 <= int(step) <= many:
        _refuse(field.name, f"must have a step from 1 to {many}", item)
    if star:
        return item
    low = _number(field, first)
    high = _number(field, last_one) if last_one else field.most if step else low
    if high < low:
        _refuse(field.name, "must have ranges that rise", item)
    return ",".join(map(str, range(low, high + 1, int(step or 1))))


def _number(field: _Field, text: str) -> int:
    if text in field.names:
        return field.names.index(text) + field.least
    if not _NUMBER.fullmatch(text) or not field.least <= int(text) <= field.most:
        names = f" or {field.names[0]} to {field.names[-1]}" if field.names else ""
        _refuse(field.name, f"must be {field.least} to {field.most}{names}", text)
    return int(text)


def _check_days(days: str, months: str, weekdays: str) -> None:
    """Refuse days that none of the months has, where no weekday may stand in for them."""
    if not weekdays.startswith("*") or set("*L") & {*days, *months}:
        return
    longest = max(_LONGEST_MONTHS[int(month) - 1] for month in months.split(","))
    if min(map(int, days.split(","))) > longest:
        _refuse(_DAY.name, "must be a day that one of the months has", days)
