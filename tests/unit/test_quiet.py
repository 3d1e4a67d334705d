"""Is it a quiet hour, and when does it end?"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from postdate import Invalid, InvalidZone, QuietHours
from postdate.domain.quiet import EVERY_DAY, LONGEST_QUIET, quiet_until

NEW_YORK, LONDON, APIA = "America/New_York", "Europe/London", "Pacific/Apia"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def until(now: str, *hours: str, tz: str = "UTC") -> str | None:
    end = quiet_until([QuietHours.parse(each) for each in hours], now=at(now), tz=tz)
    return None if end is None else f"{end:%Y-%m-%d %H:%M}"


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2027-01-12 21:59:59.999999", None),
        ("2027-01-12 22:00", "2027-01-13 08:00"),
        ("2027-01-12 23:59", "2027-01-13 08:00"),
        ("2027-01-13 00:00", "2027-01-13 08:00"),
        ("2027-01-13 07:59:59.999999", "2027-01-13 08:00"),
        ("2027-01-13 08:00", None),
        ("2027-01-13 12:00", None),
    ],
)
def test_they_begin_with_their_first_instant_go_over_midnight_and_end_before_their_last(
    now: str, end: str | None
) -> None:
    assert until(now, "22:00-08:00") == end


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2027-01-12 12:59", None),  # a Tuesday
        ("2027-01-12 13:00", "2027-01-12 14:30"),
        ("2027-01-12 14:30", None),
    ],
)
def test_they_may_be_within_a_day(now: str, end: str | None) -> None:
    assert until(now, "13:00-14:30") == end


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2027-01-15 23:00", "2027-01-16 08:00"),  # Friday night belongs to Friday
        ("2027-01-16 07:00", "2027-01-16 08:00"),
        ("2027-01-16 23:00", None),  # Saturday night does not
        ("2027-01-17 07:00", None),
        ("2027-01-18 07:00", None),  # nor does the night before Monday
        ("2027-01-18 23:00", "2027-01-19 08:00"),
    ],
)
def test_a_night_belongs_to_the_day_on_which_it_begins(now: str, end: str | None) -> None:
    assert until(now, "mon-fri 22:00-08:00") == end


def test_equal_times_make_a_whole_day_and_days_that_touch_make_one_quiet() -> None:
    assert until("2027-01-16 00:00", "sat,sun 00:00-00:00") == "2027-01-18 00:00"
    assert until("2027-01-15 23:00", "sat,sun 00:00-00:00", "fri 22:00-00:00") == "2027-01-18 00:00"
    assert until("2027-01-18 00:00", "sat,sun 00:00-00:00") is None
    assert until("2027-01-16 15:00", "sat 09:00-09:00") == "2027-01-17 09:00"


@pytest.mark.parametrize(
    ("now", "hours", "tz", "end"),
    [
        # New York springs forward at 07:00 UTC on 14 March 2027, from 02:00 to 03:00
        ("2027-03-14 03:00", "22:00-08:00", NEW_YORK, "2027-03-14 12:00"),  # a night of nine hours
        ("2027-03-13 04:00", "22:00-08:00", NEW_YORK, "2027-03-13 13:00"),  # the one before, of ten
        ("2027-03-14 06:00", "00:00-02:30", NEW_YORK, "2027-03-14 07:30"),  # the end is skipped: moved on, to 03:30
        ("2027-03-14 07:00", "02:30-04:00", NEW_YORK, None),  # the start is skipped: 03:30
        ("2027-03-14 07:30", "02:30-04:00", NEW_YORK, "2027-03-14 08:00"),
        ("2027-03-14 07:15", "02:30-03:15", NEW_YORK, None),  # moved on, it begins after its end
        # and falls back at 06:00 UTC on 7 November, from 02:00 to 01:00
        ("2027-11-07 03:00", "22:00-08:00", NEW_YORK, "2027-11-07 13:00"),  # a night of eleven hours
        ("2027-11-07 05:00", "00:00-01:30", NEW_YORK, "2027-11-07 05:30"),  # the end comes twice: the first
        ("2027-11-07 06:15", "00:00-01:30", NEW_YORK, None),
        ("2027-11-07 05:29", "01:30-02:00", NEW_YORK, None),  # the start comes twice: the first
        ("2027-11-07 05:30", "01:30-02:00", NEW_YORK, "2027-11-07 07:00"),
        ("2027-03-28 00:30", "01:00-02:00", LONDON, None),  # skipped as a whole: it is from 02:00 to 02:00 there
        ("2027-03-28 01:00", "01:00-02:00", LONDON, None),
        # Apia had no 30 December 2011: the quiet that begins on the 29th ends when the 31st begins
        ("2011-12-30 09:59", "22:00-00:00", APIA, "2011-12-30 10:00"),
    ],
)
def test_they_are_right_over_changes_of_the_clocks(now: str, hours: str, tz: str, end: str | None) -> None:
    assert until(now, hours, tz=tz) == end


def test_hours_with_a_zone_of_their_own_are_read_in_it() -> None:
    tokyo = QuietHours.parse("22:00-08:00", tz="Asia/Tokyo")
    assert quiet_until([tokyo], now=at("2027-01-12 13:00"), tz=NEW_YORK) == at("2027-01-12 23:00")
    with pytest.raises(InvalidZone):
        quiet_until([QuietHours.parse("22:00-08:00")], now=at("2027-01-12 13:00"), tz="Mars/Base")


@pytest.mark.parametrize("hours", [["00:00-00:00"], ["08:00-20:00", "20:00-08:00"], ["mon-sun 12:00-12:00"]])
def test_hours_that_leave_no_time_end_all_the_same(hours: list[str]) -> None:
    now = at("2027-01-12 13:00")
    end = quiet_until([QuietHours.parse(each) for each in hours], now=now, tz=NEW_YORK)
    assert end is not None
    assert LONGEST_QUIET <= end - now <= LONGEST_QUIET + timedelta(days=1)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("22:00-08:00", set(EVERY_DAY)),
        ("mon-fri 22:00-08:00", {1, 2, 3, 4, 5}),
        ("fri-mon 22:00-08:00", {5, 6, 7, 1}),
        ("wed 22:00-08:00", {3}),
        ("mon,wed-thu,sun 22:00-08:00", {1, 3, 4, 7}),
    ],
)
def test_they_are_written_as_text(text: str, days: set[int]) -> None:
    parsed = QuietHours.parse(text)
    assert (parsed.start, parsed.end, set(parsed.weekdays)) == (time(22), time(8), days)
    assert QuietHours.parse(str(parsed)) == parsed


MISWRITTEN: list[object] = [
    *("", "22-08", "22:00", "24:00-08:00", "22:60-08:00", "22:00-24:00", "22:00–08:00", "２２:00-08:00"),
    *("xyz 22:00-08:00", "mon- 22:00-08:00", "mon,,tue 22:00-08:00", "Mon 22:00-08:00", "mon-xyz 22:00-08:00"),
    *(" 22:00-08:00", "22:00-08:00 ", "22:00-08:00\n", None, 22, ["22:00-08:00"]),
]


@pytest.mark.parametrize("text", MISWRITTEN)
def test_what_is_not_of_that_form_is_refused(text: object) -> None:
    with pytest.raises(Invalid) as refused:
        QuietHours.parse(text)
    assert refused.value.field == "hours"


@pytest.mark.parametrize(
    "wrong",
    [
        {"start": time(22, 0, 1)},
        {"end": time(8, tzinfo=UTC)},
        {"weekdays": frozenset()},
        {"weekdays": frozenset({0})},
        {"weekdays": frozenset({8})},
        {"weekdays": frozenset({1.0})},
        {"weekdays": {1}},
        {"weekdays": None},
        {"start": "22:00"},
    ],
)
def test_values_have_to_be_minutes_and_days_too(wrong: dict[str, object]) -> None:
    given: dict[str, object] = {"start": time(22), "end": time(8), **wrong}
    with pytest.raises(Invalid):
        QuietHours(**given)  # type: ignore[arg-type]


clock_times = st.times().map(lambda each: each.replace(second=0, microsecond=0, fold=0))
hours = st.builds(
    QuietHours,
    start=clock_times,
    end=clock_times,
    weekdays=st.sets(st.integers(1, 7), min_size=1).map(frozenset),
    tz=st.sampled_from([None, APIA, "Asia/Kathmandu"]),
)
around_a_change = st.integers(0, 48 * 60).map(lambda minutes: at("2027-03-13") + timedelta(minutes=minutes))
instants = st.datetimes(timezones=st.just(UTC)) | around_a_change


@given(st.lists(hours, max_size=4), instants, st.sampled_from(["UTC", NEW_YORK, LONDON, APIA]))
@example([QuietHours(start=time(0), end=time(0))], datetime.max.replace(tzinfo=UTC), APIA)
@example([QuietHours(start=time(0), end=time(0))], datetime.min.replace(tzinfo=UTC), NEW_YORK)
def test_there_is_an_answer_for_every_instant_and_it_is_not_quiet_when_quiet_ends(
    some: list[QuietHours], now: datetime, tz: str
) -> None:
    end = quiet_until(some, now=now, tz=tz)
    if end is not None:
        assert now < end
        if end - now < LONGEST_QUIET:
            assert quiet_until(some, now=end, tz=tz) is None
