"""What can be asked of a rule, left out of it, added to it, said of it and written down?"""

from __future__ import annotations

import json
import pickle
from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise
from typing import Any

import pytest
from hypothesis import given, settings

from postdate.domain.recurrence import Rule, cron, every, load, rrule
from postdate.errors import Invalid, InvalidInstant, InvalidRule
from tests.unit.recurrence.cases import at, told
from tests.unit.recurrence.texts import texts_by_clock, texts_by_day

WEEKLY = rrule("FREQ=WEEKLY;BYDAY=TU;COUNT=12", start="2026-01-06T09:00", tz="Europe/Lisbon")
RULES: list[Rule] = [
    WEEKLY,
    rrule("FREQ=MINUTELY;INTERVAL=90", start="2026-01-06T09:00", tz="Europe/Lisbon"),
    cron("30 9 * * MON-FRI", tz="Europe/Lisbon"),
    cron("*/10 * * * *", tz="Europe/Lisbon"),
    every(timedelta(hours=7), anchor=at("2026-01-06T09:00Z")),
]


class TestAsking:
    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.describe())
    def test_windows_that_meet_share_no_instant_and_miss_none(self, rule: Rule) -> None:
        begin = at("2026-03-20T09:00Z")
        edges = [begin + timedelta(hours=9) * number for number in range(60)]
        pieces = [rule.between(lo, hi) for lo, hi in pairwise(edges)]
        assert [instant for piece in pieces for instant in piece] == list(rule.between(edges[0], edges[-1]))

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.describe())
    def test_later_means_later_and_a_window_holds_its_end(self, rule: Rule) -> None:
        first, second = rule.preview(2, after=at("2026-01-10T00:00Z"))
        assert next(rule.after(first)) == second
        assert next(rule.after(first - timedelta(microseconds=1))) == first
        assert list(rule.between(first, second)) == [second]
        assert list(rule.between(second, first)) == []

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.describe())
    def test_answers_are_plain_instants_in_utc_and_come_one_by_one(self, rule: Rule) -> None:
        instants = rule.after(at("2026-01-10T00:00Z"))
        assert iter(instants) is instants
        assert {(type(instant), instant.tzinfo) for instant in islice(instants, 5)} == {(datetime, UTC)}

    def test_an_instant_of_another_zone_is_the_same_instant(self) -> None:
        assert next(WEEKLY.after(at("2026-01-06T10:00+01:00"))) == at("2026-01-13T09:00Z")

    def test_a_preview_is_the_first_of_all_or_of_those_after(self) -> None:
        assert WEEKLY.preview(0) == ()
        assert told(WEEKLY.preview(1)) == ["2026-01-06T09:00:00Z"]
        assert told(WEEKLY.preview(99))[-1] == "2026-03-24T09:00:00Z"
        assert len(WEEKLY.preview(99)) == 12
        assert told(WEEKLY.preview(1, after=at("2026-01-06T09:00Z"))) == ["2026-01-13T09:00:00Z"]

    def test_a_cron_expression_has_no_first_instant(self) -> None:
        with pytest.raises(InvalidInstant) as refusal:
            cron("0 9 * * *", tz="UTC").preview(1)
        assert refusal.value.field == "after"


