"""When does a simple rule fire while its zone keeps one offset?

Most rules repeat by days or weeks, and in most fortnights no clock changes. Then every period is the same pattern of
distances, and the instants follow by addition. The tests hold this to what the general way finds.
"""

from __future__ import annotations

from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from postdate.domain.recurrence.parts import Freq
from postdate.domain.recurrence.placing import FURTHEST, next_change
from postdate.domain.recurrence.seconds import HOUR, MINUTE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

    from postdate.domain.recurrence.parts import Parts

_WEEK = 7
_DAY = timedelta(days=1)
_YEAR = 365 * _DAY


def is_simple(parts: Parts, start: datetime) -> bool:
    """Whether all periods of a rule, of completed parts, are alike, and the first one lies within the calendar."""
    return parts.is_alike and _days_into(parts, start) < start.toordinal()


def nth_wall(parts: Parts, start: datetime, number: int) -> datetime:
    """Return which wall time of a simple rule is number `number`, from 1 on; the last one where the calendar ends."""
    begin = start - _into(parts, start)
    passed = sum(begin + distance < start for distance in parts.pattern)
    period, place = divmod(passed + number - 1, len(parts.pattern))
    try:
        return begin + period * parts.period + parts.pattern[place]
    except OverflowError:
        return datetime.max  # noqa: DTZ901 - a wall time has no zone


def steady(
    parts: Parts, start: datetime, offset: timedelta, *, lo: datetime, hi: datetime, last: datetime | None
) -> Iterator[datetime]:
    """Yield the instants (UTC) later than `lo`, up to `hi` and the wall time `last`, of a simple rule."""
    try:
        length, pattern = parts.period, parts.pattern
        first = start.replace(tzinfo=UTC) - offset
        begin = first - _into(parts, start)
        if last is not None:
            hi = min(hi, last.replace(tzinfo=UTC) - offset)
        if lo > begin:
            begin += (lo - begin) // length * length
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
    lo, hi = lo - FURTHEST, hi + FURTHEST
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


def _into(parts: Parts, start: datetime) -> timedelta:
    """Return how long before the start the period began in which it lies: at midnight."""
    return timedelta(_days_into(parts, start), start.hour * HOUR + start.minute * MINUTE + start.second)


def _days_into(parts: Parts, start: datetime) -> int:
    return (start.weekday() - parts.week_start) % _WEEK if parts.freq is Freq.WEEKLY else 0
