"""Is every text either a rule, or refused by name, with little work, and does every search end?"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postdate.domain.recurrence import cron, every, load, rrule
from postdate.errors import Invalid, InvalidInstant, InvalidRule, InvalidWallTime, InvalidZone
from tests.unit.recurrence.cases import at, at_most

if TYPE_CHECKING:
    from postdate.domain.recurrence import Rule

START = "2026-01-05T09:00"
ALL_HOURS, ALL_SIXTY = ",".join(map(str, range(24))), ",".join(map(str, range(60)))


class TestRRuleText:
    @pytest.mark.parametrize(
        ("text", "part", "why"),
        [
            ("", "text", "1 to 4000 characters"),
            ("FREQ=DAILY" + ";" * 4000, "text", "1 to 4000 characters"),
            ("FREQ=DAILY;", "text", "NAME=VALUE"),
            (";FREQ=DAILY", "text", "NAME=VALUE"),
            ("FREQ=", "text", "NAME=VALUE"),
            ("FREQ=DAILY;COUNT", "text", "NAME=VALUE"),
            ("FREQ=DAILY COUNT=3", "text", "without blanks"),
            ("FREQ=DAILY\nRRULE:FREQ=HOURLY", "text", "without blanks and line breaks"),
            ("FREQ=DAILY\u2028COUNT=3", "text", "printable ASCII"),
            ("FREQ=DAILY;COUNT=\uff13", "text", "printable ASCII"),
            ("FREQ=DAILY;COUNT=\u0663", "text", "printable ASCII"),
            ("\ufeffFREQ=DAILY", "text", "printable ASCII"),
            ("FREQ=DAILY\x00", "text", "printable ASCII"),
            ("FREQ=\U0001f600", "text", "printable ASCII"),
            ("RRULE:RRULE:FREQ=DAILY", "RRULE:FREQ", "is not a part"),
            ("DTSTART:19700101T000000Z;FREQ=DAILY", "text", "NAME=VALUE"),
            ("DTSTART=19700101T000000Z;FREQ=DAILY", "DTSTART", "is not a part"),
            ("EXDATE=20260101;FREQ=DAILY", "EXDATE", "is not a part"),
            ("BYEASTER=0;FREQ=YEARLY", "BYEASTER", "is not a part"),
            ("X" * 3000 + "=1;FREQ=DAILY", "X" * 20, "is not a part"),
            ("INTERVAL=2", "FREQ", "is missing"),
            ("FREQ=DAILY;FREQ=DAILY", "FREQ", "once"),
            ("FREQ=DAILY;INTERVAL=2;interval=3", "INTERVAL", "once"),
            ("FREQ=FORTNIGHTLY", "FREQ", "one of YEARLY"),
            ("FREQ=DAILY=WEEKLY", "FREQ", "one of YEARLY"),
            ("FREQ=DAILY;INTERVAL=0", "INTERVAL", "from 1"),
            ("FREQ=DAILY;INTERVAL=+2", "INTERVAL", "from 1"),
            ("FREQ=DAILY;INTERVAL=1e3", "INTERVAL", "from 1"),
            ("FREQ=DAILY;INTERVAL=0x2", "INTERVAL", "from 1"),
            ("FREQ=DAILY;INTERVAL=" + "9" * 3000, "INTERVAL", "from 1"),
            ("FREQ=DAILY;COUNT=1000000000", "COUNT", "to 100000"),
            ("FREQ=SECONDLY;BYHOUR=9;COUNT=10001", "COUNT", "at most 10000"),
            ("FREQ=DAILY;COUNT=3;UNTIL=20270101", "COUNT", "together with UNTIL"),
            ("FREQ=DAILY;UNTIL=20270229", "UNTIL", "day of the calendar"),
            ("FREQ=DAILY;UNTIL=20270101T240000", "UNTIL", "time of the day"),
            ("FREQ=DAILY;UNTIL=20270101T0000", "UNTIL", "form"),
            ("FREQ=DAILY;UNTIL=TZID=UTC:20270101", "UNTIL", "form"),
            ("FREQ=DAILY;UNTIL=99991231T235960", "UNTIL", "time of the day"),
            ("FREQ=MONTHLY;BYDAY=0MO", "BYDAY", "from 1 to 53"),
            ("FREQ=MONTHLY;BYDAY=54MO", "BYDAY", "from 1 to 53"),
            ("FREQ=MONTHLY;BYDAY=MO1", "BYDAY", "weekdays"),
            ("FREQ=MONTHLY;BYDAY=1", "BYDAY", "weekdays"),
            ("FREQ=MONTHLY;BYDAY=--1MO", "BYDAY", "weekdays"),
            ("FREQ=MONTHLY;BYDAY=MO,,TU", "BYDAY", "weekdays"),
            ("FREQ=WEEKLY;BYDAY=1MO", "BYDAY", "must not count weekdays in a WEEKLY"),
            ("FREQ=YEARLY;BYWEEKNO=1;BYDAY=1MO", "BYDAY", "beside BYWEEKNO"),
            ("FREQ=DAILY;BYHOUR=24", "BYHOUR", "from 0 to 23"),
            ("FREQ=DAILY;BYHOUR=-1", "BYHOUR", "from 0 to 23"),
            ("FREQ=DAILY;BYSECOND=60", "BYSECOND", "from 0 to 59"),
            ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=0", "BYSETPOS", "from 1 to 366"),
            ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=-367", "BYSETPOS", "from 1 to 366"),
            ("FREQ=DAILY;BYSETPOS=1", "BYSETPOS", "another BY part"),
            ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY", "no meaning in a WEEKLY"),
            (None, "text", "must be text"),
            (b"FREQ=DAILY", "text", "must be text"),
        ],
    )
    def test_what_is_no_rule_is_refused_by_part_and_reason(self, text: Any, part: str, why: str) -> None:
        with at_most(calls=1_000), pytest.raises(InvalidRule) as refusal:
            rrule(text, start=START, tz="UTC")
        assert (refusal.value.field, refusal.value.part) == ("rrule", part)
        assert why in refusal.value.why
        assert len(str(refusal.value)) < 400

    @pytest.mark.parametrize(
        "text", ["RRULE:FREQ=DAILY", "rrule:freq=daily", "FREQ=DAILY;INTERVAL=01", "FREQ=DAILY;WKST=SU"]
    )
    def test_ways_of_writing_the_same_rule_are_read(self, text: str) -> None:
        assert rrule(text, start=START, tz="UTC").preview(2) == (at("2026-01-05T09:00Z"), at("2026-01-06T09:00Z"))


class TestWhatStandsBesideTheText:
    @pytest.mark.parametrize(
        ("start", "why"),
        [
            ("2026-02-30T09:00", "day of the calendar"),
            ("20260230", "day of the calendar"),
            ("tomorrow", "must be a day (2027-12-25) or a wall time"),
            ("2026-01-05T09:00Z", "must be a wall time"),
            (datetime(2026, 1, 5, 9, tzinfo=UTC), "must be a wall time"),
            ("2026-01-05T09:00:00.5", "whole second"),
            (1_767_600_000, "must be a date"),
            (None, "must be a date"),
        ],
    )
    def test_a_start_that_is_no_wall_time(self, start: Any, why: str) -> None:
        with pytest.raises(InvalidRule) as refusal:
            rrule("FREQ=DAILY", start=start, tz="UTC")
        assert refusal.value.part == "start"
        assert why in refusal.value.why

    @pytest.mark.parametrize("part", ["exdates", "rdates"])
    @pytest.mark.parametrize("dates", ["2026-01-05", 5, [5], ["2026-13-01"], ["P1D"], [None], [b"2026"]])
    def test_a_date_that_is_none(self, part: str, dates: Any) -> None:
        with pytest.raises(InvalidRule) as refusal:
            rrule("FREQ=DAILY", start=START, tz="UTC", **{part: dates})
        assert refusal.value.part == part

    def test_more_dates_than_anybody_keeps(self) -> None:
        days = (date(2000, 1, 1) + timedelta(days=number) for number in range(10**9))
        with at_most(calls=50_000), pytest.raises(InvalidRule, match="at most 5000"):
            rrule("FREQ=DAILY", start=START, tz="UTC", exdates=days)

    @pytest.mark.parametrize("tz", ["", "America", "utc", "+01:00", None, "x" * 10_000])
    def test_a_zone_that_is_none(self, tz: Any) -> None:
        with pytest.raises(InvalidZone):
            rrule("FREQ=DAILY", start=START, tz=tz)
        with pytest.raises(InvalidZone):
            cron("0 9 * * *", tz=tz)

    @pytest.mark.parametrize("policy", [{"gap": "skip"}, {"fold": 0}])
    def test_a_policy_that_is_none(self, policy: Any) -> None:
        with pytest.raises(InvalidWallTime):
            rrule("FREQ=DAILY", start=START, tz="UTC", **policy)
        with pytest.raises(InvalidWallTime):
            cron("0 9 * * *", tz="UTC", **policy)

    def test_naive_ends_of_a_window_are_refused(self) -> None:
        naive = datetime(2026, 1, 1)  # noqa: DTZ001
        for rule in (
            rrule("FREQ=DAILY", start=START, tz="UTC"),
            cron("0 9 * * *", tz="UTC"),
            every(timedelta(1), anchor=at("2026-01-01T00:00Z")),
        ):
            with pytest.raises(InvalidInstant):
                rule.after(naive)
            with pytest.raises(InvalidInstant):
                rule.between(at("2026-01-01T00:00Z"), naive)

    @pytest.mark.parametrize("many", [-1, 1001, 2.0, True, "3", None])
    def test_a_preview_of_too_many_or_none(self, many: Any) -> None:
        with pytest.raises(Invalid) as refusal:
            rrule("FREQ=DAILY", start=START, tz="UTC").preview(many)
        assert refusal.value.field == "n"


class TestCronText:
    @pytest.mark.parametrize(
        ("expr", "part", "why"),
        [
            ("60 * * * *", "minute", "0 to 59"),
            ("* 24 * * *", "hour", "0 to 23"),
            ("*/0 * * * *", "minute", "step from 1"),
            ("*/61 * * * *", "minute", "step from 1"),
            ("* */25 * * *", "hour", "step from 1"),
            ("*/5/5 * * * *", "minute", "must be numbers"),
            ("1-5-9 * * * *", "minute", "must be numbers"),
            ("-5 * * * *", "minute", "must be numbers"),
            ("*5 * * * *", "minute", "must be numbers"),
            ("005 * * * *", "minute", "0 to 59"),
            (", * * * *", "minute", "must be numbers"),
            ("L * * * *", "minute", "0 to 59"),
            ("* * L-3 * *", "day of month", "1 to 31"),
            ("* * 15W * *", "day of month", "1 to 31"),
            ("* * ? * *", "day of month", "must be numbers"),
            ("* * * * L", "day of week", "0 to 7"),
            ("* * * * 1#6", "day of week", "must be numbers"),
            ("* * * * 8#1", "day of week", "0 to 7"),
            ("* * * * #1", "day of week", "must be numbers"),
            ("* * * * fri-mon", "day of week", "rise"),
            ("* * * dec-jan *", "month", "rise"),
            ("* 22-2 * * *", "hour", "rise"),
            ("* * * 13 *", "month", "1 to 12"),
            ("* * * january *", "month", "1 to 12 or JAN to DEC"),
            ("0 0 30 2 *", "day of month", "one of the months"),
            ("0 0 31 2,4,6,9,11 *", "day of month", "one of the months"),
            ("0 0 31 feb */2", "day of month", "one of the months"),
            ("* * * * * *", "text", "five fields"),
            ("0 9 * *\n* * * * *", "text", "one line"),
            ("@every 5m", "text", "five fields or one of"),
            ("R R * * *", "minute", "0 to 59"),
            ("   ", "text", "five fields"),
            ("*" * 501, "text", "1 to 500 characters"),
            (None, "text", "must be text"),
        ],
    )
    def test_what_is_no_expression_is_refused_by_field_and_reason(self, expr: Any, part: str, why: str) -> None:
        with at_most(calls=1_000), pytest.raises(InvalidRule) as refusal:
            cron(expr, tz="UTC")
        assert (refusal.value.field, refusal.value.part) == ("cron", part)
        assert why in refusal.value.why

    @pytest.mark.parametrize(
        ("expr", "same"),
        [
            ("@daily", "0 0 * * *"),
            ("@midnight", "0 0 * * *"),
            ("@Hourly", "0 * * * *"),
            ("0\t9 * *  *", "0 9 * * *"),
            (" 0 9 * * * ", "0 9 * * *"),
            ("0 9 * * 7", "0 9 * * 0"),
            ("0 9 * * 5-7", "0 9 * * FRI,sat,SUN"),
            ("5-5/2 * * * *", "5 * * * *"),
            ("0 9 * JAN-mar *", "0 9 * 1,2,3 *"),
            ("58/2 * * * *", "58 * * * *"),
            ("0 0 31 4 1", "0 0 * 4 1"),
        ],
    )
    def test_two_ways_of_writing_fire_alike(self, expr: str, same: str) -> None:
        since = at("2026-01-01T00:00Z")
        assert cron(expr, tz="UTC").preview(30, after=since) == cron(same, tz="UTC").preview(30, after=since)


NEVER = [
    "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=YEARLY;BYMONTHDAY=31;BYMONTH=2",
    "FREQ=MONTHLY;BYMONTHDAY=31;BYMONTH=2,4,6,9,11",
    "FREQ=MONTHLY;INTERVAL=12;BYMONTH=2",
    "FREQ=YEARLY;BYWEEKNO=53;BYMONTH=6",
    "FREQ=YEARLY;BYYEARDAY=366;BYMONTH=1",
    "FREQ=DAILY;INTERVAL=7;BYDAY=TU",
    "FREQ=DAILY;INTERVAL=14;BYDAY=TU",
    "FREQ=DAILY;BYHOUR=9;BYSETPOS=2",
    "FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=3",
    "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=-6",
    "FREQ=MINUTELY;BYSECOND=0;BYSETPOS=366",
    "FREQ=HOURLY;INTERVAL=24;BYHOUR=12",
    "FREQ=HOURLY;INTERVAL=24;BYHOUR=12;BYMONTH=7",
    "FREQ=MINUTELY;INTERVAL=1440;BYMINUTE=1",
    "FREQ=SECONDLY;INTERVAL=999999999;BYHOUR=9;BYMONTH=2;BYMONTHDAY=29;BYDAY=TU",
]
DENSE = [
    "FREQ=SECONDLY",
    "FREQ=SECONDLY;INTERVAL=86399;BYHOUR=9",
    f"FREQ=DAILY;BYHOUR={ALL_HOURS};BYMINUTE={ALL_SIXTY};BYSECOND={ALL_SIXTY}",
    f"FREQ=YEARLY;BYDAY=MO;BYSETPOS=-366;BYHOUR={ALL_HOURS};BYMINUTE={ALL_SIXTY};BYSECOND={ALL_SIXTY}",
    "FREQ=WEEKLY;COUNT=100000",
    "FREQ=WEEKLY;INTERVAL=999999999",
    "FREQ=YEARLY;INTERVAL=999999999",
]


class TestSearchesEnd:
    @pytest.mark.parametrize("tz", ["UTC", "America/New_York"])
    @pytest.mark.parametrize("text", NEVER)
    def test_a_rule_that_never_fires_is_empty_at_once(self, text: str, tz: str) -> None:
        rule = rrule(text, start=START, tz=tz)
        with at_most(calls=400_000):
            assert rule.preview(1) == ()
            assert rule.preview(1, after=at("2300-01-01T00:00Z")) == ()

    @pytest.mark.parametrize("tz", ["UTC", "America/New_York"])
    @pytest.mark.parametrize(
        "start", [START, "0001-01-01T00:00", "1850-06-01T09:00:02", "9998-12-30T09:00", "9999-12-31"]
    )
    @pytest.mark.parametrize("text", NEVER + DENSE)
    def test_a_window_costs_what_lies_in_it(self, text: str, start: str, tz: str) -> None:
        rule = rrule(text, start=start, tz=tz)
        with at_most(calls=200_000):
            found = list(islice(rule.between(at("2026-03-01T00:00Z"), at("2026-03-15T00:00Z")), 50))
        assert all(left < right for left, right in pairwise(found))

    @pytest.mark.parametrize("tz", ["UTC", "Pacific/Kiritimati", "America/New_York", "Etc/GMT+12", "Etc/GMT-14"])
    def test_the_calendar_ends_without_an_error(self, tz: str) -> None:
        rules: list[Rule] = [
            *(
                rrule(text, start="9999-12-29T06:00", tz=tz)
                for text in ("FREQ=DAILY", "FREQ=HOURLY", "FREQ=MONTHLY", "FREQ=YEARLY")
            ),
            every(timedelta(days=1), anchor=at("9999-12-29T06:00Z")),
            cron("0 9 * * *", tz=tz),
            cron("*/30 * * * *", tz=tz),
        ]
        for rule in rules:
            assert len(list(rule.after(at("9999-12-30T20:00Z")))) <= 60
            assert list(rule.after(at("9999-12-31T23:59:59Z"))) == []

    @pytest.mark.parametrize("tz", ["UTC", "America/New_York", "Etc/GMT+12", "Etc/GMT-14"])
    @pytest.mark.parametrize("freq", ["HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY"])
    def test_all_of_a_rule_begins_with_its_start(self, freq: str, tz: str) -> None:
        rule = rrule(f"FREQ={freq}", start=START, tz=tz)
        (first,) = rule.preview(1)
        assert first.astimezone(rule._zone).replace(tzinfo=None) == rule.start
        assert rule.preview(1, after=datetime.min.replace(tzinfo=UTC)) == (first,)


class TestAnything:
    @settings(max_examples=300)
    @given(st.text(max_size=60) | st.text("FREQ=DAILYMONTH;BY0123456789,-+WKSTUER:", max_size=60))
    def test_any_text_is_a_rule_or_refused(self, text: str) -> None:
        try:
            rule = rrule(text, start=START, tz="UTC")
        except InvalidRule as refusal:
            assert len(str(refusal)) < 400  # noqa: PT017
        else:
            assert rule.describe()

    @settings(max_examples=300)
    @given(st.text(max_size=30) | st.text("0123456789*/-,# LWmonfrijan@daily", max_size=30))
    def test_any_text_is_an_expression_or_refused(self, text: str) -> None:
        try:
            rule = cron(text, tz="UTC")
        except InvalidRule as refusal:
            assert len(str(refusal)) < 400  # noqa: PT017
        else:
            assert rule.describe()
            assert len(rule.preview(2, after=at("2026-01-01T00:00Z"))) in {0, 2}

    @settings(max_examples=200)
    @given(
        st.dictionaries(
            st.sampled_from(["form", "text", "start", "tz", "expr", "interval", "anchor", "gap", "exdates", "odd"]),
            st.sampled_from(
                ["rrule", "cron", "every", "FREQ=DAILY", START, "UTC", "* * * * *", 5, 10**30, None, [], {}, "forward"]
            ),
        )
    )
    def test_any_record_is_a_rule_or_refused(self, record: dict[str, Any]) -> None:
        try:
            rule = load(record)
        except Invalid as refusal:
            assert len(str(refusal)) < 400  # noqa: PT017
        else:
            assert load(rule.dump()) == rule
