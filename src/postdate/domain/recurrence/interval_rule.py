"""When does an interval fire that counts from one instant?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from postdate.domain.instant import MICROSECOND, utc
from postdate.domain.recurrence.rule import Rule
from postdate.errors import InvalidRule

if TYPE_CHECKING:
    from collections.abc import Iterator

_NONE = timedelta(0)
_UNITS = (
    ("day", timedelta(days=1)),
    ("hour", timedelta(hours=1)),
    ("minute", timedelta(minutes=1)),
    ("second", timedelta(seconds=1)),
    ("millisecond", timedelta(milliseconds=1)),
    ("microsecond", MICROSECOND),
)


@dataclass(frozen=True, kw_only=True)
class Every(Rule):
    """Every `interval` of elapsed time, the first time at `anchor` (UTC), whatever clocks show and runs take."""

    interval: timedelta
    anchor: datetime

    def _fired(self, lo: datetime, hi: datetime) -> Iterator[datetime]:
        passed = (lo - self.anchor) // self.interval + 1 if lo >= self.anchor else 0
        try:
            instant = self.anchor + passed * self.interval
            while lo < instant <= hi:
                yield instant
                instant += self.interval
        except OverflowError:  # the calendar ends
            return

    def describe(self) -> str:
        """Return the rule in words: `every 90 minutes from 2026-03-01 09:00 UTC`."""
        name, unit = next((name, unit) for name, unit in _UNITS if not self.interval % unit)
        many = self.interval // unit
        often = name if many == 1 else f"{many} {name}s"
        return f"every {often} from {self.anchor.replace(tzinfo=None).isoformat(' ', _precision(self.anchor))} UTC"

    def dump(self) -> dict[str, object]:
        """Return the rule as a JSON object; the interval is in microseconds."""
        return {
            "form": "every",
            "interval": self.interval // MICROSECOND,
            "anchor": self.anchor.isoformat(),
        }


def every(interval: timedelta, *, anchor: datetime) -> Every:
    """Return the rule that fires at `anchor` (aware) and then every `interval`, to the microsecond.

    Raises `InvalidRule` unless the interval is longer than nothing, `InvalidInstant` for a naive anchor.
    """
    if not isinstance(interval, timedelta):
        raise InvalidRule("every", part="interval", why="must be a timedelta", value=interval)
    if interval <= _NONE:
        raise InvalidRule("every", part="interval", why="must be longer than nothing", value=interval)
    return Every(interval=interval, anchor=utc(anchor, field="anchor"))


def _precision(anchor: datetime) -> str:
    if anchor.microsecond:
        return "microseconds"
    return "seconds" if anchor.second else "minutes"
