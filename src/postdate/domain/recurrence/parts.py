"""What does the text of an RRULE say, and which text is none?

RFC 5545, 3.3.10, part by part: what is not listed here is refused by name before any library sees it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import IntEnum
from functools import cached_property, lru_cache
from itertools import product
from typing import TYPE_CHECKING, NoReturn

from postdate.errors import InvalidRule

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_TEXT = 4000
MAX_COUNT = 100_000
MAX_COUNTED = 10_000  # where occurrences can only be counted one by one
MAX_INTERVAL = 999_999_999

_SHOWN = 20
_WEEK = 7

WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")

_ODD = re.compile(r"[^\x21-\x7e]")
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
_SIGNED = re.compile(r"[+-]?\d{1,3}", re.ASCII)
_BYDAY = re.compile(rf"([+-]?\d{{1,2}})?({'|'.join(WEEKDAYS)})", re.ASCII)
_UNTIL = re.compile(r"(\d{8})(?:T(\d{6})(Z?))?", re.ASCII)


class Freq(IntEnum):
    """How long the period is that a rule repeats; the numbers are dateutil's."""

    YEARLY = 0
    MONTHLY = 1
    WEEKLY = 2
    DAILY = 3
    HOURLY = 4
    MINUTELY = 5
    SECONDLY = 6


Until = date | datetime
"""The last local day, the last wall time (naive) or the last instant (aware)."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """An RRULE taken apart. Lists are sorted, without repetition, and empty where the text has no such part."""

    freq: Freq
    interval: int = 1
    count: int | None = None
    until: Until | None = None
    week_start: int = 0  # weekdays count from Monday
    months: tuple[int, ...] = ()
    week_numbers: tuple[int, ...] = ()
    year_days: tuple[int, ...] = ()
    month_days: tuple[int, ...] = ()
    weekdays: tuple[tuple[int, int], ...] = ()  # which one in its period, 0 for each; and the weekday
    hours: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()
    seconds: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()

    def __hash__(self) -> int:
        """Return a hash that is computed once: parts are the key under which days are remembered."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.freq, self.until, self.weekdays, self.months, self.month_days, self.hours, self.minutes))

    @property
    def is_endless(self) -> bool:
        """Whether it names no end, by COUNT or UNTIL."""
        return self.count is None and self.until is None

    @cached_property
    def is_alike(self) -> bool:
        """Whether all its periods are alike: days, or weeks, without a condition."""
        if self.months or self.positions:
            return False
        return self.freq is Freq.WEEKLY or (self.freq is Freq.DAILY and not self.picks_days)

    @cached_property
    def period(self) -> timedelta:
        """How long the periods are of a rule that repeats by days or weeks."""
        return timedelta(days=self.interval * (_WEEK if self.freq is Freq.WEEKLY else 1))

    @cached_property
    def pattern(self) -> tuple[timedelta, ...]:
        """At which distances from the begin of a period it fires, in their order, where all periods are alike."""
        days = sorted((day - self.week_start) % _WEEK for _, day in self.weekdays) or [0]
        return tuple(
            timedelta(days=day, hours=hour, minutes=minute, seconds=second)
            for day, hour, minute, second in product(days, self.hours, self.minutes, self.seconds)
        )

    @property
    def picks_days(self) -> bool:
        """Whether it says on which days of its period it fires, the month apart."""
        return bool(self.week_numbers or self.year_days or self.month_days or self.weekdays)


def parts(text: str) -> Parts:
    """Return what `text`, with or without `RRULE:` before it, says. Case does not matter.

    Raises `InvalidRule`, which names the part.
    """
    if not isinstance(text, str):
        _refuse("text", "must be text", text)
    if not 1 <= len(text) <= MAX_TEXT:
        _refuse("text", f"must have 1 to {MAX_TEXT} characters", text)
    return _read(text)


@lru_cache(maxsize=2048)
def _read(text: str) -> Parts:
    given = _split(text)
    if "FREQ" not in given:
        _refuse("FREQ", "is missing")
    found = {_FIELDS[name]: _READERS[name](name, value) for name, value in given.items()}
    said = Parts(**found)  # type: ignore[arg-type] # each reader answers what its field takes
    _check_together(said, given)
    return said


def _refuse(part: str, why: str, value: object = None) -> NoReturn:
    raise InvalidRule("rrule", part=part, why=why, value=value)


def _split(text: str) -> dict[str, str]:
    if _ODD.search(text):
        _refuse("text", "must be printable ASCII without blanks and line breaks", text)
    given: dict[str, str] = {}
    for pair in text.upper().removeprefix("RRULE:").split(";"):
        name, sign, value = pair.partition("=")
        if not sign or not value:
            _refuse("text", "must be NAME=VALUE parts with a semicolon between them", pair)
        if name not in _READERS:
            _refuse(name[:_SHOWN], f"is not a part of a rule: those are {', '.join(_READERS)}")
        if name in given:
            _refuse(name, "must be given once", value)
        given[name] = value
    return given


def _freq(name: str, value: str) -> Freq:
    if value not in Freq.__members__:
        _refuse(name, f"must be one of {', '.join(Freq.__members__)}", value)
    return Freq[value]