class TestDates:
    def test_a_holiday_leaves_out_the_whole_local_day(self) -> None:
        rule = rrule(
            "FREQ=HOURLY;INTERVAL=6", start="2026-12-24T03:00", tz="America/New_York", exdates=[date(2026, 12, 25)]
        )
        days = [instant.astimezone(rule._zone).date().day for instant in rule.preview(6)]
        assert days == [24, 24, 24, 24, 26, 26]

    @pytest.mark.parametrize(
        "left_out",
        [
            datetime(2026, 1, 13, 9),  # noqa: DTZ001 - a wall time
            datetime(2026, 1, 13, 9, tzinfo=UTC),
            date(2026, 1, 13),
            "2026-01-13T09:00",
            "2026-01-13T09:00:00Z",
            "2026-01-13T10:00+01:00",
            "2026-01-13",
            "20260113T090000",
            "20260113T090000Z",
            "20260113",
        ],
    )
    def test_what_is_left_out_can_be_told_in_many_ways_and_counts(self, left_out: Any) -> None:
        rule = rrule(WEEKLY.text, start=WEEKLY.start, tz=WEEKLY.tz, exdates=[left_out])
        assert list(rule.preview(99)) == [
            instant for instant in WEEKLY.preview(99) if instant != at("2026-01-13T09:00Z")
        ]

    def test_what_is_left_out_of_summer_is_told_in_summers_time(self) -> None:
        rule = rrule("FREQ=DAILY;COUNT=3", start="2026-07-01T09:00", tz="Europe/Lisbon", exdates=["20260702T080000Z"])
        assert told(rule.preview(9)) == ["2026-07-01T08:00:00Z", "2026-07-03T08:00:00Z"]

    def test_added_dates_come_in_order_once_and_beyond_the_end(self) -> None:
        rule = rrule(
            "FREQ=DAILY;COUNT=2",
            start="2026-01-05T09:00",
            tz="UTC",
            rdates=["2026-01-20T12:00", "2026-01-05T09:00", date(2026, 1, 7), "2026-01-01T00:00Z"],
        )
        days = ("01-01T00", "01-05T09", "01-06T09", "01-07T09", "01-20T12")
        assert told(rule.preview(9)) == [f"2026-{day}:00:00Z" for day in days]
        assert told(rule.between(at("2026-01-05T09:00Z"), at("2026-01-07T09:00Z"))) == [
            "2026-01-06T09:00:00Z",
            "2026-01-07T09:00:00Z",
        ]

    def test_what_is_left_out_is_left_out_of_the_added_too(self) -> None:
        rule = rrule(
            "FREQ=DAILY;COUNT=1", start="2026-01-05T09:00", tz="UTC", rdates=["2026-01-20"], exdates=["2026-01-20"]
        )
        assert told(rule.preview(9)) == ["2026-01-05T09:00:00Z"]

    def test_an_added_time_that_clocks_skip_follows_the_policy(self) -> None:
        added = {"rdates": ["2026-03-08T02:30"], "start": "2026-01-05T09:00", "tz": "America/New_York"}
        assert told(rrule("FREQ=DAILY;COUNT=1", **added).preview(9))[1:] == ["2026-03-08T07:30:00Z"]  # type: ignore[arg-type]
        assert rrule("FREQ=DAILY;COUNT=1", gap="reject", **added).preview(9)[1:] == ()  # type: ignore[arg-type]

    def test_the_last_day_of_until_is_within(self) -> None:
        rule = rrule("FREQ=DAILY;UNTIL=20260107", start="2026-01-05T23:30", tz="America/New_York")
        assert told(rule.preview(9))[-1] == "2026-01-08T04:30:00Z"
        hourly = rrule("FREQ=HOURLY;UNTIL=20260105", start="2026-01-05T22:30", tz="America/New_York")
        assert told(hourly.preview(9)) == ["2026-01-06T03:30:00Z", "2026-01-06T04:30:00Z"]


class TestIntervals:
    MICROSECOND = timedelta(microseconds=1)

    @pytest.mark.parametrize(
        ("now", "expected"), [(1000, 1100), (1350, 1400), (1300, 1400), (1099, 1100), (1100, 1200)]
    )
    def test_the_next_one_is_the_anchor_and_whole_intervals_strictly_later(self, now: int, expected: int) -> None:
        epoch = at("1970-01-01T00:00Z")
        rule = every(100 * self.MICROSECOND, anchor=epoch + 1000 * self.MICROSECOND)
        assert next(rule.after(epoch + now * self.MICROSECOND)) == epoch + expected * self.MICROSECOND

    def test_the_anchor_is_the_first(self) -> None:
        rule = every(timedelta(days=1), anchor=at("2026-01-05T09:00Z"))
        assert told(rule.preview(2)) == ["2026-01-05T09:00:00Z", "2026-01-06T09:00:00Z"]

    def test_months_of_milliseconds_are_jumped_over(self) -> None:
        rule = every(timedelta(milliseconds=100), anchor=at("2020-01-01T00:00Z"))
        assert next(rule.after(at("2026-01-05T09:00Z"))) == at("2026-01-05T09:00:00.100000Z")

    @pytest.mark.parametrize("interval", [timedelta(0), -timedelta(1), 5, 1.5, "PT5M", None])
    def test_nothing_and_less_are_no_interval(self, interval: Any) -> None:
        with pytest.raises(InvalidRule) as refusal:
            every(interval, anchor=at("2026-01-05T09:00Z"))
        assert (refusal.value.field, refusal.value.part) == ("every", "interval")


