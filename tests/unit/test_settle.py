"""What becomes of an action once its run has ended?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postdate.domain.outcome import Deferred, NotSent, Outcome, Published, Rejected, Skipped, Unconfirmed
from postdate.domain.retry import LONGEST_WAIT, Backoff
from postdate.domain.settle import (
    Finished,
    Policy,
    Requeued,
    Settlement,
    duplicate,
    expired,
    never_started,
    settle,
)
from postdate.domain.states import MOVES, Cause, Reason, Status
from postdate.errors import Invalid, InvalidInstant

NOW = datetime(2026, 3, 8, 12, tzinfo=UTC)
STEADY = Backoff(first=timedelta(seconds=10), factor=2, longest=timedelta(minutes=1), spread=0)


def after(outcome: Outcome, *, attempt: int = 1, idempotent: bool = False, jitter: float = 0.5) -> Settlement:
    policy = Policy(auto_attempts=3, idempotent=idempotent, backoff=STEADY)
    return settle(outcome, attempt_count=attempt, policy=policy, now=NOW, jitter=jitter)


def test_a_success_is_published_with_the_providers_id() -> None:
    """P28, P61."""
    assert after(Published(provider_id="p-1")) == Finished(
        cause=Cause.PUBLISHED, status=Status.PUBLISHED, attempt_count=1, provider_id="p-1"
    )


def test_what_was_not_sent_waits_longer_each_time_and_then_is_exhausted() -> None:
    """P29, P32: automatic attempts are bounded by `auto_attempts`."""
    waits = [after(NotSent("refused"), attempt=attempt) for attempt in (1, 2)]
    assert [w.due_at - NOW for w in waits if isinstance(w, Requeued)] == [timedelta(seconds=10), timedelta(seconds=20)]
    last = after(NotSent("refused"), attempt=3)
    assert isinstance(last, Finished)
    assert (last.status, last.reason, last.error) == (Status.FAILED, Reason.EXHAUSTED, "refused")


def test_a_persons_retry_allows_one_more_attempt_and_no_more() -> None:
    """P-i1: one counter; attempt 4 is the retry's, and it is the last."""
    fourth = after(NotSent("refused"), attempt=4)
    assert isinstance(fourth, Finished)
    assert (fourth.reason, fourth.attempt_count) == (Reason.EXHAUSTED, 4)


def test_the_providers_wait_is_never_undercut() -> None:
    settled = after(NotSent("429", retry_after=300))
    assert isinstance(settled, Requeued)
    assert settled.due_at == NOW + timedelta(seconds=300)


def test_a_doubtful_run_is_unconfirmed_unless_the_type_is_idempotent() -> None:
    doubtful = after(Unconfirmed("connection lost"))
    assert isinstance(doubtful, Finished)
    assert (doubtful.status, doubtful.reason) == (Status.FAILED, Reason.UNCONFIRMED)
    again = after(Unconfirmed("connection lost"), idempotent=True)
    assert isinstance(again, Requeued)
    assert again.error == "connection lost"
    crashed_thrice = after(Unconfirmed("crashed"), idempotent=True, attempt=3)
    assert isinstance(crashed_thrice, Finished)
    assert crashed_thrice.reason is Reason.EXHAUSTED  # SC10


def test_a_refusal_fails_and_a_skip_cancels() -> None:
    rejected, skipped = after(Rejected("bounced")), after(Skipped("unsubscribed"))
    assert isinstance(rejected, Finished)
    assert isinstance(skipped, Finished)
    assert (rejected.status, rejected.reason) == (Status.FAILED, Reason.REJECTED)
    assert (skipped.status, skipped.reason, skipped.error) == (Status.CANCELLED, Reason.SKIPPED, "unsubscribed")


def test_deferring_gives_the_attempt_back_and_never_spins() -> None:
    """SC12: deferring is not failing."""
    later = after(Deferred(NOW + timedelta(hours=1)))
    assert later == Requeued(cause=Cause.DEFERRED, due_at=NOW + timedelta(hours=1), attempt_count=0)
    to_the_past = after(Deferred(NOW - timedelta(days=1)))
    assert isinstance(to_the_past, Requeued)
    assert to_the_past.due_at == NOW + timedelta(seconds=1)


