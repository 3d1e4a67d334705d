"""At which instants does a rule fire that repeats by hours, minutes or seconds?

Such rules step in elapsed time: an hour is an hour on the day the clocks change too. What BYHOUR, BYDAY and the
others ask is asked of what clocks in the zone show at the instant. Stretches without a match are jumped over, by
arithmetic as long as the zone keeps its offset, and no further than to where it changes.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import dropwhile, groupby, islice, product
from typing import TYPE_CHECKING

from postdate.domain.recurrence.days import CYCLE, next_day
from postdate.domain.recurrence.parts import Freq
from postdate.domain.recurrence.placing import first_showing, next_change
from postdate.domain.recurrence.seconds import DAY, FIRST, HOUR, LAST, MINUTE, instant_of, seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from zoneinfo import ZoneInfo

    from postdate.domain.recurrence.parts import Parts

MAX_TRIES = 10_000
"""So many periods without a match, each reached by a jump, and the rule is taken to be over."""

_YEAR = 366 * DAY
_SETTLED = seconds_of(datetime(2040, 1, 1, tzinfo=UTC))  # by then the clocks of every zone change the same each year
_UNITS = {Freq.HOURLY: HOUR, Freq.MINUTELY: MINUTE, Freq.SECONDLY: 1}


def elapsed(parts: Parts, anchor: datetime, zone: ZoneInfo, *, lo: datetime, hi: datetime) -> Iterator[datetime]:
    """Yield the instants later than `lo`, up to `hi`, of the rule that began at `anchor`; all in UTC."""
    if seconds_of(anchor) == LAST:  # it begins in the last two days, where no second is told from another
        return iter(())
    steps = _Steps(parts, seconds_of(anchor), zone)
    since, until = seconds_of(lo), seconds_of(hi)
    if parts.count is None:
        fired = steps.fired(since, until)
    elif steps.plain:
        fired = steps.fired(since, min(until, steps.begin(parts.count - 1)))
    else:
        counted = islice(steps.fired(FIRST, until), parts.count)
        fired = dropwhile(lambda second: second <= since, counted)
    return map(instant_of, fired)


class _Steps:
    """The periods of a rule, numbered from 0. Instants are whole seconds since 1970.

    Each is `unit` seconds long. It begins with an instant at which the rule may fire; or, where BYMINUTE or BYSECOND
    name instants within it, with the full hour or minute.
    """

    def __init__(self, parts: Parts, anchor: int, zone: ZoneInfo) -> None:
        self._parts = parts
        self._zone = zone
        self._anchor = self._origin = anchor
        self._unit = _UNITS[parts.freq]
        self._step = parts.interval * self._unit
        self._within: Sequence[int] = ()  # at which seconds within the hour or minute that clocks show
        if (parts.minutes and self._unit > MINUTE) or (parts.seconds and self._unit > 1):
            begun = self._clock(anchor) % self._unit
            self._origin -= begun
            minutes = (parts.minutes or (begun // MINUTE,)) if self._unit > MINUTE else (0,)
            seconds = parts.seconds or (begun % MINUTE,)
            self._within = [minute * MINUTE + second for minute, second in product(minutes, seconds)]
        self._by_day = parts.picks_days or bool(parts.months)
        self._slots = _slots(parts)
        self._empty = bool(parts.positions) and min(map(abs, parts.positions)) > max(1, len(self._within))
        self.plain = not (self._by_day or self._within or self._slots or parts.positions)

    def begin(self, number: int) -> int:
        """Return when a period begins."""
        return self._origin + number * self._step

    def fired(self, lo: int, hi: int) -> Iterator[int]:
        """Yield the instants later than `lo` and up to `hi`."""
        if self.plain:
            first = self.begin(max(0, (lo - self._origin) // self._step + 1))
            yield from range(first, hi + 1, self._step)
            return
        if self._empty:
            return
        number, tries = max(0, (lo - self._origin) // self._step), 0
        searched = self.begin(number)
        while (begin := self.begin(number)) <= hi:
            found = self._matches(begin)
            yield from (second for second in found if max(lo + 1, self._anchor) <= second <= hi)
            if found:
                number, tries, searched = number + 1, 0, begin
                continue
            ahead = self._jump(number, hi)
            tries += 1
            if ahead is None or tries > MAX_TRIES or begin - searched > CYCLE * _YEAR:
                return
            number = ahead

    def _matches(self, begin: int) -> list[int]:
        """Return the instants of a period at which the rule fires."""
        seconds = [begin] if not self._within else self._expanded(begin)
        if self._slots or self._by_day:
            seconds = [second for second in seconds if self._fits(second)]
        if not self._parts.positions:
            return seconds
        places = {place - 1 if place > 0 else len(seconds) + place for place in self._parts.positions}
        return [seconds[place] for place in sorted(places) if 0 <= place < len(seconds)]

    def _expanded(self, begin: int) -> list[int]:
        """Return when, within a period, clocks show the minutes and seconds that the rule names."""
        end = begin + self._unit - 1
        readings = {self._clock(begin), self._clock(end) - self._unit + 1}  # two, where the clocks change within it
        found = {begin + (within - reading) % self._unit for reading in readings for within in self._within}
        if len(readings) == 1:
            return sorted(found)
        return sorted(second for second in found if self._clock(second) % self._unit in self._within)

    def _fits(self, second: int) -> bool:
        wall, parts = self._wall(second), self._parts
        named = ((parts.hours, wall.hour), (parts.minutes, wall.minute), (parts.seconds, wall.second))
        if any(numbers and number not in numbers for numbers, number in named):
            return False
        return not self._by_day or self._names(wall.toordinal())

    def _names(self, ordinal: int) -> bool:
        return next_day(self._parts, ordinal) == ordinal

    def _jump(self, number: int, hi: int) -> int | None:
        """Return the number of a later period, none before it having a match; None where none has one any more."""
        begin = self.begin(number)
        wall = self._wall(begin)
        if self._by_day:
            day = next_day(self._parts, wall.toordinal())
            if day is None:
                return None
            if day > self._wall(begin + self._unit - 1).toordinal():
                midnight = datetime.combine(date.fromordinal(day), time())
                return max(number + 1, self._reaching(seconds_of(first_showing(midnight, self._zone))))
        return self._to_slot(number, wall, hi) if self._slots else number + 1

    def _to_slot(self, number: int, wall: datetime, hi: int) -> int | None:
        """Return the number of the next period that holds a slot, or of the one in which the clocks change first."""
        ahead, begin = self._steps_ahead(wall), self.begin(number)
        if ahead is not None:
            change = self._change(begin, min(self.begin(number + ahead), hi))
            return number + ahead if change is None else max(number + 1, self._reaching(change))
        horizon = min(max(begin + 2 * _YEAR, _SETTLED), hi)
        while (change := self._change(begin, horizon)) is not None:
            number, begin = max(number + 1, self._reaching(change)), change
            end = self.begin(number) + self._unit - 1
            if self._steps_ahead(self._wall(end) - timedelta(seconds=self._unit - 1)) is not None:
                return number
        return None

    def _steps_ahead(self, wall: datetime) -> int | None:
        """Return after how many steps a period that begins at `wall` is followed by one with a slot, offsets apart."""
        slot, rest = divmod(_clock(wall), self._unit)
        reach = 1 if rest and self._within else 0  # a period may reach into the next slot
        return _steps_to(self._slots, slot, self._parts.interval, DAY // self._unit, reach=reach)

    def _change(self, lo: int, hi: int) -> int | None:
        change = next_change(self._zone, instant_of(lo), instant_of(hi))
        return None if change is None else seconds_of(change)

    def _reaching(self, second: int) -> int:
        """Return the number of the first period that does not end before `second`."""
        return -((self._origin + self._unit - 1 - second) // self._step)

    def _wall(self, second: int) -> datetime:
        return instant_of(second).astimezone(self._zone)

    def _clock(self, second: int) -> int:
        return _clock(self._wall(second))


def _clock(wall: datetime) -> int:
    """Return the seconds since midnight that clocks show."""
    return wall.hour * HOUR + wall.minute * MINUTE + wall.second


@lru_cache(maxsize=64)
def _slots(parts: Parts) -> tuple[tuple[int, int], ...]:
    """Return in which of the day's hours, minutes or seconds, by its frequency, a rule may fire; nothing: in any.

    They are runs, each told by its first and its last.
    """
    units: list[tuple[int, tuple[int, ...], int]] = [(HOUR, parts.hours, 24)]
    if parts.freq >= Freq.MINUTELY:
        units.append((MINUTE, parts.minutes, 60))
    if parts.freq >= Freq.SECONDLY:
        units.append((1, parts.seconds, 60))
    if not any(named for _, named, _ in units):
        return ()
    clocks = product(*(named or range(most) for _, named, most in units))
    sizes = [size for size, _, _ in units]
    runs = tuple(_runs(sum(map(int.__mul__, clock, sizes)) // sizes[-1] for clock in clocks))
    return () if runs == ((0, DAY // sizes[-1] - 1),) else runs


def _runs(rising: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of the numbers that follow one another without a gap."""
    for _, run in groupby(enumerate(rising), key=lambda numbered: numbered[1] - numbered[0]):
        numbers = [number for _, number in run]
        yield numbers[0], numbers[-1]


def _steps_to(runs: Sequence[tuple[int, int]], slot: int, interval: int, per_day: int, *, reach: int = 0) -> int | None:
    """Return after how many steps, at least one, of `interval` slots round the day one of the runs is met."""
    step = interval % per_day
    begin = slot + step
    ends = (((first - reach - begin) % per_day, (last - begin) % per_day) for first, last in runs)
    met = (_multiple(step, per_day, low, high) for low, high in ends)
    return min((more + 1 for more in met if more is not None), default=None)


def _multiple(step: int, ring: int, low: int, high: int) -> int | None:
    """Return the least number whose product with `step`, modulo `ring`, lies from `low` to `high`, round zero or not.

    As in Euclid's algorithm each call leaves smaller numbers to the next.
    """
    if low == 0 or low > high:
        return 0
    if step == 0:
        return None
    least = -(-low // step)
    if least * step <= high:
        return least
    rounds = _multiple(ring % step, step, -high % step, -low % step)
    return None if rounds is None else -(-(low + rounds * ring) // step)
