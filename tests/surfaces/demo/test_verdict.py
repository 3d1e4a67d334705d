"""Does the demo see what went wrong?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from demo.delivery import Delivery
from demo.ledger import Ledger
from demo.plan import plan

if TYPE_CHECKING:
    from demo.verdict import Verdict

START = datetime(2027, 3, 14, 9, tzinfo=UTC)
ROWS = plan(count=4, start=START, seconds=4, webhook_url="http://127.0.0.1:1")


def after(*milliseconds: float | None) -> Verdict:
    """Say what the verdict is when the rows arrive so late, None standing for never."""
    ledger = Ledger(ROWS)
    for row, late in zip(ROWS, milliseconds, strict=True):
        if late is not None:
            arrive(ledger, row.thing, row.due + timedelta(milliseconds=late))
    return ledger.verdict(late_after=timedelta(seconds=1))


def arrive(ledger: Ledger, thing: str, instant: datetime) -> None:
    ledger.note(Delivery(arrived=instant, action_id=UUID(int=1), thing=thing, what="a test"))


def test_each_arriving_once_and_in_time_passes() -> None:
    verdict = after(0, 3, 1000, 5)
    assert verdict.passed
    assert verdict.sent == 4


def test_one_that_never_arrives_is_lost_and_fails() -> None:
    verdict = after(0, 3, None, 5)
    assert not verdict.passed
    assert (verdict.sent, verdict.lost) == (3, ["demo-003"])


def test_one_that_arrives_twice_is_doubled_and_fails_and_counts_as_sent_once() -> None:
    ledger = Ledger(ROWS)
    for row in (*ROWS, ROWS[1]):
        arrive(ledger, row.thing, row.due)
    verdict = ledger.verdict(late_after=timedelta(seconds=1))
    assert not verdict.passed
    assert (verdict.sent, verdict.doubled, verdict.lost) == (4, ["demo-002"], [])


def test_one_that_arrives_over_a_second_after_it_was_due_is_late_and_fails() -> None:
    verdict = after(0, 3, 1001, 5)
    assert not verdict.passed
    assert verdict.late == ["demo-003"]


def test_one_that_arrives_before_it_was_due_is_early_and_fails() -> None:
    assert after(-5, 0, 0, 0).passed, "clocks may differ by 5 ms"
    verdict = after(-6, 0, 0, 0)
    assert not verdict.passed
    assert verdict.early == ["demo-001"]


def test_a_stranger_stands_for_none_of_the_rows() -> None:
    ledger = Ledger(ROWS)
    arrive(ledger, "hello", START)
    verdict = ledger.verdict(late_after=timedelta(seconds=1))
    assert verdict.sent == 0
    assert verdict.lost == [row.thing for row in ledger.waiting()] == [row.thing for row in ROWS]


@pytest.mark.parametrize(("percent", "expected"), [(0, 1), (25, 1), (50, 2), (51, 3), (99, 4), (100, 4)])
def test_a_percentile_is_the_lateness_that_so_many_did_not_exceed(percent: int, expected: int) -> None:
    assert after(4, 2, 1, 3).percentile(percent) == timedelta(milliseconds=expected)


def test_where_nothing_arrived_there_is_no_percentile() -> None:
    assert after(None, None, None, None).percentile(50) is None
