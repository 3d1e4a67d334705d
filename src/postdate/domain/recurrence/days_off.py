"""How does a rule get past days on which nothing fires?"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

from postdate.domain.instant import MICROSECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import date, tzinfo

MOST_COUNTED = 1000
"""How many instants on days off are counted off, before the rule is asked for those behind these days."""

_DAY = timedelta(days=1)


def without_days_off(
    fired: Callable[[datetime, datetime], Iterator[datetime]],
    lo: datetime,
    hi: datetime,
    *,
    is_off: Callable[[date], bool],
    zone: tzinfo,
) -> Iterator[datetime]:
    """Yield the instants that `fired` has later than `lo`, up to `hi`, but those on days off by the clocks of the zone.

    So that no rule by seconds is counted through for years that are all holidays, it is asked anew behind them.
    """
    counted = 0
    instants = fired(lo, hi)
    while (instant := next(instants, None)) is not None:
        day = _local_day(instant, zone)
        if day is None or not is_off(day):
            counted = 0
            yield instant
            continue
        counted += 1
        if counted == MOST_COUNTED:
            behind = _behind(day, is_off, zone)
            if behind is None or behind > hi:
                return
            counted, instants = 0, fired(max(instant, behind - MICROSECOND), hi)


def _local_day(instant: datetime, zone: tzinfo) -> date | None:
    try:
        return instant.astimezone(zone).date()
    except OverflowError:  # beyond the years 1 to 9999 in the zone
        return None


def _behind(day: date, is_off: Callable[[date], bool], zone: tzinfo) -> datetime | None:
    """Return the instant at which the first day begins that comes after this one and is not off; None for none."""
    try:
        while is_off(day):
            day += _DAY
        return datetime.combine(day, time.min, zone).astimezone(UTC)
    except OverflowError:  # the calendar ends before
        return None