def test_what_was_claimed_but_not_run_gets_its_attempt_back() -> None:
    assert expired(attempt_count=1).attempt_count == 0
    assert expired(attempt_count=1).reason is Reason.EXPIRED
    assert (duplicate(attempt_count=2).attempt_count, duplicate(attempt_count=2).status) == (1, Status.CANCELLED)
    assert never_started(attempt_count=1, now=NOW).attempt_count == 0


@given(
    outcome=st.one_of(
        st.builds(Published, provider_id=st.none() | st.text()),
        st.builds(NotSent, st.text(), retry_after=st.none() | st.floats() | st.integers() | st.timedeltas()),
        st.builds(Rejected, st.text()),
        st.builds(Unconfirmed, st.text()),
        st.builds(Skipped, st.text()),
        st.builds(Deferred, st.datetimes(timezones=st.just(UTC))),
    ),
    attempt=st.integers(1, 100),
    idempotent=st.booleans(),
    jitter=st.floats(0, 1),
)
def test_every_settlement_is_a_move_that_the_table_allows(
    outcome: Outcome, attempt: int, idempotent: bool, jitter: float
) -> None:
    settled = after(outcome, attempt=attempt, idempotent=idempotent, jitter=jitter)
    target = settled.status if isinstance(settled, Finished) else Status.QUEUED
    reason = settled.reason if isinstance(settled, Finished) else None
    moves = [m for m in MOVES if (m.source, m.cause, m.target) == (Status.SUBMITTED, settled.cause, target)]
    assert [move for move in moves if reason in (move.reasons or {None})]
    assert settled.attempt_count in {attempt, attempt - 1}
    if isinstance(settled, Requeued):
        assert settled.due_at > NOW


@given(attempt=st.integers(1, 10**6), jitter=st.floats(0, 1), factor=st.floats(1, 1e300))
def test_the_wait_is_bounded_by_the_longest_and_its_spread(attempt: int, jitter: float, factor: float) -> None:
    backoff = Backoff(factor=factor)
    wait = backoff.wait(attempt, jitter=jitter)
    assert backoff.first * 0.79 <= wait <= backoff.longest * 1.21


@pytest.mark.parametrize("odd", [2.5, 1e3, "5", -1, float("nan"), float("inf"), None, True, object()])
def test_an_odd_wait_never_fails_the_handler(odd: object) -> None:
    """SC57: rounded by rule or left out; the worker never dies."""
    settled = after(NotSent("busy", retry_after=odd))  # type: ignore[arg-type]
    assert isinstance(settled, Requeued)
    assert NOW < settled.due_at <= NOW + timedelta(seconds=1000)


def test_a_wait_of_centuries_is_cut() -> None:
    assert NotSent("busy", retry_after=10**18).retry_after == LONGEST_WAIT
    assert NotSent("busy", retry_after=timedelta.max).retry_after == LONGEST_WAIT


@pytest.mark.parametrize(
    "wrong",
    [
        {"first": timedelta(seconds=-1)},
        {"first": timedelta(hours=2)},
        {"longest": timedelta(days=4000)},
        {"factor": 0.5},
        {"factor": float("nan")},
        {"factor": float("inf")},
        {"spread": 1.5},
    ],
)
def test_a_backoff_that_would_shrink_or_leave_the_calendar_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(Invalid, match="backoff"):
        Backoff(**wrong)  # type: ignore[arg-type]


def test_a_deferral_needs_an_instant() -> None:
    """P100: naive, or beyond the calendar once in UTC."""
    with pytest.raises(InvalidInstant):
        Deferred(datetime(2027, 1, 1))  # noqa: DTZ001 - naive on purpose
    with pytest.raises(InvalidInstant):
        Deferred(datetime.max.replace(tzinfo=timezone(-timedelta(hours=1))))


def test_what_comes_from_outside_is_cleaned() -> None:
    assert Rejected("a\x00b\ud800c").error == "a\ufffdb\ufffdc"
    obeyed_by_terminals = "550 no\r\n\x1b]0;owned\x07\x9b2J\tgo\raway"
    assert Rejected(obeyed_by_terminals).error == "550 no\n\ufffd]0;owned\ufffd\ufffd2J\tgo\ufffdaway"
    assert len(Unconfirmed("x" * 10_000).error) == 2000
    assert Published(provider_id="\x00" + "x" * 999).provider_id == "\ufffd" + "x" * 254
