"""When does a simple rule fire while its zone keeps one offset?

Most rules repeat by days or weeks, and in most fortnights no clock changes. Then every period is the same pattern of
distances, and the instants follow by addition. The tests hold this to what the general way finds.
"""

from __future__ import annotations

from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

from postdate.domain.recurrence.parts import Freq
from postdate.domain.recurrence.placing import next_change

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

    from postdate.domain.recurrence.parts import Parts

_WEEK = 7
_DAY = timedelta(days=1)
_YEAR = 365 * _DAY
_NEAR = timedelta(hours=26)
"""A change of the clocks moves no wall time further than this."""


def is_simple(parts: Parts, start: datetime) -> bool:
    """Whether all periods of a rule, of completed parts, are alike: days, or weeks, without a condition."""
    if parts.months or parts.positions or _days_into(parts, start) >= start.toordinal():  # begun before the calendar
        return False
    return parts.freq is Freq.WEEKLY or (parts.freq is Freq.DAILY and not parts.picks_days)


def nth_wall(parts: Parts, start: datetime, number: int) -> datetime:
    """Return which wall time of a simple rule is number `number`, from 1 on; the last one where the calendar ends."""
    begin, pattern = _begin(parts, start), _pattern(parts)
    passed = sum(begin + distance < start for distance in pattern)
    period, place = divmod(passed + number - 1, len(pattern))
    try:
        return begin + period * _length(parts) + pattern[place]
    except OverflowError:
        return datetime.max  # noqa: DTZ901 - a wall time has no zone


def steady(
    parts: Parts, start: datetime, offset: timedelta, *, lo: datetime, hi: datetime, last: datetime | None
) -> Iterator[datetime]:
    """Yield the instants (UTC) later than `lo`, up to `hi` and the wall time `last`, of a simple rule."""
    try:
        length, pattern = _length(parts), _pattern(parts)
        first = start.replace(tzinfo=UTC) - offset
        begin = _begin(parts, start).replace(tzinfo=UTC) - offset
        if last is not None:
            hi = min(hi, last.replace(tzinfo=UTC) - offset)
        begin += max(0, (lo - begin) // length) * length
        while begin <= hi:
            for distance in pattern:
                instant = begin + distance
                if instant > hi:
                    return
                if instant > lo and instant >= first:
                    yield instant
            begin += length
    except OverflowError:  # the calendar ends
        return


def steady_offset(zone: ZoneInfo, lo: datetime, hi: datetime) -> timedelta | None:
    """Return the offset that a zone keeps from a day before `lo` to a day after `hi`, or None if it changes.

    Windows of more than a year are not looked at.
    """
    fixed = zone.utcoffset(None)
    if fixed is not None:
        return fixed
    if hi - lo > _YEAR or not MINYEAR + 1 < lo.year <= hi.year < MAXYEAR - 1:
        return None
    lo, hi = lo - _NEAR, hi + _NEAR
    years = (lo.year,) if lo.year == hi.year else (lo.year, hi.year)
    if any(lo < change <= hi for year in years for change in _changes(zone, year)):
        return None
    return lo.astimezone(zone).utcoffset()


@lru_cache(maxsize=4096)
def _changes(zone: ZoneInfo, year: int) -> tuple[datetime, ...]:
    """Return when the clocks of a zone change within a year (UTC)."""
    found, at, end = [], datetime(year, 1, 1, tzinfo=UTC) - _DAY, datetime(year + 1, 1, 1, tzinfo=UTC)
    while (change := next_change(zone, at, end)) is not None:
        found.append(change)
        at = change
    return tuple(found)


def _length(parts: Parts) -> timedelta:
    return timedelta(days=parts.interval * (_WEEK if parts.freq is Freq.WEEKLY else 1))


def _begin(parts: Parts, start: datetime) -> datetime:
    """Return the midnight at which the period of the start begins."""
    return datetime.combine(start.date() - _days_into(parts, start) * _DAY, datetime.min.time())


def _days_into(parts: Parts, start: datetime) -> int:
    return (start.weekday() - parts.week_start) % _WEEK if parts.freq is Freq.WEEKLY else 0


def _pattern(parts: Parts) -> tuple[timedelta, ...]:
    """Return the distances from the begin of a period at which the rule fires, in their order."""
    days = sorted((day - parts.week_start) % _WEEK for _, day in parts.weekdays) or [0]
    return tuple(
        timedelta(days=day, hours=hour, minutes=minute, seconds=second)
        for day, hour, minute, second in product(days, parts.hours, parts.minutes, parts.seconds)
    )
