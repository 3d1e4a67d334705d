"""At which instants do the wall times of a rule fall?

Nearly every wall time is shown once, and there subtracting the zone's offset is all. Around a change of the clocks
the gap and fold policies decide; `walltime.resolve` applies them, as it does for a single action.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from postdate.domain.recurrence.days import CYCLE
from postdate.domain.walltime import resolve
from postdate.errors import InvalidWallTime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from zoneinfo import ZoneInfo

    from postdate.domain.walltime import Fold

FURTHEST = timedelta(hours=26)
"""Further apart than any two readings of one wall time, and than any zone and UTC."""

_FIRST_CHANGES = datetime(1800, 1, 1, tzinfo=UTC)
"""Before this no zone has a change: each keeps the mean time of its place."""


def placed(
    walls: Iterable[datetime], zone: ZoneInfo, *, fold: Fold, skipped: Callable[[datetime], datetime]
) -> Iterator[datetime]:
    """Yield the instants (UTC) of naive, rising wall times, in their order; equal ones may follow one another.

    `skipped` answers where a wall time goes that clocks skip: later ones may then come before it.
    """
    waiting: list[datetime] = []
    for wall in walls:
        try:
            first, second = _readings(wall, zone)
            if first <= second:
                soonest = instant = second if fold == "second" else first
            else:
                soonest, instant = second, skipped(wall)
        except (OverflowError, InvalidWallTime):  # beyond the years 1 to 9999 in UTC
            continue
        if soonest is instant and not waiting:
            yield instant
            continue
        heappush(waiting, instant)
        while waiting and waiting[0] <= soonest:
            yield heappop(waiting)
    while waiting:
        yield heappop(waiting)


def shown(walls: Iterable[datetime], zone: ZoneInfo) -> Iterator[datetime]:
    """Yield the naive, rising wall times that clocks in the zone show; end where none of them is for 400 years."""
    latest: int | None = None
    for wall in walls:
        latest = wall.year if latest is None else latest
        before, after = zone.utcoffset(wall), zone.utcoffset(wall.replace(fold=1))
        if _known(before) >= _known(after):
            latest = wall.year
            yield wall
        elif wall.year - latest > CYCLE:
            return


def moved_on(zone: ZoneInfo) -> Callable[[datetime], datetime]:
    """Return what moves a skipped wall time on by the length of the gap (RFC 5545, 3.3.5)."""
    return lambda wall: resolve(wall, zone.key, gap="forward")


def right_after(zone: ZoneInfo) -> Callable[[datetime], datetime]:
    """Return what moves a skipped wall time to the end of the gap, as Debian's cron does."""

    def end_of_gap(wall: datetime) -> datetime:
        late, early = _readings(wall, zone)
        return _change(zone, early, late)

    return end_of_gap


def wall_floor(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return a wall time (naive) such that no earlier one may fall later than the instant."""
    try:
        nearby = {_offset(zone, instant + away) for away in (-FURTHEST, timedelta(0), FURTHEST)}
        here = instant.replace(tzinfo=None) + _offset(zone, instant)
        return here if len(nearby) == 1 else here - FURTHEST
    except OverflowError:
        return datetime.min if instant.year == 1 else instant.replace(tzinfo=None) - FURTHEST  # noqa: DTZ901


def shown_at(instant: datetime, offset: timedelta) -> datetime:
    """Return the wall time (naive) that clocks with an offset show at an instant, or the nearest of the calendar."""
    try:
        return instant.replace(tzinfo=None) + offset
    except OverflowError:
        return datetime.min if offset < timedelta(0) else datetime.max  # noqa: DTZ901 - a wall time has no zone


def wall_ceiling(instant: datetime) -> datetime:
    """Return a wall time (naive) such that no later one may fall at the instant or before it, in any zone."""
    return shown_at(instant, FURTHEST)


def first_showing(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return an instant (UTC) before which clocks do not show the naive wall time or anything later."""
    return min(_readings(wall, zone))


def next_change(zone: ZoneInfo, lo: datetime, hi: datetime) -> datetime | None:
    """Return the first instant in (lo, hi] at which the zone's offset is another than the day before, if any."""
    if zone.utcoffset(None) is not None:  # it keeps one offset for ever
        return None
    day, offset = timedelta(days=1), _offset(zone, lo)
    lo = max(lo, min(hi, _FIRST_CHANGES))
    while lo < hi:
        ahead = min(hi, lo + day) if hi - lo > day else hi
        if _offset(zone, ahead) != offset:
            return _change(zone, lo, ahead)
        lo = ahead
    return None


def _change(zone: ZoneInfo, lo: datetime, hi: datetime) -> datetime:
    """Return the second at which the zone leaves the offset that it has at `lo` for the one at `hi`."""
    second, offset = timedelta(seconds=1), _offset(zone, lo)
    while hi - lo > second:
        middle = lo + (hi - lo) // second // 2 * second
        if _offset(zone, middle) == offset:
            lo = middle
        else:
            hi = middle
    return hi


def _readings(wall: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Return the instants that a wall time means with the offset before a change and after it (PEP 495)."""
    before, after = zone.utcoffset(wall), zone.utcoffset(wall.replace(fold=1))
    first = (wall - _known(before)).replace(tzinfo=UTC)
    return first, first if before == after else (wall - _known(after)).replace(tzinfo=UTC)


def _offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    return _known(instant.astimezone(zone).utcoffset())


def _known(offset: timedelta | None) -> timedelta:
    assert offset is not None, "a zone knows its offset at every wall time"  # noqa: S101 - mypy cannot know
    return offset
