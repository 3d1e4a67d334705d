"""At which instant should an action fire?"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postdate.domain.instant import instant
from postdate.domain.moment import Moment, moment
from postdate.errors import Invalid, InvalidInstant, InvalidWallTime, InvalidZone

LISBON = "Europe/Lisbon"


def at(value: object, *, tz: str | None = None, default: str | None = None) -> Moment:
    return moment(value, tz=tz, gap="forward", fold="first", default_zone=lambda: default)  # type: ignore[arg-type]


def test_an_aware_datetime_and_text_with_an_offset_are_instants_without_intent() -> None:
    nine = datetime(2027, 7, 6, 9, tzinfo=UTC)
    assert at(nine) == Moment(publish_at=nine)
    assert at("2027-07-06T09:00Z", tz=LISBON) == Moment(publish_at=nine)
    assert at("2027-07-06 11:00:00.000+02:00") == Moment(publish_at=nine)


def test_a_wall_time_keeps_its_intent_beside_the_instant() -> None:
    """P74 as superseded, P76."""
    found = at("2027-07-06T09:00", tz=LISBON)
    assert found.publish_at == datetime(2027, 7, 6, 8, tzinfo=UTC)
    assert found.intent is not None
    assert (found.intent.wall_time, found.intent.tz) == ("2027-07-06T09:00", LISBON)


def test_the_callers_zone_goes_before_the_owners() -> None:
    """P5."""
    assert at("2027-07-06T09:00", tz=LISBON, default="Asia/Tokyo").publish_at.hour == 8
    assert at("2027-07-06T09:00", default="Asia/Tokyo").publish_at.hour == 0


def test_a_wall_time_without_any_zone_is_refused() -> None:
    """P95: nothing is silently UTC."""
    with pytest.raises(InvalidZone, match="without a zone"):
        at("2027-07-06T09:00")
    with pytest.raises(InvalidZone):
        at("2027-07-06T09:00", default="")


def test_a_naive_datetime_is_a_wall_time_only_where_its_zone_stands_beside_it() -> None:
    naive = datetime(2027, 7, 6, 9)  # noqa: DTZ001 - naive on purpose
    assert at(naive, tz=LISBON).publish_at == datetime(2027, 7, 6, 8, tzinfo=UTC)
    with pytest.raises(InvalidInstant, match="naive"):
        at(naive, default=LISBON)


@pytest.mark.parametrize("odd", [None, 0, 1.5, b"2027", ["2027-07-06T09:00Z"], datetime(2027, 1, 1).date()])  # noqa: DTZ001
def test_what_is_neither_text_nor_datetime_is_refused(odd: object) -> None:
    with pytest.raises(InvalidInstant):
        at(odd, tz="UTC")


@pytest.mark.parametrize(
    "odd",
    ["2027-07-06", "2027-07-06T25:00Z", "2027-02-30T09:00Z", "２０27-07-06T09:00Z", "2027-07-06T09:00z", "now", ""],
)
def test_text_that_names_no_instant_is_refused(odd: str) -> None:
    with pytest.raises(InvalidInstant):
        instant(odd, field="since")
    for tz in ("UTC", None):
        with pytest.raises((InvalidInstant, InvalidWallTime)):
            at(odd, tz=tz)


def test_text_finer_than_microseconds_is_told_so() -> None:
    for read in (at, lambda text: instant(text, field="since"), lambda text: at(text[:-1], tz=LISBON)):
        with pytest.raises((InvalidInstant, InvalidWallTime), match="at most six digits"):
            read("2027-07-06T09:00:00.123456789Z")


def test_the_calendar_ends_where_utc_does() -> None:
    """SC59."""
    assert at("9999-12-31T23:59:59.999999Z").publish_at == datetime.max.replace(tzinfo=UTC)
    with pytest.raises(InvalidInstant):
        at("9999-12-31T23:59:59-01:00")
    with pytest.raises(InvalidInstant):
        at(datetime.min.replace(tzinfo=timezone(timedelta(hours=1))))


@given(value=st.text(max_size=100) | st.integers() | st.none() | st.datetimes(), tz=st.none() | st.text(max_size=40))
def test_no_input_raises_anything_but_what_it_should(value: object, tz: str | None) -> None:
    with suppress(Invalid):
        assert at(value, tz=tz).publish_at.tzinfo is UTC
