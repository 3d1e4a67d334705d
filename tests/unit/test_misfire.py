"""Which repetitions run late, by which policy?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from postdate.domain.misfire import Misfire, runs_late, split

NOON = datetime(2026, 3, 8, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
A_MOMENT = timedelta(microseconds=1)


@pytest.mark.parametrize("misfire", ["skip", "once", "all"])
@pytest.mark.parametrize("superseded", [True, False])
def test_within_the_grace_each_policy_runs_it(misfire: Misfire, superseded: bool) -> None:
    assert runs_late(misfire, late=HOUR, grace=HOUR, superseded=superseded)


@pytest.mark.parametrize(
    ("misfire", "superseded", "runs"),
    [
        ("skip", False, False),
        ("skip", True, False),
        ("once", False, True),
        ("once", True, False),
        ("all", False, True),
        ("all", True, True),
    ],
)
def test_beyond_the_grace_the_policy_decides(misfire: Misfire, superseded: bool, runs: bool) -> None:
    assert runs_late(misfire, late=HOUR + A_MOMENT, grace=HOUR, superseded=superseded) is runs


@pytest.mark.parametrize(
    ("misfire", "ran"),
    [("skip", [1]), ("once", [1]), ("all", [3, 2, 1])],
)
def test_of_several_the_latest_supersedes_the_others(misfire: Misfire, ran: list[int]) -> None:
    past = [NOON - hours * HOUR for hours in (3, 2, 1)]
    runs, missed = split(past, misfire, now=NOON, grace=HOUR)
    assert [(NOON - at) // HOUR for at in runs] == ran
    assert sorted([*runs, *missed]) == past


def test_the_latest_missed_one_runs_once() -> None:
    past = [NOON - hours * HOUR for hours in (4, 3, 2)]
    assert split(past, "once", now=NOON, grace=HOUR) == (past[2:], past[:2])
    assert split([], "once", now=NOON, grace=HOUR) == ([], [])
