"""Is the table of moves the whole of it?"""

from __future__ import annotations

import itertools

import pytest

from postdate.domain.states import ACTIVE, MOVES, REASONS, TERMINAL, Cause, Reason, Status, causes, moves_from

ALLOWED = {
    ("queued", "submitted"),
    ("queued", "cancelled"),
    ("submitted", "queued"),
    ("submitted", "published"),
    ("submitted", "failed"),
    ("submitted", "cancelled"),
    ("failed", "queued"),
    ("failed", "published"),
    ("failed", "failed"),
}


@pytest.mark.parametrize(("source", "target"), list(itertools.product(Status, Status)))
def test_only_the_designed_pairs_have_a_cause(source: Status, target: Status) -> None:
    """P34: no other transition exists, over all 25 pairs."""
    assert bool(causes(source, target)) == ((source.value, target.value) in ALLOWED)


def test_every_status_is_active_or_terminal() -> None:
    assert set(Status) == ACTIVE | TERMINAL
    assert not ACTIVE & TERMINAL
    assert [status for status in Status if status.active] == [Status.QUEUED, Status.SUBMITTED]


def test_each_reason_belongs_to_one_status_and_is_reached_by_a_move() -> None:
    assert set(Reason) == REASONS[Status.FAILED] | REASONS[Status.CANCELLED]
    assert not REASONS[Status.FAILED] & REASONS[Status.CANCELLED]
    for status, reasons in REASONS.items():
        reached = frozenset().union(*(move.reasons for move in MOVES if move.target is status))
        assert reached == reasons


def test_each_cause_leads_to_one_status() -> None:
    for cause in Cause:
        targets = {move.target for move in MOVES if move.cause is cause}
        assert len(targets) == 1, cause


def test_only_an_unconfirmed_failure_can_be_confirmed_or_dismissed() -> None:
    verdicts = {Cause.CONFIRM, Cause.DISMISS}
    assert verdicts <= {move.cause for move in moves_from(Status.FAILED, Reason.UNCONFIRMED)}
    for reason in REASONS[Status.FAILED] - {Reason.UNCONFIRMED}:
        assert {move.cause for move in moves_from(Status.FAILED, reason)} == {Cause.RETRY}


@pytest.mark.parametrize("status", [Status.PUBLISHED, Status.CANCELLED])
def test_published_and_cancelled_are_final(status: Status) -> None:
    """P33."""
    assert moves_from(status) == ()
