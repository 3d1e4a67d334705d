"""Who wins when a person moves or cancels an action while it is claimed, or while another person does?"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from postdate import Action, MoveRefused, Reason, Status
from tests.races.racing import race
from tests.races.stage import NOON, PUBLISHED, Stage, things

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from postdate.store.transaction import Transaction
    from tests.races.racing import Contender, Meeting

RESCHEDULES = 500
CANCELS = 60
A_MINUTE = timedelta(minutes=1)
TOMORROW = NOON + timedelta(days=1)

CLAIM_HOLDS, MOVE_HOLDS = 0, 1
"""Of three rounds, in the first the claim waits to commit when the person comes, in the second the other way round."""


def firing(stage: Stage) -> Contender:
    """In each round claim what is due, publish it and return it. One more action comes due with every round."""

    def fire(number: int, meeting: Meeting) -> Sequence[Action]:
        claim = partial(stage.claim, now=NOON + number * A_MINUTE)
        claimed = stage.meet(meeting, claim, holding=number % 3 == CLAIM_HOLDS)
        stage.settle_surely(claimed, PUBLISHED)
        return [one.action for one in claimed]

    return fire


def test_of_500_actions_moved_as_they_fire_each_goes_out_once_at_the_old_time_or_the_new(stage: Stage) -> None:
    """P31, P69; SC29."""
    actions = stage.schedule(things(RESCHEDULES), apart=A_MINUTE)

    def move(number: int, meeting: Meeting) -> Action:
        def reschedule(tx: Transaction) -> Action:
            return stage.app.sync.reschedule(actions[number].id, at=TOMORROW, connection=tx.connection)

        return stage.meet(meeting, reschedule, holding=number % 3 == MOVE_HOLDS)

    moved = 0
    for number, (fired, move_) in enumerate(race(stage.url, RESCHEDULES, firing(stage), move)):
        if isinstance(move_, MoveRefused):
            assert [action.id for action in fired] == [actions[number].id]
            assert number % 3 != MOVE_HOLDS
        else:
            assert fired == []
            assert move_.replaces_id == actions[number].id
            assert number % 3 != CLAIM_HOLDS
            moved += 1
    stage.assert_sound()
    assert stage.publish_all() == moved


def cancel_by_verb(stage: Stage, action: UUID, tx: Transaction) -> None:
    stage.app.sync.cancel(action, connection=tx.connection)


def cancel_by_view(stage: Stage, action: UUID, tx: Transaction) -> None:
    cancel = f"update {stage.view} set status = 'cancelled' where id = '{action}' and status = 'queued'"
    tx.execute(text(cancel))


@pytest.mark.parametrize("cancel", [cancel_by_verb, cancel_by_view])
def test_an_action_that_is_cancelled_as_it_fires_is_either_cancelled_or_goes_out(
    stage: Stage, cancel: Callable[[Stage, UUID, Transaction], None]
) -> None:
    """P30, P68."""
    actions = stage.schedule(things(CANCELS), apart=A_MINUTE)

    def stop(number: int, meeting: Meeting) -> None:
        stage.meet(meeting, partial(cancel, stage, actions[number].id), holding=number % 3 == MOVE_HOLDS)

    for number, (fired, _) in enumerate(race(stage.url, CANCELS, firing(stage), stop)):
        found = stage.app.sync.get(actions[number].id)
        if fired:
            assert ([action.id for action in fired], found.status) == ([found.id], Status.PUBLISHED)
            assert number % 3 != MOVE_HOLDS
        else:
            assert (found.status, found.reason) == (Status.CANCELLED, Reason.USER)
            assert number % 3 != CLAIM_HOLDS
    stage.assert_sound()
    assert stage.publish_all() == 0


def test_of_two_people_who_move_one_action_one_does(stage: Stage) -> None:
    actions = stage.schedule(things(CANCELS))

    def moving(days: int) -> Contender:
        def move(number: int, meeting: Meeting) -> Action:
            def reschedule(tx: Transaction) -> Action:
                at = NOON + timedelta(days=days)
                return stage.app.sync.reschedule(actions[number].id, at=at, connection=tx.connection)

            return stage.meet(meeting, reschedule, holding=number % 3 == days)

        return move

    for moves in race(stage.url, CANCELS, moving(0), moving(1)):
        assert len([move for move in moves if isinstance(move, MoveRefused)]) == 1
    stage.assert_sound()
    assert stage.publish_all() == CANCELS
