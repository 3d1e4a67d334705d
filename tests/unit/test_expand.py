"""Which occurrences of a rule does one look after another come to?"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from postdate.domain.expand import LOOK, MOST, Expansion, Turn, expand
from postdate.domain.rule import RecurringRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from postdate.domain.misfire import Misfire
    from postdate.domain.rule import Overlap

NOON = datetime(2026, 3, 8, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
WINDOW = timedelta(days=14)


def every_second(*, misfire: Misfire, overlap: Overlap = "allow", decided_upto: datetime = NOON) -> RecurringRule:
    return RecurringRule(
        id=UUID(int=1),
        workspace_id=None,
        user_id=UUID(int=2),
        action_type="post",
        target_key=None,
        payload_template={},
        kind="every",
        rrule="1000000",
        starts_at=NOON,
        tz=None,
        gap="forward",
        fold="first",
        misfire=misfire,
        grace=timedelta(hours=1),
        overlap=overlap,
        last_materialized_at=decided_upto,
        look_at=NOON,
        created_at=NOON,
    )


@pytest.mark.parametrize("misfire", ["skip", "once", "all"])
def test_within_the_grace_all_run_however_many_there_are(misfire: Misfire) -> None:
    now = NOON + 3 * MOST * SECOND
    wanted: list[datetime] = []
    upto, look_at = NOON, now
    while look_at <= now:
        look = expand(every_second(misfire=misfire, decided_upto=upto), now=now, window=WINDOW)
        assert not look.missed
        assert len(look.wanted) <= 2 * MOST
        wanted += look.wanted
        upto, look_at = look.upto, look.look_at
    assert wanted[: 3 * MOST] == [NOON + number * SECOND for number in range(1, 3 * MOST + 1)]


@pytest.mark.parametrize("misfire", ["skip", "once"])
def test_of_those_that_were_missed_the_latest_are_told(misfire: Misfire) -> None:
    now = NOON + timedelta(days=1)
    look = expand(every_second(misfire=misfire), now=now, window=WINDOW)
    within = now - timedelta(hours=1)
    assert list(look.missed) == [within - number * SECOND for number in range(MOST, 0, -1)]
    assert look.wanted[0] == within


@pytest.mark.parametrize("overlap", ["allow", "skip"])
def test_after_a_year_of_seconds_no_more_are_counted_than_are_told(
    overlap: Overlap, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look holds its rule, and an event loop that counts serves nobody."""
    counted = 0
    occurrences = RecurringRule.occurrences

    def counting(*args: Any, **kwargs: Any) -> Iterator[datetime]:
        nonlocal counted
        for each in occurrences(*args, **kwargs):
            counted += 1
            yield each

    monkeypatch.setattr(RecurringRule, "occurrences", counting)
    now = NOON + timedelta(days=365)
    look = expand(every_second(misfire="once", overlap=overlap), now=now, window=WINDOW)
    within = now - timedelta(hours=1)
    assert list(look.missed) == [within - number * SECOND for number in range(MOST, 0, -1)]
    assert counted < 10 * MOST


def test_a_look_before_its_time_ends_no_rule_whose_last_occurrence_is_still_to_come() -> None:
    """As after a change of its zone: what is queued of it could no longer be paused."""
    rule = replace(every_second(misfire="once"), rrule="3600000000", ends_at=NOON + timedelta(hours=5, minutes=30))
    first = expand(rule, now=NOON, window=WINDOW)
    assert len(first.wanted) == 5
    rule = replace(rule, last_materialized_at=first.upto)
    early = expand(rule, now=NOON + timedelta(hours=2), window=WINDOW)
    assert (list(early.wanted), early.look_at, early.ends) == ([], NOON + timedelta(hours=5), False)
    assert expand(rule, now=early.look_at, window=WINDOW).ends


def test_the_latest_of_those_that_are_rare_are_told_too() -> None:
    rule = replace(every_second(misfire="skip"), rrule=str(timedelta(days=30) // timedelta(microseconds=1)))
    look = expand(rule, now=NOON + timedelta(days=100), window=WINDOW)
    assert list(look.missed) == [NOON + timedelta(days=days) for days in (30, 60, 90)]


def test_after_a_long_run_what_fell_due_since_is_the_next() -> None:
    """However much fell due while it ran."""
    rule = every_second(misfire="once", overlap="skip")
    finished_at = NOON + 3 * MOST * SECOND
    turn = Turn(active=False, finished_at=finished_at)
    look = expand(rule, now=finished_at + 30 * SECOND, window=WINDOW, turn=turn)
    assert list(look.wanted) == [finished_at]
    assert list(look.overlapped) == [finished_at - number * SECOND for number in range(MOST, 0, -1)]


def test_where_all_run_nothing_is_left_out_but_what_fell_due_while_another_was_at_work() -> None:
    """Neither what is missed, nor what fell due in the very moment in which another began or ended."""
    rule = every_second(misfire="all", overlap="skip")
    runs: list[tuple[datetime, datetime]] = []
    wanted: list[int] = []
    overlapped: list[int] = []
    upto, at_work = NOON, 3 * SECOND
    now = NOON + 5 * SECOND
    for _ in range(6):
        turn = Turn(active=False, finished_at=now, runs=runs)
        look = expand(replace(rule, last_materialized_at=upto), now=now, window=WINDOW, turn=turn)
        wanted += [(at - NOON) // SECOND for at in look.wanted]
        overlapped += [(at - NOON) // SECOND for at in look.overlapped]
        runs.append((now, now + at_work))
        upto, now = look.upto, now + at_work
    assert wanted == [1, 2, 3, 4, 5, 8]
    assert overlapped == [6, 7]


def test_while_one_is_at_work_nothing_is_decided_about_the_others_where_all_run() -> None:
    rule = every_second(misfire="all", overlap="skip")
    look = expand(rule, now=NOON + 9 * SECOND, window=WINDOW, turn=Turn(active=True))
    assert (look.wanted, look.overlapped, look.upto) == ((), (), NOON)
    assert look.look_at == NOON + 9 * SECOND + LOOK


def test_however_much_fell_due_during_a_run_a_look_leaves_out_a_part_of_it() -> None:
    rule = every_second(misfire="all", overlap="skip")
    ended = NOON + 3 * MOST * SECOND
    turn = Turn(active=False, finished_at=ended, runs=[(NOON, ended)])
    upto, looks = NOON, list[Expansion]()
    for _ in range(3):
        looks.append(expand(replace(rule, last_materialized_at=upto), now=ended, window=WINDOW, turn=turn))
        upto = looks[-1].upto
    assert [len(look.overlapped) for look in looks] == [MOST, MOST, MOST - 1]
    assert [look.look_at for look in looks[:2]] == [ended, ended], "at once"
    assert list(looks[-1].wanted) == [ended]