class TestWords:
    @pytest.mark.parametrize(
        ("rule", "words"),
        [
            (WEEKLY, "every Tuesday at 09:00, 12 times"),
            ("FREQ=DAILY;COUNT=1", "every day at 09:30, once"),
            ("FREQ=DAILY;BYDAY=MO,TU,WE,TH,FR", "every Monday to Friday at 09:30"),
            ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE", "every 2 weeks on Monday and Wednesday at 09:30"),
            ("FREQ=MONTHLY", "every month on the 31st at 09:30"),
            ("FREQ=MONTHLY;BYMONTHDAY=-1,1", "every month on the 1st and last at 09:30"),
            ("FREQ=MONTHLY;BYDAY=-1FR;UNTIL=20271231", "every month on the last Friday at 09:30, until 2027-12-31"),
            ("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "every month on Friday, if that is the 13th at 09:30"),
            ("FREQ=YEARLY", "every year on 31 August at 09:30"),
            ("FREQ=YEARLY;BYWEEKNO=20,-1", "every year on Monday in the 20th and last week at 09:30"),
            ("FREQ=DAILY;BYHOUR=9,17;BYMINUTE=0", "every day at 09:00 and 17:00"),
            (
                "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
                "every month on Monday to Friday at 09:30, of these the last in each month",
            ),
            (
                "FREQ=HOURLY;INTERVAL=6;UNTIL=20270101T000000Z",
                "every 6 hours, until 2027-01-01 00:00 UTC, from 2026-08-31 09:30",
            ),
            (
                every(timedelta(minutes=90), anchor=at("2026-03-01T09:00Z")),
                "every 90 minutes from 2026-03-01 09:00 UTC",
            ),
            (every(timedelta(days=1), anchor=at("2026-03-01T09:00:30Z")), "every day from 2026-03-01 09:00:30 UTC"),
            (cron("0 9 * * MON-FRI", tz="UTC"), "at 09:00 on Monday to Friday"),
            (cron("@monthly", tz="UTC"), "at 00:00 on the 1st"),
            (cron("*/5 9-17 * * *", tz="UTC"), "every 5 minutes of hour 9 to 17"),
            (
                cron("*/7 * 13 * 5", tz="UTC"),
                "at minute 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour on the 13th or on Friday",
            ),
            (cron("0 9 L 1,7 *", tz="UTC"), "at 09:00 on the last day in January and July"),
            (cron("0 9 * * 5#2", tz="UTC"), "at 09:00 on the 2nd Friday"),
        ],
        ids=str,
    )
    def test_a_rule_is_said_in_words(self, rule: Rule | str, words: str) -> None:
        said = rrule(rule, start="2026-08-31T09:30", tz="UTC") if isinstance(rule, str) else rule
        assert said.describe() == words

    def test_left_out_and_added_dates_are_said(self) -> None:
        rule = rrule(
            "FREQ=DAILY", start="2026-01-05", tz="UTC", exdates=["2026-01-06"], rdates=["20260105T10", "2027-01-01"][1:]
        )
        assert rule.describe() == "every day at 00:00, but not on 1 date, and on 1 date more"

    @settings(max_examples=200)
    @given(texts_by_day() | texts_by_clock())
    def test_there_are_words_for_every_rule(self, text: str) -> None:
        words = rrule(text, start="2026-01-05T09:00", tz="UTC").describe()
        assert words.startswith("every ")
        assert "  " not in words


class TestWritingDown:
    FULL = rrule(
        "FREQ=DAILY",
        start="2026-01-05T09:00",
        tz="Europe/Lisbon",
        exdates=["2026-12-25", "2026-03-01T09:00", "20260401T080000Z"],
        rdates=["2026-05-01T12:00"],
        gap="reject",
        fold="second",
    )

    @pytest.mark.parametrize("rule", [*RULES, FULL], ids=lambda rule: rule.describe())
    def test_what_is_written_down_is_read_back_as_an_equal_rule(self, rule: Rule) -> None:
        read = load(json.loads(json.dumps(rule.dump())))
        assert (read, hash(read)) == (rule, hash(rule))
        since = at("2026-03-20T00:00Z")
        assert read.preview(20, after=since) == rule.preview(20, after=since)
        assert pickle.loads(pickle.dumps(rule)) == rule

    def test_what_is_optional_may_be_left_out(self) -> None:
        assert load({"form": "cron", "expr": "0 9 * * *", "tz": "UTC"}) == cron("0 9 * * *", tz="UTC")

    def test_the_order_of_dates_makes_no_other_rule(self) -> None:
        dates = ["2026-12-25", "2026-03-01T09:00", "2026-12-25"]
        one, other = (rrule("FREQ=DAILY", start="2026-01-05", tz="UTC", exdates=told) for told in (dates, dates[::-1]))
        assert one == other

    @pytest.mark.parametrize(
        ("record", "part"),
        [
            ([], "record"),
            ({}, "form"),
            ({"form": ["rrule"]}, "form"),
            ({"form": "rrule", "text": "FREQ=DAILY", "tz": "UTC"}, "start"),
            ({"form": "cron", "expr": "0 9 * * *", "tz": "UTC", "start": "2026-01-05"}, "record"),
            ({"form": "every", "interval": "5", "anchor": "2026-01-05T09:00Z"}, "interval"),
            ({"form": "every", "interval": True, "anchor": "2026-01-05T09:00Z"}, "interval"),
            ({"form": "every", "interval": 10**40, "anchor": "2026-01-05T09:00Z"}, "interval"),
            ({"form": "every", "interval": 5, "anchor": 5}, "anchor"),
        ],
        ids=str,
    )
    def test_a_record_that_is_none_is_refused(self, record: Any, part: str) -> None:
        with pytest.raises(InvalidRule) as refusal:
            load(record)
        assert refusal.value.part == part

    def test_rules_are_frozen(self) -> None:
        with pytest.raises(AttributeError):
            WEEKLY.text = "FREQ=DAILY"  # type: ignore[misc]
        assert issubclass(InvalidRule, Invalid)
        assert InvalidRule.permanent
