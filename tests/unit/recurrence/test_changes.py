"""Does a rule keep its time over every change of the clocks: no instant twice, none skipped but by policy?

A sample of the zones runs always, and all of them with POSTDATE_TEST_ALL_ZONES=1.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import pytest

from postdate.domain import zones
from postdate.domain.recurrence import cron, rrule

ALL = os.environ.get("POSTDATE_TEST_ALL_ZONES") == "1"
EVERY = 1 if ALL else 100
HARD = (
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/New_York",
    "America/Nuuk",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Asia/Pyongyang",
    "Australia/Lord_Howe",
    "Europe/London",
    "Pacific/Apia",
    "Pacific/Kwajalein",
)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


class Change(NamedTuple):
    """When a zone moves from one offset to another; the instant is naive and in UTC."""

    zone: str
    at: datetime
    before: timedelta
    after: timedelta

    @property
    def length(self) -> timedelta:
        return self.after - self.before

    @property
    def wall(self) -> datetime:
        """The wall time at which the old offset ends."""
        return self.at + self.before

    def shown(self, wall: datetime) -> list[datetime]:
        """Return the instants near the change at which clocks show the wall time."""
        early, late = wall - self.before, wall - self.after
        return ([early] if early < self.at else []) + ([late] if late >= self.at else [])

    def expected(self, wall: datetime, *, gap: str, fold: str) -> datetime | None:
        """Return the instant at which a rule fires that names the wall time."""
        shown = self.shown(wall)
        if shown:
            return shown[0] if fold == "first" else shown[-1]
        return {"forward": wall - self.before, "right after": self.at, "reject": None}[gap]


@cache
def changes() -> list[Change]:
    """Return the changes of 1990 to 2037, alone within five days, of the chosen zones; links count once."""
    found: dict[tuple[tuple[datetime, timedelta], ...], list[Change]] = {}
    names = sorted(zones._names().values())
    for name in dict.fromkeys([*HARD, *names[::EVERY]]):
        of_zone = list(_changes(name))
        found.setdefault(tuple((change.at, change.after) for change in of_zone), of_zone)
    return [change for of_zone in found.values() for change in _apart(of_zone)]


def _changes(name: str) -> list[Change]:
    rules = zones.zone(name)

    def offset(instant: datetime) -> timedelta:
        shown = rules.fromutc(instant.replace(tzinfo=rules)).replace(tzinfo=None)
        return shown - instant

    found, at, end = [], datetime(1990, 1, 1), datetime(2038, 1, 1)  # noqa: DTZ001
    while at < end:
        low, high = at, at + 7 * DAY
        at = high
        if offset(low) == offset(high):
            continue
        while high - low > timedelta(seconds=1):
            middle = low + (high - low) // timedelta(seconds=2) * timedelta(seconds=1)
            low, high = (middle, high) if offset(middle) == offset(low) else (low, middle)
        found.append(Change(name, high, offset(low), offset(high)))
        at = high
    return found


def _apart(of_zone: list[Change]) -> list[Change]:
    near = {change for pair in pairwise(of_zone) if pair[1].at - pair[0].at < 5 * DAY for change in pair}
    return [change for change in of_zone if change not in near]


def _aware(instants: list[datetime]) -> list[datetime]:
    return [instant.replace(tzinfo=UTC) for instant in instants]


def _clocks(change: Change) -> list[datetime]:
    """Return wall times before, within and after what the change skips or repeats, on whole minutes."""
    half = abs(change.length) // 2
    begin = (change.wall + min(change.length, timedelta(0))).replace(second=0)
    return [begin - 30 * MINUTE, begin, begin + half // MINUTE * MINUTE, begin + 2 * half // MINUTE * MINUTE]


def _days(wall: datetime) -> list[datetime]:
    return [wall + days * DAY for days in range(-2, 3)]


def _named(change: Change, walls: list[datetime], *, gap: str, fold: str) -> list[datetime]:
    found = [change.expected(wall, gap=gap, fold=fold) for wall in walls]
    return _aware(sorted({instant for instant in found if instant is not None}))


def test_the_well_known_changes_are_among_them() -> None:
    assert len(changes()) > (5000 if ALL else 600)
    known = {(change.zone, change.at) for change in changes()}
    assert ("America/New_York", datetime(2026, 3, 8, 7)) in known  # noqa: DTZ001
    assert ("Pacific/Apia", datetime(2011, 12, 30, 10)) in known  # noqa: DTZ001


@pytest.mark.parametrize("fold", ["first", "second"])
@pytest.mark.parametrize("gap", ["forward", "reject"])
def test_a_daily_rule_keeps_its_time(gap: str, fold: str) -> None:
    for change in changes():
        for clock in _clocks(change):
            walls = _days(clock)
            rule = rrule("FREQ=DAILY;COUNT=5", start=walls[0], tz=change.zone, gap=gap, fold=fold)  # type: ignore[arg-type]
            window = [end.replace(tzinfo=UTC) for end in (change.at - 5 * DAY, change.at + 3 * DAY)]
            expected = _named(change, walls, gap=gap, fold=fold)
            found = list(rule.between(*window))
            if gap == "reject" and len(expected) < len(walls):  # what is rejected does not count: another day follows
                found = found[: len(expected)]
            assert found == expected, (change, clock)


@pytest.mark.parametrize("fold", ["first", "second"])
def test_nothing_is_lost_for_who_looks_from_the_midst_of_a_change(fold: str) -> None:
    for change in changes() if ALL else changes()[::4]:
        length = abs(change.length)
        for clock in _clocks(change)[1:]:
            walls = _days(clock)
            rule = rrule("FREQ=DAILY", start=walls[0], tz=change.zone, fold=fold)  # type: ignore[arg-type]
            fixed = cron(f"{clock.minute} {clock.hour} * * *", tz=change.zone, fold=fold)  # type: ignore[arg-type]
            end = (change.at + 28 * HOUR).replace(tzinfo=UTC)
            for away in (-length, -MINUTE, 0 * MINUTE, length // 2 - MINUTE, length):
                lo = (change.at + away).replace(tzinfo=UTC)
                moved = _named(change, walls, gap="forward", fold=fold)
                assert list(rule.between(lo, end)) == [at for at in moved if lo < at <= end], (change, clock, away)
                moved = _named(change, walls, gap="right after", fold=fold)
                assert list(fixed.between(lo, end)) == [at for at in moved if lo < at <= end], (change, clock, away)


@pytest.mark.parametrize("text", ["FREQ=WEEKLY", "FREQ=MONTHLY", "FREQ=YEARLY"])
def test_longer_periods_meet_a_change_as_days_do(text: str) -> None:
    for change in changes():
        for clock in _clocks(change):
            rule = rrule(text, start=clock, tz=change.zone)
            window = [end.replace(tzinfo=UTC) for end in (change.at - 3 * DAY, change.at + 3 * DAY)]
            assert list(rule.between(*window)) == _named(change, [clock], gap="forward", fold="first"), (change, clock)


def test_several_times_a_day_stay_in_order_and_apart() -> None:
    for change in changes():
        start = change.wall.replace(hour=0, minute=0, second=0) - DAY
        walls = [start + number * 20 * MINUTE for number in range(4 * 72)]
        rule = rrule(
            "FREQ=DAILY;BYHOUR=" + ",".join(map(str, range(24))) + ";BYMINUTE=0,20,40", start=start, tz=change.zone
        )
        begin, end = (edge.replace(tzinfo=UTC) for edge in (change.at - 4 * HOUR, change.at + 28 * HOUR))
        expected = [at for at in _named(change, walls, gap="forward", fold="first") if begin < at <= end]
        assert list(rule.between(begin, end)) == expected, change


def test_hours_and_minutes_are_elapsed_ones() -> None:
    for change in changes():
        start = change.wall.replace(minute=0, second=0) - DAY
        rule = rrule("FREQ=MINUTELY;INTERVAL=45", start=start, tz=change.zone)
        begin = start - change.before
        walked = _aware([begin + number * 45 * MINUTE for number in range(60)])
        assert list(rule.preview(60)) == walked, change


@pytest.mark.parametrize("fold", ["first", "second"])
def test_cron_at_a_fixed_time_runs_once_a_day(fold: str) -> None:
    for change in changes():
        for clock in _clocks(change):
            rule = cron(f"{clock.minute} {clock.hour} * * *", tz=change.zone, fold=fold)  # type: ignore[arg-type]
            walls = _days(clock)
            begin, end = (edge.replace(tzinfo=UTC) for edge in (change.at - 26 * HOUR, change.at + 26 * HOUR))
            expected = [at for at in _named(change, walls, gap="right after", fold=fold) if begin < at <= end]
            assert list(rule.between(begin, end)) == expected, (change, clock)


def test_cron_with_a_star_follows_the_clocks() -> None:
    for change in changes():
        rule = cron("*/20 * * * *", tz=change.zone)
        begin = (change.at - 3 * HOUR).replace(second=0)
        minutes = [begin + number * MINUTE for number in range(1, 6 * 60)]
        offsets = [change.before if minute < change.at else change.after for minute in minutes]
        expected = [at for at, offset in zip(minutes, offsets, strict=True) if (at + offset).minute % 20 == 0]
        window = [edge.replace(tzinfo=UTC) for edge in (begin, minutes[-1])]
        assert list(rule.between(*window)) == _aware(expected), change
