"""Can a thing go out twice when a person's verdict races a newcomer, or another verdict?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import update

from postdate import MoveRefused, Reason, Status
from tests.races.newcomers import NEIGHBOURS, REFUSED, Kind, bulk, coming, single, view
from tests.races.racing import race
from tests.races.stage import REJECTED, UNCONFIRMED, Stage, things

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from postdate import Action
    from tests.races.racing import Contender, Meeting

ROUNDS = 40


def deciding(stage: Stage, doubtful: Sequence[Action], verb: str, *, holds: bool = True) -> Contender:
    """In each round let a person say `verb` about one of them."""

    def decide(number: int, meeting: Meeting) -> Action:
        say: Callable[..., Action] = partial(getattr(stage.app.sync, verb), doubtful[number].id)
        holding = holds and number % 2 == 0
        return stage.meet(meeting, lambda tx: say(connection=tx.connection), holding=holding)

    return decide


@pytest.mark.parametrize("kind", [single, bulk, view])
def test_nothing_gets_in_while_a_person_confirms(stage: Stage, kind: Kind) -> None:
    names = things(ROUNDS)
    doubtful = stage.ended(names, UNCONFIRMED)
    for confirmed, came in race(stage.url, ROUNDS, deciding(stage, doubtful, "confirm"), coming(stage, names, kind)):
        assert confirmed.status is Status.PUBLISHED
        assert isinstance(came, REFUSED)
    stage.assert_sound()


@pytest.mark.parametrize("kind", [single, bulk, view])
def test_a_newcomer_gets_in_after_a_dismissal_or_not_at_all(stage: Stage, kind: Kind) -> None:
    names = things(ROUNDS)
    doubtful = stage.ended(names, UNCONFIRMED)
    results = race(stage.url, ROUNDS, deciding(stage, doubtful, "dismiss"), coming(stage, names, kind))
    assert all(dismissed.reason is Reason.DISMISSED for dismissed, _ in results)
    admitted = sum(not isinstance(came, REFUSED) for _, came in results)
    neighbours = ROUNDS * 2 * NEIGHBOURS if kind is bulk else 0
    stage.assert_sound()
    assert stage.publish_all() == admitted + neighbours


def test_of_two_verdicts_one_counts(stage: Stage) -> None:
    doubtful = stage.ended(things(ROUNDS), UNCONFIRMED)
    dismiss, confirm = deciding(stage, doubtful, "dismiss"), deciding(stage, doubtful, "confirm", holds=False)
    results = race(stage.url, ROUNDS, dismiss, confirm)
    for number, verdicts in enumerate(results):
        (lost,) = [verdict for verdict in verdicts if isinstance(verdict, MoveRefused)]
        (won,) = [verdict for verdict in verdicts if verdict is not lost]
        assert stage.app.sync.get(doubtful[number].id) == won
        assert len(stage.app.sync.history(doubtful[number].id)) == 3  # scheduled, unconfirmed, the verdict
    stage.assert_sound()


def test_a_confirmed_action_is_not_retried_and_a_retried_one_not_confirmed(stage: Stage) -> None:
    doubtful = stage.ended(things(ROUNDS), UNCONFIRMED)
    retry, confirm = deciding(stage, doubtful, "retry"), deciding(stage, doubtful, "confirm", holds=False)
    retried = 0
    for verdicts in race(stage.url, ROUNDS, retry, confirm):
        (won,) = [verdict for verdict in verdicts if not isinstance(verdict, MoveRefused)]
        retried += won.status is Status.QUEUED
    stage.assert_sound()
    assert stage.publish_all() == retried


def test_of_two_failed_siblings_one_is_retried(stage: Stage) -> None:
    names = things(ROUNDS)
    one, other = stage.ended(names, REJECTED), stage.ended(names, REJECTED)
    retries = deciding(stage, one, "retry"), deciding(stage, other, "retry", holds=False)
    for verdicts in race(stage.url, ROUNDS, *retries):
        assert len([verdict for verdict in verdicts if isinstance(verdict, REFUSED)]) == 1
    stage.assert_sound()
    assert stage.publish_all() == ROUNDS


def test_a_sibling_queued_under_a_doubtful_action_never_runs_whether_it_is_claimed_or_confirmed_first(
    stage: Stage,
) -> None:
    """Such a sibling comes from history that was imported, or past the guard in an old snapshot (P66)."""
    names = things(ROUNDS)
    doubtful = stage.ended(names, UNCONFIRMED)
    for action in doubtful:
        stage.app.sync.dismiss(action.id)
    waiting = stage.schedule(names)
    with stage.app.kernel.transaction(None) as tx:
        outcomes = tx.tables.outcomes
        tx.execute(update(outcomes).values(reason=Reason.UNCONFIRMED))

    def claim(number: int, meeting: Meeting) -> int:
        return len(stage.meet(meeting, lambda tx: stage.claim(tx, slots=1), holding=number % 2 == 0))

    results = race(stage.url, ROUNDS, claim, deciding(stage, doubtful, "confirm", holds=False))
    assert [claimed for claimed, _ in results] == [0] * ROUNDS
    assert {confirmed.status for _, confirmed in results} == {Status.PUBLISHED}
    assert stage.publish_all() == 0
    assert {stage.app.sync.get(action.id).reason for action in waiting} == {Reason.DUPLICATE}
    stage.assert_sound()
