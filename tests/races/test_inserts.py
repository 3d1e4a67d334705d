"""Who gets in when several transactions insert at once?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from postdate import Action, AlreadyScheduled, NewAction, PostdateError
from tests.races.racing import race
from tests.races.stage import NOON, POST, Stage, post, things

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.races.racing import Contender, Meeting

ROUNDS = 30
HANDS = 5
BULK = 20


class ChangedMind(PostdateError):
    """The caller's own reason to roll back."""


def test_of_five_that_insert_one_key_four_roll_back_and_one_row_stays(stage: Stage) -> None:
    """SC18: the one that commits gets in, however many others hold the key before it."""
    names = things(ROUNDS)

    def inserting(hand: int) -> Contender:
        def insert(number: int, meeting: Meeting) -> Action:
            meeting.start()
            with stage.app.kernel.database.sync_engine.begin() as connection:
                schedule = stage.app.sync.schedule
                action = schedule(POST, {"thing_id": names[number]}, at=NOON, target="instagram", connection=connection)
                if hand != number % HANDS:
                    raise ChangedMind
                return action

        return insert

    for number, results in enumerate(race(stage.url, ROUNDS, *map(inserting, range(HANDS)))):
        stayed = results.pop(number % HANDS)
        assert isinstance(stayed, Action)
        assert all(isinstance(result, ChangedMind | AlreadyScheduled) for result in results)
    stage.assert_sound()
    assert stage.publish_all() == ROUNDS


def test_of_five_that_insert_one_key_one_gets_in_and_the_others_are_told_who(stage: Stage) -> None:
    """P26."""
    names = things(ROUNDS)

    def insert(number: int, meeting: Meeting) -> Action:
        meeting.start()
        return stage.app.sync.schedule(POST, {"thing_id": names[number]}, at=NOON, target="instagram")

    for results in race(stage.url, ROUNDS, *[insert] * HANDS):
        (admitted,) = [result for result in results if isinstance(result, Action)]
        refused = [result for result in results if isinstance(result, AlreadyScheduled)]
        assert [refusal.existing for refusal in refused] == [admitted.id] * (HANDS - 1)
    stage.assert_sound()


def test_of_five_that_use_one_idempotency_key_all_get_the_same_action(stage: Stage) -> None:
    names = things(ROUNDS)

    def insert(number: int, meeting: Meeting) -> Action:
        meeting.start()
        return stage.app.sync.schedule(POST, {"thing_id": names[number]}, at=NOON, idempotency_key=names[number])

    for results in race(stage.url, ROUNDS, *[insert] * HANDS):
        assert len({result.id for result in results}) == 1
    stage.assert_sound()
    assert stage.publish_all() == ROUNDS


def by_key(name: str, _hand: int) -> NewAction:
    return post(name)


def by_overlap_key(name: str, _hand: int) -> NewAction:
    return NewAction(action_type=POST, payload={}, at=NOON, overlap_key=name)


def by_idempotency_key(name: str, _hand: int) -> NewAction:
    return NewAction(action_type=POST, payload={}, at=NOON, idempotency_key=name)


def by_overlap_keys_crosswise(name: str, hand: int) -> NewAction:
    thing = f"{hand} {name if hand else name[::-1]}"
    return NewAction(action_type=POST, payload={"thing_id": thing}, at=NOON, overlap_key=name)


@pytest.mark.parametrize("made", [by_key, by_overlap_key, by_idempotency_key, by_overlap_keys_crosswise])
def test_bulk_inserts_that_share_keys_in_opposite_orders_never_deadlock(
    stage: Stage, made: Callable[[str, int], NewAction]
) -> None:
    names = [[f"{n:02d}-{number:03d}" for n in range(BULK)] for number in range(ROUNDS)]

    def inserting(hand: int) -> Contender:
        def insert(number: int, meeting: Meeting) -> list[Action | PostdateError]:
            ordered = names[number][:: -1 if hand else 1]
            meeting.start()
            return stage.app.sync.schedule_many([made(name, hand) for name in ordered])

        return insert

    for one, other in race(stage.url, ROUNDS, inserting(0), inserting(1)):
        for first, second in zip(one, other[::-1], strict=True):
            assert isinstance(first, Action) or isinstance(second, Action)
    stage.assert_sound()
