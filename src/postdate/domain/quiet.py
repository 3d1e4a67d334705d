"""Is it a quiet hour, and when does it end?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING

from postdate.domain.walltime import resolve
from postdate.domain.zones import zone
from postdate.errors import Invalid, InvalidWallTime

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from uuid import UUID
    from zoneinfo import ZoneInfo

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
EVERY_DAY = frozenset(range(1, 8))

LONGEST_QUIET = timedelta(days=8)
"""No quiet lasts longer: hours that leave no time in a week leave none at all."""

_FORM = re.compile(r"(?:(?P<days>[a-z,-]+) )?(?P<start>\d\d:\d\d)-(?P<end>\d\d:\d\d)", re.ASCII)
_RULE = "must be `[DAYS ]HH:MM-HH:MM`, as in `22:00-08:00` or `mon-fri 22:00-08:00` or `sat,sun 00:00-00:00`"
_FIELD = "hours"


@dataclass(frozen=True, kw_only=True)
class QuietHours:
    """From `start` until `end` on the clock of a zone, beginning on these days of the week.

    An end that is not after the start is on the next day, so equal ones make a whole day. In a gap and in a fold both
    are read as a wall time is that nobody said more about: moved on by the gap, the first of two.
    """

    start: time
    end: time
    weekdays: frozenset[int] = EVERY_DAY
    """1 for Monday to 7 for Sunday."""
    tz: str | None = None
    """An IANA zone, looked at when it is needed; None for the workspace's."""

    def __post_init__(self) -> None:
        """Raise `Invalid` for times with seconds or an offset, and for days that there are not."""
        for at in (self.start, self.end):
            if not _is_minute(at):
                raise Invalid(field=_FIELD, rule="must begin and end on a minute of the local clock", value=at)
        if not _are_weekdays(self.weekdays):
            raise Invalid(field=_FIELD, rule="must have a frozenset of weekdays, 1 to 7", value=self.weekdays)

    @classmethod
    def parse(cls, text: object, *, tz: str | None = None) -> QuietHours:
        """Return what `[DAYS ]HH:MM-HH:MM` says. Raises `Invalid`."""
        found = _FORM.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise Invalid(field=_FIELD, rule=_RULE, value=text)
        try:
            start, end = (time.fromisoformat(found[name]) for name in ("start", "end"))
        except ValueError:
            raise Invalid(field=_FIELD, rule="must have times from 00:00 to 23:59", value=text) from None
        days = EVERY_DAY if found["days"] is None else frozenset(_days(found["days"], text))
        return cls(start=start, end=end, weekdays=days, tz=tz)

    def __str__(self) -> str:
        """Return it as `parse` reads it, without the zone."""
        days = "" if self.weekdays == EVERY_DAY else ",".join(DAYS[day - 1] for day in sorted(self.weekdays)) + " "
        return f"{days}{self.start:%H:%M}-{self.end:%H:%M}"


@dataclass(frozen=True, kw_only=True)
class WorkspaceQuietHours:
    """Quiet hours of a workspace, or of one action type in it, and who has set them."""

    workspace_id: UUID
    action_type: str | None
    """None for every type."""
    hours: QuietHours
    set_at: datetime
    set_by: str
    note: str | None = None


def quiet_until(hours: Sequence[QuietHours], *, now: datetime, tz: str) -> datetime | None:
    """Return the instant (UTC) at which the quiet that holds at `now` ends; None where it is not quiet.

    Hours without a zone are read in `tz`. Hours that touch or overlap make one quiet, of at most `LONGEST_QUIET`.
    Raises `InvalidZone`.
    """
    end = now
    while end - now < LONGEST_QUIET:
        later = max((last for first, last in _spans(hours, end, tz) if first <= end < last), default=None)
        if later is None:
            break
        end = later
    return None if end == now else end


def _spans(hours: Iterable[QuietHours], around: datetime, tz: str) -> Iterator[tuple[datetime, datetime]]:
    """Yield when each of the hours begins and ends, on every day from which it could reach `around`."""
    for each in hours:
        rules = zone(each.tz or tz)
        # the days around, since a zone may skip a whole one
        for days in range(-2, 2):
            try:
                day = around.astimezone(rules) + timedelta(days=days)
                span = _span(each, day, rules)
            except (OverflowError, InvalidWallTime):  # beyond the first or the last day of the calendar
                continue
            if day.isoweekday() in each.weekdays:
                yield span


def _span(hours: QuietHours, day: datetime, rules: ZoneInfo) -> tuple[datetime, datetime]:
    last = day if hours.end > hours.start else day + timedelta(days=1)
    return (
        resolve(datetime.combine(day, hours.start), rules.key),
        resolve(datetime.combine(last, hours.end), rules.key),
    )


def _is_minute(at: object) -> bool:
    return isinstance(at, time) and at == time(at.hour, at.minute)


def _are_weekdays(days: object) -> bool:
    return isinstance(days, frozenset) and bool(days) and all(type(day) is int and day in EVERY_DAY for day in days)


def _days(text: str, value: object) -> Iterator[int]:
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if first not in DAYS or (dash and last not in DAYS):
            raise Invalid(field=_FIELD, rule=f"must name days as {', '.join(DAYS)}", value=value)
        day = DAYS.index(first)
        yield day + 1
        while dash and DAYS[day] != last:  # fri-mon goes over the end of the week
            day = (day + 1) % len(DAYS)
            yield day + 1