def _week_start(name: str, value: str) -> int:
    if value not in WEEKDAYS:
        _refuse(name, f"must be one of {', '.join(WEEKDAYS)}", value)
    return WEEKDAYS.index(value)


def _until(name: str, value: str) -> Until:
    form = _UNTIL.fullmatch(value)
    if form is None:
        _refuse(name, "must have the form YYYYMMDD, YYYYMMDDTHHMMSS or YYYYMMDDTHHMMSSZ", value)
    try:
        if form[2] is None:
            return date.fromisoformat(form[1])
        last = datetime.fromisoformat(f"{form[1]}T{form[2]}")
    except ValueError:
        _refuse(name, "must be a day of the calendar and a time of the day", value)
    return last.replace(tzinfo=UTC) if form[3] else last


def _whole(most: int) -> Callable[[str, str], int]:
    def read(name: str, value: str) -> int:
        if not _NUMBER.fullmatch(value) or not 1 <= int(value) <= most:
            _refuse(name, f"must be a whole number from 1 to {most}", value)
        return int(value)

    return read


def _numbers(least: int, most: int, *, signed: bool = False) -> Callable[[str, str], tuple[int, ...]]:
    allowed = f"whole numbers from {least} to {most}" + (f" or from -{most} to -{least}" if signed else "")
    form = _SIGNED if signed else _NUMBER

    def read(name: str, value: str) -> tuple[int, ...]:
        found = set()
        for item in value.split(","):
            if not form.fullmatch(item) or not least <= (abs(int(item)) if signed else int(item)) <= most:
                _refuse(name, f"must be {allowed}", item)
            found.add(int(item))
        return tuple(sorted(found))

    return read


def _weekdays(name: str, value: str) -> tuple[tuple[int, int], ...]:
    found = set()
    for item in value.split(","):
        form = _BYDAY.fullmatch(item)
        if form is None:
            _refuse(name, f"must be weekdays ({', '.join(WEEKDAYS)}), each with or without a number before it", item)
        which = int(form[1]) if form[1] else 0
        if form[1] and not 1 <= abs(which) <= _WEEKS:
            _refuse(name, f"must count weekdays from 1 to {_WEEKS} or from -{_WEEKS} to -1", item)
        found.add((which, WEEKDAYS.index(form[2])))
    return tuple(sorted(found))


_WEEKS = 53
_READERS: dict[str, Callable[[str, str], object]] = {
    "FREQ": _freq,
    "INTERVAL": _whole(MAX_INTERVAL),
    "COUNT": _whole(MAX_COUNT),
    "UNTIL": _until,
    "WKST": _week_start,
    "BYMONTH": _numbers(1, 12),
    "BYWEEKNO": _numbers(1, _WEEKS, signed=True),
    "BYYEARDAY": _numbers(1, 366, signed=True),
    "BYMONTHDAY": _numbers(1, 31, signed=True),
    "BYDAY": _weekdays,
    "BYHOUR": _numbers(0, 23),
    "BYMINUTE": _numbers(0, 59),
    "BYSECOND": _numbers(0, 59),
    "BYSETPOS": _numbers(1, 366, signed=True),
}
_FIELDS = {
    "FREQ": "freq",
    "INTERVAL": "interval",
    "COUNT": "count",
    "UNTIL": "until",
    "WKST": "week_start",
    "BYMONTH": "months",
    "BYWEEKNO": "week_numbers",
    "BYYEARDAY": "year_days",
    "BYMONTHDAY": "month_days",
    "BYDAY": "weekdays",
    "BYHOUR": "hours",
    "BYMINUTE": "minutes",
    "BYSECOND": "seconds",
    "BYSETPOS": "positions",
}
_BY = {name for name in _READERS if name.startswith("BY")}
_FORBIDDEN = {  # the combinations that RFC 5545's table marks N/A
    "BYWEEKNO": tuple(freq for freq in Freq if freq is not Freq.YEARLY),
    "BYYEARDAY": (Freq.MONTHLY, Freq.WEEKLY, Freq.DAILY),
    "BYMONTHDAY": (Freq.WEEKLY,),
}


def _check_together(said: Parts, given: dict[str, str]) -> None:
    if said.count is not None and said.until is not None:
        _refuse("COUNT", "must not be given together with UNTIL", given["COUNT"])
    for name, freqs in _FORBIDDEN.items():
        if name in given and said.freq in freqs:
            _refuse(name, f"has no meaning in a {said.freq.name} rule (RFC 5545, 3.3.10)", given[name])
    if any(which for which, _ in said.weekdays):
        if said.freq not in {Freq.YEARLY, Freq.MONTHLY}:
            _refuse("BYDAY", f"must not count weekdays in a {said.freq.name} rule", given["BYDAY"])
        if said.week_numbers:
            _refuse("BYDAY", "must not count weekdays beside BYWEEKNO", given["BYDAY"])
    if said.freq >= Freq.HOURLY and (said.count or 0) > MAX_COUNTED and _BY & given.keys():
        _refuse("COUNT", f"must be at most {MAX_COUNTED} beside BY parts in a {said.freq.name} rule", given["COUNT"])
    if said.positions and not _BY & given.keys() - {"BYSETPOS"}:
        _refuse("BYSETPOS", "must have another BY part to choose from", given["BYSETPOS"])
