"""Does a wall-clock time mean the right instant, and is everything that is none refused?"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postdate.domain import zones
from postdate.domain.walltime import Fold, Gap, resolve
from postdate.errors import InvalidWallTime, InvalidZone

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases" / "walltime.jsonl").read_text("utf-8").splitlines()
]
SECOND = timedelta(seconds=1)
NOON = "2026-05-20T12:00"


def _cases(*keys: str) -> pytest.MarkDecorator:
    chosen = [case for case in CASES if any(key in case["expect"] for key in keys)]
    return pytest.mark.parametrize("case", chosen, ids=[case["id"] for case in chosen])


def _wall(case: dict[str, Any]) -> object:
    """Return what a caller would pass: the joined text, or the part that is no text as it is."""
    parts = (case["date"], case["time"])
    return next((part for part in parts if not isinstance(part, str)), "T".join(map(str, parts)))


def _naive(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


class TestPublishedCases:
    def test_every_line_is_run_by_one_of_these_tests(self) -> None:
        known = {"utc", "utc_compatible", "utc_first", "refuse", "either"}
        assert [case["id"] for case in CASES if not known & case["expect"].keys()] == []

    @_cases("utc")
    @pytest.mark.parametrize("fold", ["first", "second"])
    def test_a_time_that_exists_once_is_that_instant(self, case: dict[str, Any], fold: Fold) -> None:
        expect = case["expect"]
        # system builds may carry other data for the years before 1970
        alternative = expect.get("utc_alt") if zones.tzdata_version()[1] == "system" else None
        answers = [_utc(text) for text in (expect["utc"], alternative) if text]
        assert resolve(_wall(case), case["tz"], gap="reject", fold=fold) in answers

    @_cases("utc_compatible")
    @pytest.mark.parametrize("fold", ["first", "second"])
    def test_a_skipped_time_moves_forward_or_is_rejected(self, case: dict[str, Any], fold: Fold) -> None:
        assert resolve(_wall(case), case["tz"], fold=fold) == _utc(case["expect"]["utc_compatible"])
        with pytest.raises(InvalidWallTime, match="clocks skip it"):
            resolve(_wall(case), case["tz"], gap="reject", fold=fold)

    @_cases("utc_first")
    @pytest.mark.parametrize("gap", ["forward", "reject"])
    def test_a_repeated_time_is_the_first_or_the_second_pass(self, case: dict[str, Any], gap: Gap) -> None:
        assert resolve(_wall(case), case["tz"], gap=gap) == _utc(case["expect"]["utc_first"])
        assert resolve(_wall(case), case["tz"], gap=gap, fold="second") == _utc(case["expect"]["utc_second"])

    @_cases("refuse", "either")
    def test_what_is_no_zone_or_no_wall_time_is_refused_by_name(self, case: dict[str, Any]) -> None:
        error, field = {"zone-string": (InvalidZone, "tz"), "text": (InvalidWallTime, "at")}[case["kind"]]
        with pytest.raises(error) as refusal:
            resolve(_wall(case), case["tz"])
        assert (type(refusal.value), refusal.value.field) == (error, field)


# --- around every change of every zone --------------------------------------------------------------------


class Span(NamedTuple):
    """A stretch of UTC, as naive datetimes, over which a zone keeps one offset."""

    start: datetime
    end: datetime
    offset: timedelta


class Change(NamedTuple):
    """The moment at which a zone moves from one offset to another, with the spans around it."""

    zone: str
    at: datetime
    before: timedelta
    after: timedelta
    nearby: tuple[Span, ...]

    def readings(self, wall: datetime) -> list[datetime]:
        """Return every instant near the change at which clocks show `wall`: found by trying each span."""
        tried = ((span, wall - span.offset) for span in self.nearby)
        return sorted(instant for span, instant in tried if span.start <= instant < span.end)

    def offset(self, instant: datetime) -> timedelta:
        return next(span.offset for span in self.nearby if span.start <= instant < span.end)


def _spans(name: str) -> list[Span]:
    """Search 1990 to 2037 from UTC alone, a week at a time, then by halves to the second."""
    rules = zones.zone(name)

    def offset(instant: datetime) -> timedelta:
        local = rules.fromutc(instant.replace(tzinfo=rules))
        return local.replace(tzinfo=None) - instant

    found, start, end = [], _naive("1990-01-01T00:00"), _naive("2038-01-01T00:00")
    at, current = start, offset(start)
    while at < end:
        low, high = at, at + timedelta(days=7)
        at = high
        if offset(high) == current:
            continue
        while high - low > SECOND:
            middle = low + (high - low) // SECOND // 2 * SECOND
            low, high = (middle, high) if offset(middle) == current else (low, middle)
        found.append(Span(start, high, current))
        at = start = high
        current = offset(high)
    return [*found, Span(start, end + timedelta(days=7), current)]


@cache
def _changes() -> list[Change]:
    """Return each change of each zone once: zones that are links of one another count as one."""
    distinct = {tuple(_spans(name)): name for name in sorted(zones._names().values())}
    return [
        Change(name, left.end, left.offset, right.offset, spans[max(0, i - 2) : i + 4])
        for spans, name in distinct.items()
        for i, (left, right) in enumerate(pairwise(spans))
    ]


def _aware(instant: datetime) -> datetime:
    return instant.replace(tzinfo=UTC)


class TestAroundEveryChange:
    @pytest.mark.parametrize(
        ("name", "at"),
        [
            ("America/New_York", _naive("2026-03-08T07:00")),
            ("Australia/Lord_Howe", _naive("2026-10-03T15:30")),
            ("Pacific/Apia", _naive("2011-12-30T10:00")),
        ],
    )
    def test_the_search_finds_well_known_changes(self, name: str, at: datetime) -> None:
        assert at in {span.start for span in _spans(name)}
        assert len(_changes()) > 5000

    def test_every_instant_comes_back_from_the_wall_time_it_shows(self) -> None:
        for change in _changes():
            half = abs(change.after - change.before) / 2
            for away in (-half, -SECOND, 0 * SECOND, SECOND, half, timedelta(days=1)):
                wall = change.at + away + change.offset(change.at + away)
                instants = change.readings(wall)
                assert change.at + away in instants, change
                assert len(instants) <= 2, change
                assert resolve(wall, change.zone, gap="reject") == _aware(instants[0]), change
                assert resolve(wall, change.zone, fold="second") == _aware(instants[-1]), change

    def test_a_skipped_time_moves_forward_by_exactly_the_gap(self) -> None:
        for change in _changes():
            length = change.after - change.before
            if length < timedelta(0):
                continue
            for into in (timedelta(0), length / 2, length - SECOND):
                wall = change.at + change.before + into
                assert change.readings(wall) == [], change
                instant = resolve(wall, change.zone).replace(tzinfo=None)
                assert instant + change.offset(instant) == wall + length, change
                with pytest.raises(InvalidWallTime):
                    resolve(wall, change.zone, gap="reject", fold="second")

    @pytest.mark.parametrize("fold", ["first", "second"])
    def test_times_that_clocks_show_keep_their_order(self, fold: Fold) -> None:
        for change in _changes():
            length = abs(change.after - change.before)
            middle = change.at + change.before
            walls = [middle + length * step / 2 for step in range(-4, 5)]
            instants = [resolve(wall, change.zone, fold=fold) for wall in walls if change.readings(wall)]
            assert all(left < right for left, right in pairwise(instants)), change


# --- what is accepted, and what is refused by which rule --------------------------------------------------


class TestForms:
    @pytest.mark.parametrize(
        ("wall", "expected"),
        [
            ("2026-05-20T09:00", datetime(2026, 5, 20, 7, tzinfo=UTC)),
            ("2026-05-20 09:00", datetime(2026, 5, 20, 7, tzinfo=UTC)),
            ("2026-05-20T09:00:01", datetime(2026, 5, 20, 7, 0, 1, tzinfo=UTC)),
            ("2026-05-20T09:00:01.5", datetime(2026, 5, 20, 7, 0, 1, 500_000, tzinfo=UTC)),
            ("2026-05-20T23:59:59.999999", datetime(2026, 5, 20, 21, 59, 59, 999_999, tzinfo=UTC)),
            ("2024-02-29T00:00", datetime(2024, 2, 28, 23, tzinfo=UTC)),
            (_naive("2026-05-20T09:00"), datetime(2026, 5, 20, 7, tzinfo=UTC)),
        ],
    )
    def test_extended_iso_text_and_naive_datetimes_are_read(self, wall: object, expected: datetime) -> None:
        instant = resolve(wall, "Europe/Berlin")
        assert (instant, instant.tzinfo) == (expected, UTC)

    def test_the_fold_of_a_naive_datetime_does_not_count(self) -> None:
        repeated = _naive("2026-11-01T01:30")
        answers = {resolve(repeated.replace(fold=side), "America/New_York") for side in (0, 1)}
        assert answers == {datetime(2026, 11, 1, 5, 30, tzinfo=UTC)}

    def test_a_subclass_of_datetime_gives_a_plain_datetime(self) -> None:
        class Stamp(datetime):
            pass

        assert type(resolve(Stamp(2026, 5, 20, 9), "UTC")) is datetime

    @pytest.mark.parametrize(
        ("wall", "rule"),
        [
            ("20260520T0900", "must have the form"),
            ("2026-05-20T0900", "must have the form"),
            ("2026-W21-3T09:00", "must have the form"),
            ("2026-140T09:00", "must have the form"),
            ("2026-05-20", "must have the form"),
            ("2026-05-20T09", "must have the form"),
            ("2026-05-20t09:00", "must have the form"),
            ("2026-05-20  09:00", "must have the form"),
            ("2026-5-20T9:00", "must have the form"),
            ("+2026-05-20T09:00", "must have the form"),
            ("12026-05-20T09:00", "must have the form"),
            ("2026-05-20T09:00:00,5", "must have the form"),
            ("2026-05-20T09:00:00.", "must have the form"),
            ("2026-05-20T09:00:00.1234567", "at most six digits"),
            ("2026-05-20T09:00\x00", "must have the form"),
            ("", "must have the form"),
            (" 2026-05-20T09:00", "blanks"),
            ("2026-05-20T09:00\n", "blanks"),
            ("２026-05-20T09:00", "must be ASCII"),
            ("2026-05-20T09:0٣", "must be ASCII"),
            ("2026\u201105-20T09:00", "must be ASCII"),
            ("2026-05-20T09:00Z", "offset"),
            ("2026-05-20T09:00:00.000000+05:30", "offset"),
            ("2026-05-20T09:00-0400", "offset"),
            ("2026-05-20T09:00[Europe/Paris]", "offset"),
            ("2026-05-20T24:00", "hour from 00 to 23"),
            ("2026-05-20T09:60", "from 00 to 59"),
            ("2016-12-31T23:59:60", "no leap seconds"),
            ("2026-02-29T09:00", "day of the calendar"),
            ("0000-01-01T09:00", "day of the calendar"),
            ("2026-05-20T09:00" + "0" * 10_000_000, "at most 64 characters"),
            (datetime(2026, 5, 20, 9, tzinfo=UTC), "must be naive"),
            (date(2026, 5, 20), "text or a naive datetime"),
            (None, "text or a naive datetime"),
            (b"2026-05-20T09:00", "text or a naive datetime"),
            (1_779_267_600, "text or a naive datetime"),
        ],
    )
    def test_a_refused_wall_time_names_its_rule(self, wall: object, rule: str) -> None:
        with pytest.raises(InvalidWallTime) as refusal:
            resolve(wall, "UTC")
        assert refusal.value.field == "at"
        assert rule in refusal.value.rule
        assert refusal.value.value is wall
        assert len(str(refusal.value)) < 250

    def test_a_datetime_that_has_no_date_is_refused(self) -> None:
        class NotATime(datetime):
            def date(self) -> date:
                raise ValueError

        with pytest.raises(InvalidWallTime, match="day of the calendar"):
            resolve(NotATime(2026, 1, 1), "UTC")

    @pytest.mark.parametrize(
        ("wall", "tz"), [("9999-12-31T23:59", "America/New_York"), ("0001-01-01T00:00", "Asia/Tokyo")]
    )
    def test_an_instant_beyond_the_calendar_is_refused(self, wall: str, tz: str) -> None:
        with pytest.raises(InvalidWallTime, match="outside the years 1 to 9999"):
            resolve(wall, tz)

    @pytest.mark.parametrize("choice", ["", "FORWARD", "earlier", None, 0, True, ["forward"], {}])
    @pytest.mark.parametrize("field", ["gap", "fold"])
    def test_an_unknown_policy_is_refused_even_where_it_would_not_matter(self, field: str, choice: object) -> None:
        with pytest.raises(InvalidWallTime) as refusal:
            resolve(NOON, "UTC", **{field: choice})  # type: ignore[arg-type]
        assert refusal.value.field == field


# --- whatever comes in ------------------------------------------------------------------------------------

NEAR_WALLS = st.from_regex(r"[ -]?[0-9]{3,5}-[0-9]{2}-[0-9]{2}.[0-9]{2}:[0-9]{2}(:[0-9.,+Z-]{0,12})?\s?")
NEAR_ZONES = st.from_regex(r"(right/|posix/|\.\./|/)?[A-Z][A-Za-z_+-]{1,12}(/[A-Z][a-z_]{1,12})?[\x00 .+0-9]{0,3}")
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates()
ANYTHING = (
    st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))
    | st.datetimes()
    | st.datetimes(timezones=st.timezones())
    | st.timezones()
)
KNOWN_ZONES = st.deferred(lambda: st.sampled_from(sorted(zones._names().values())))


class TestAnything:
    @settings(max_examples=300, deadline=None)
    @given(wall=st.just(NOON) | NEAR_WALLS | ANYTHING, tz=KNOWN_ZONES | NEAR_ZONES | ANYTHING)
    def test_the_answer_is_an_instant_in_utc_or_one_of_two_errors(self, wall: object, tz: object) -> None:
        try:
            instant = resolve(wall, tz)
        except (InvalidZone, InvalidWallTime) as refusal:
            assert len(str(refusal)) < 250  # noqa: PT017
        else:
            assert (type(instant), instant.tzinfo) == (datetime, UTC)
            assert isinstance(wall, str | datetime)
            assert tz in zones._names().values()

    @settings(max_examples=300, deadline=None)
    @given(
        wall=st.datetimes(_naive("0001-01-03T00:00"), _naive("9999-12-29T00:00")),
        tz=KNOWN_ZONES,
        fold=st.sampled_from(get_args(Fold)),
    )
    def test_text_and_datetime_agree_in_every_year(self, wall: datetime, tz: str, fold: Fold) -> None:
        instant = resolve(wall, tz, fold=fold)
        assert resolve(wall.isoformat(), tz, fold=fold) == instant
        assert resolve(wall.isoformat(" ").replace(".000000", ""), tz, fold=fold) == instant
        assert abs(instant.replace(tzinfo=None) - wall) <= timedelta(hours=16)
