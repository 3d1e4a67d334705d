"""How far do searches for the next instant go: as far as there may be one, and no further?"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from postdate import rrule
from postdate.domain.recurrence import elapsed, walls
from postdate.domain.recurrence.days import days_of_year
from postdate.domain.recurrence.parts import Freq
from postdate.domain.recurrence.placing import next_change

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from zoneinfo import ZoneInfo

    Window = tuple[datetime, datetime]

SUNDAY = 6


def leap_sundays(start: str, days: int) -> Iterator[datetime]:
    """Yield, by trying each year, the Sundays that are 29 February and a multiple of so many days after the start."""
    begun = date.fromisoformat(start)
    for year in range(begun.year + 1, 9997):
        if year % 4 == 0 and (year % 100 or year % 400 == 0):
            day = date(year, 2, 29)
            if day.weekday() == SUNDAY and (day - begun).days % days == 0:
                yield datetime(year, 2, 29, 9, tzinfo=UTC)


def by_hours(start: str, days: int) -> Any:
    text = f"FREQ=HOURLY;INTERVAL={24 * days};BYMONTH=2;BYMONTHDAY=29;BYDAY=SU"
    return rrule(text, start=f"{start}T09:00", tz="UTC")


def by_days(start: str, days: int) -> Any:
    text = f"FREQ=DAILY;INTERVAL={days};BYMONTH=2;BYMONTHDAY=29;BYDAY=SU"
    return rrule(text, start=f"{start}T09:00", tz="UTC")


@pytest.fixture
def looked_for(monkeypatch: pytest.MonkeyPatch) -> list[Window]:
    """Note in which windows a change of the clocks is looked for."""
    windows: list[Window] = []

    def watched(zone: ZoneInfo, lo: datetime, hi: datetime) -> datetime | None:
        windows.append((lo, hi))
        return next_change(zone, lo, hi)

    monkeypatch.setattr(elapsed, "next_change", watched)
    return windows


class TestByHoursAndLess:
    @pytest.mark.parametrize(("tries", "found"), [(14, 1), (13, 0)])
    def test_after_so_many_tries_in_vain_the_rule_is_over(
        self, monkeypatch: pytest.MonkeyPatch, tries: int, found: int
    ) -> None:
        """There are fourteen before the first: each leap Sunday of 400 years, but one that the steps do not meet."""
        monkeypatch.setattr(elapsed, "MAX_TRIES", tries)
        assert len(by_hours("2000-03-13", 23).preview(1)) == found

    def test_a_match_begins_the_count_and_the_years_anew(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(elapsed, "MAX_TRIES", 14)
        wanted = [at for at, _ in zip(leap_sundays("2000-02-20", 7), range(30), strict=False)]
        assert wanted[-1].year > 2000 + 2 * 400
        assert list(by_hours("2000-02-20", 7).preview(30)) == wanted

    def test_what_is_met_within_400_years_is_found(self) -> None:
        assert by_hours("2000-03-13", 23).preview(1) == (next(leap_sundays("2000-03-13", 23)),)
        assert by_hours("2000-03-13", 23).preview(1)[0].year == 2404

    def test_where_400_years_had_none_it_is_over_though_there_would_be_one(self) -> None:
        assert next(leap_sundays("2000-03-04", 13)).year == 2432
        assert by_hours("2000-03-04", 13).preview(1) == ()

    @pytest.mark.parametrize(
        ("start", "tz", "hour", "first"),
        [
            ("2003-01-01T09:00", "Africa/Juba", 8, "2021-02-01T06:00"),  # no clock changed there in between
            ("2045-01-02T09:00", "America/New_York", 10, "2045-03-12T14:00"),
            ("2045-04-02T09:00", "America/New_York", 8, "2045-11-05T13:00"),
        ],
    )
    def test_steps_that_meet_an_hour_only_by_another_offset_find_it(
        self, start: str, tz: str, hour: int, first: str
    ) -> None:
        rule = rrule(f"FREQ=HOURLY;INTERVAL=24;BYHOUR={hour}", start=start, tz=tz)
        assert rule.preview(1) == (datetime.fromisoformat(first).replace(tzinfo=UTC),)

    def test_where_no_change_of_the_clocks_helps_few_of_them_are_looked_at(self, looked_for: list[Window]) -> None:
        rule = rrule("FREQ=HOURLY;INTERVAL=24;BYHOUR=12", start="2045-01-02T09:00", tz="America/New_York")
        assert rule.preview(1) == ()
        assert len(looked_for) < 10
        assert max(hi - lo for lo, hi in looked_for) <= timedelta(days=2 * 366)

    @pytest.mark.parametrize("text", ["FREQ=HOURLY;INTERVAL=24;BYHOUR=12", "FREQ=HOURLY;INTERVAL=25;BYHOUR=9"])
    def test_no_change_of_the_clocks_is_looked_for_beyond_the_window(self, looked_for: list[Window], text: str) -> None:
        rule = rrule(text, start="2045-01-02T10:00", tz="America/New_York")
        begin = datetime(2045, 1, 3, tzinfo=UTC)
        assert list(rule.between(begin, begin + timedelta(days=14))) == []
        assert all(hi <= begin + timedelta(days=14) for _, hi in looked_for)

    def test_a_day_that_no_month_has_is_looked_for_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        jumps: list[int] = []

        def jump(steps: elapsed._Steps, number: int, hi: int) -> int | None:
            jumps.append(number)
            return original(steps, number, hi)

        original = elapsed._Steps._jump
        monkeypatch.setattr(elapsed._Steps, "_jump", jump)
        assert rrule("FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30", start="2027-01-01T00:00", tz="UTC").preview(1) == ()
        assert jumps == [0]

    def test_positions_that_no_period_has_are_not_looked_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(elapsed._Steps, "_matches", lambda *_: pytest.fail("looked"))
        assert rrule("FREQ=MINUTELY;BYSECOND=0,30;BYSETPOS=3", start="2027-01-01T00:00", tz="UTC").preview(1) == ()


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Counter[Freq]:
    """Count at how many periods was looked; of days, at how many years."""
    count: Counter[Freq] = Counter()

    def counted(freq: Freq, periods: Callable[..., Iterator[list[int]]]) -> Callable[..., Iterator[list[int]]]:
        def each(*asked: Any) -> Iterator[list[int]]:
            for period in periods(*asked):
                count[freq] += 1
                yield period

        return each

    def of_year(*asked: Any, **more: Any) -> list[int]:
        count[Freq.DAILY] += 1
        return days_of_year(*asked, **more)

    monkeypatch.setattr(walls, "days_of_year", of_year)
    monkeypatch.setattr(
        walls,
        "_PERIODS",
        {freq: periods if freq is Freq.DAILY else counted(freq, periods) for freq, periods in walls._PERIODS.items()},
    )
    return count


class TestByDaysAndMore:
    @pytest.mark.parametrize(
        ("text", "freq", "periods"),
        [
            ("FREQ=YEARLY;INTERVAL=8;BYMONTH=2;BYMONTHDAY=30", Freq.YEARLY, 50 + 1),
            ("FREQ=YEARLY;INTERVAL=3;BYMONTH=2;BYMONTHDAY=30", Freq.YEARLY, 400 + 1),
            ("FREQ=MONTHLY;INTERVAL=12;BYMONTH=2", Freq.MONTHLY, 400 + 1),
            ("FREQ=WEEKLY;INTERVAL=20871;BYMONTH=7", Freq.WEEKLY, 1 + 1),
            ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=-32", Freq.MONTHLY, 0),
            ("FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=3", Freq.WEEKLY, 0),
            ("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", Freq.DAILY, 0),
            ("FREQ=DAILY;INTERVAL=7;BYDAY=TU", Freq.DAILY, 400 + 2),
            ("FREQ=DAILY;INTERVAL=14;BYDAY=TU", Freq.DAILY, 2 * 400 + 2),
        ],
    )
    def test_a_pattern_that_has_repeated_without_a_match_is_over(
        self, looked: Counter[Freq], text: str, freq: Freq, periods: int
    ) -> None:
        """The calendar repeats after 400 years, and with it the steps after as many of them as are needed to."""
        assert rrule(text, start="2026-03-02T09:00", tz="UTC").preview(1) == ()  # a Monday
        assert looked[freq] == periods

    def test_what_is_met_late_in_the_pattern_is_found_again_and_again(self) -> None:
        centuries = rrule("FREQ=YEARLY;INTERVAL=100;BYMONTH=2;BYMONTHDAY=29", start="2100-01-01", tz="UTC")
        assert [at.year for at in centuries.preview(4)] == [2400, 2800, 3200, 3600]

    def test_a_day_that_steps_of_days_meet_after_centuries_is_found(self) -> None:
        assert by_days("2000-03-04", 13).preview(1) == (next(leap_sundays("2000-03-04", 13)),)
        wanted = [at for at, _ in zip(leap_sundays("2000-02-20", 7), range(30), strict=False)]
        assert list(by_days("2000-02-20", 7).preview(30)) == wanted
