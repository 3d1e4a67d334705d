"""When does an RFC 5545 recurrence rule fire?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from heapq import merge
from itertools import dropwhile, groupby, islice
from typing import TYPE_CHECKING

from postdate.domain.recurrence.dates import first_wall, named_dates
from postdate.domain.recurrence.days_off import without_days_off
from postdate.domain.recurrence.elapsed import elapsed
from postdate.domain.recurrence.parts import Freq, parts
from postdate.domain.recurrence.placing import moved_on, placed, shown, shown_at, wall_ceiling, wall_floor
from postdate.domain.recurrence.rule import Rule
from postdate.domain.recurrence.steady import is_simple, nth_wall, steady, steady_offset
from postdate.domain.recurrence.walls import completed, walls
from postdate.domain.recurrence.words import rrule_in_words
from postdate.domain.walltime import check_policy, resolve
from postdate.domain.zones import zone
from postdate.errors import InvalidWallTime

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from zoneinfo import ZoneInfo

    from postdate.domain.recurrence.parts import Parts
    from postdate.domain.walltime import Fold, Gap


@dataclass(frozen=True, kw_only=True)
class RRule(Rule):
    """A recurrence rule as text, the wall time (naive) at which it begins, and the IANA zone that both are meant in.

    Only what matches the rule is an occurrence, the start included. `exdates` are left out and `rdates` added: a
    naive datetime is a wall time in the zone, an aware one an instant, and a date the whole local day, or for an
    added one that day at the time of the start.
    """

    text: str
    start: datetime
    tz: str
    exdates: tuple[datetime | date, ...] = ()
    rdates: tuple[datetime | date, ...] = ()
    gap: Gap = "forward"
    fold: Fold = "first"

    def _fired(self, lo: datetime, hi: datetime) -> Iterator[datetime]:
        off = self._left_out_days
        if not off:
            return self._changed(lo, hi)
        return without_days_off(self._changed, lo, hi, is_off=off.__contains__, zone=self._zone)

    def _changed(self, lo: datetime, hi: datetime) -> Iterator[datetime]:
        """Return the instants and the added ones, but those that are left out one by one."""
        last = None if self._parts.is_endless else self._last_instant
        instants = self._repeated(lo, hi if last is None else min(hi, last))
        if not (self.exdates or self.rdates):
            return instants
        added = (each for each in self._added if lo < each <= hi)
        return (each for each, _ in groupby(merge(instants, added)) if each not in self._left_out_instants)

    def _repeated(self, lo: datetime, hi: datetime) -> Iterator[datetime]:
        if self._parts.freq >= Freq.HOURLY:
            return elapsed(self._parts, self._anchor, self._zone, lo=lo, hi=hi) if self._anchor else iter(())
        offset = steady_offset(self._zone, lo, hi)
        if offset is not None and self._simple:
            last = None if self._parts.is_endless else self._last_wall
            return steady(self._parts, self.start, offset, lo=lo, hi=hi, last=last)
        if offset is not None and self._parts.count is None:
            return self._by_offset(offset, lo, hi)
        return self._by_walls(lo, hi)

    def _by_offset(self, offset: timedelta, lo: datetime, hi: datetime) -> Iterator[datetime]:
        floor, last = shown_at(lo, offset), shown_at(hi, offset)
        if self._last_wall is not None:
            last = min(last, self._last_wall)
        named = walls(self._parts, self.start, since=floor, last=last)
        return (wall.replace(tzinfo=UTC) - offset for wall in named if wall > floor)

    def _by_walls(self, lo: datetime, hi: datetime) -> Iterator[datetime]:
        floor, last, count = wall_floor(lo, self._zone), wall_ceiling(hi), self._parts.count
        if self._last_wall is not None:
            last, count = min(last, self._last_wall), None
        named = walls(self._parts, self.start, since=self.start if count else floor, last=last)
        if self.gap == "reject":
            named = shown(named, self._zone)
        if count:
            named = dropwhile(lambda wall: wall < floor, islice(named, count))
        latest = lo
        for instant in placed(named, self._zone, fold=self.fold, skipped=moved_on(self._zone)):
            if instant > hi:
                return
            if instant > latest:
                latest = instant
                yield instant

    @cached_property
    def _parts(self) -> Parts:
        return completed(parts(self.text), self.start)

    @cached_property
    def _zone(self) -> ZoneInfo:
        return zone(self.tz)

    @property
    def _simple(self) -> bool:
        """Whether it may be expanded by `steady`: skipped wall times do not count where they are rejected."""
        return is_simple(self._parts, self.start) and (self._parts.count is None or self.gap == "forward")

    @cached_property
    def _last_wall(self) -> datetime | None:
        """The wall time beyond which the rule does not go, where that is known beforehand."""
        until, count = self._parts.until, self._parts.count
        if until is not None and not (isinstance(until, datetime) and until.tzinfo):
            return until if isinstance(until, datetime) else datetime.combine(until, time.max)
        return nth_wall(self._parts, self.start, count) if count and self._simple else None

    @cached_property
    def _last_instant(self) -> datetime | None:
        """The instant beyond which the rule does not go, where that is known beforehand."""
        until = self._parts.until
        if isinstance(until, datetime) and until.tzinfo is not None:
            return until
        if self._parts.freq < Freq.HOURLY or self._last_wall is None:
            return None
        return self._resolved(self._last_wall, fold="second")

    @cached_property
    def _anchor(self) -> datetime | None:
        """The instant at which a rule begins that steps in elapsed time."""
        return self._resolved(self.start, fold=self.fold)

    def _resolved(self, wall: datetime, *, fold: Fold) -> datetime | None:
        try:
            return resolve(wall, self.tz, fold=fold)
        except InvalidWallTime:  # outside the calendar in UTC
            return None

    @cached_property
    def _added(self) -> list[datetime]:
        return sorted(self._instants(_at(value, self.start.time()) for value in self.rdates))

    @cached_property
    def _left_out_instants(self) -> frozenset[datetime]:
        return frozenset(self._instants(value for value in self.exdates if isinstance(value, datetime)))

    @cached_property
    def _left_out_days(self) -> frozenset[date]:
        return frozenset(value for value in self.exdates if not isinstance(value, datetime))

    def _instants(self, values: Iterable[datetime]) -> Iterator[datetime]:
        for value in values:
            if value.tzinfo is not None:
                yield value
                continue
            try:
                yield resolve(value, self.tz, gap=self.gap, fold=self.fold)
            except InvalidWallTime:  # clocks skip it, and so does the rule
                continue

    def describe(self) -> str:
        """Return the rule in words: `every Tuesday at 09:00, 12 times`."""
        return rrule_in_words(self._parts, self.start, left_out=len(self.exdates), added=len(self.rdates))

    def dump(self) -> dict[str, object]:
        """Return the rule as a JSON object."""
        return {
            "form": "rrule",
            "text": self.text,
            "start": self.start.isoformat(),
            "tz": self.tz,
            "exdates": [value.isoformat() for value in self.exdates],
            "rdates": [value.isoformat() for value in self.rdates],
            "gap": self.gap,
            "fold": self.fold,
        }


def rrule(
    text: str,
    *,
    start: datetime | date | str,
    tz: str,
    exdates: Iterable[datetime | date | str] = (),
    rdates: Iterable[datetime | date | str] = (),
    gap: Gap = "forward",
    fold: Fold = "first",
) -> RRule:
    """Return the rule that `text` (RFC 5545, 3.3.10) tells, begun at the wall time `start` in the IANA zone `tz`.

    Where clocks skip a wall time, `gap="forward"` moves it on by the length of the gap, and `gap="reject"` leaves
    it out, uncounted. Where they show it twice, `fold` takes the first or the second time. Equal instants are one.

    Raises `InvalidRule` (which part, and why), `InvalidZone`, or `InvalidWallTime` for a bad gap or fold.
    """
    check_policy(gap, fold)
    parts(text)
    return RRule(
        text=text,
        start=first_wall(start),
        tz=zone(tz).key,
        exdates=named_dates("exdates", exdates),
        rdates=named_dates("rdates", rdates),
        gap=gap,
        fold=fold,
    )


def _at(value: datetime | date, at: time) -> datetime:
    return value if isinstance(value, datetime) else datetime.combine(value, at)
