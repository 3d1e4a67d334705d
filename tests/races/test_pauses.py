"""Does anything stay on hold for ever, or run though it is paused, when a pause ends as its actions are claimed?"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from sqlalchemy import delete, func, insert, select

from postdate import EndedPause, NewAction, NotPaused
from postdate.store.pauses import release_held
from tests.races.racing import race
from tests.races.stage import NOON, POST, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from postdate.domain.action import Claimed
    from postdate.store.transaction import Transaction
    from tests.races.racing import Contender, Meeting

ROUNDS = 45
ACTIONS = 4
A_MINUTE = timedelta(minutes=1)

CLAIM_HOLDS, RESUME_HOLDS = 0, 1
"""Of three rounds, in the first the claim waits to commit when the pause ends, in the second the other way round."""


def paused_workspaces(stage: Stage, count: int) -> list[UUID]:
    """Make workspaces that are paused; the actions of each next one fall due a minute later."""
    workspaces = [uuid4() for _ in range(count)]
    with stage.app.kernel.transaction(None) as tx:
        tx.execute(insert(tx.tables.workspaces), [{"id": w, "settings": {}, "created_at": NOON} for w in workspaces])
    for number, workspace in enumerate(workspaces):
        at = NOON + number * A_MINUTE
        stage.app.sync.schedule_many([NewAction(action_type=POST, payload={}, at=at, workspace=workspace)] * ACTIONS)
        stage.app.sync.pause(workspace=workspace)
    return workspaces


def on_hold(stage: Stage) -> set[UUID]:
    """Return the workspaces that have something on hold."""
    with stage.app.kernel.transaction(None) as tx:
        q = tx.tables.queue
        return set(tx.execute(select(q.c.workspace_id).where(q.c.hold.is_not(None))).scalars())


def release(stage: Stage) -> int:
    """Release what no pause stops, as the tick does."""
    with stage.app.kernel.transaction(None) as tx:
        return release_held(tx)


def test_what_is_put_on_hold_as_the_pause_ends_is_released_with_it_or_by_the_next_tick(stage: Stage) -> None:
    workspaces = paused_workspaces(stage, ROUNDS)

    def claim(number: int, meeting: Meeting) -> Sequence[Claimed]:
        now = NOON + number * A_MINUTE
        return stage.meet(meeting, partial(stage.claim, now=now), holding=number % 3 == CLAIM_HOLDS)

    def resume(number: int, meeting: Meeting) -> EndedPause:
        def end(tx: Transaction) -> EndedPause:
            return stage.app.sync.resume(workspace=workspaces[number], connection=tx.connection)

        return stage.meet(meeting, end, holding=number % 3 == RESUME_HOLDS)

    results = race(stage.url, ROUNDS, claim, resume)
    left = on_hold(stage)
    for number, (claimed, ended) in enumerate(results):
        assert isinstance(ended, EndedPause)
        if number % 3 == CLAIM_HOLDS:
            ran_already = {one.action.workspace_id for one in claimed}
            assert workspaces[number] not in ran_already, "the pause had not ended when they were claimed"
            assert workspaces[number] not in left, "it waited for what the claim put on hold"
    assert not left or stage.url.startswith("postgresql"), "SQLite has one writer: there is no between"
    release(stage)
    assert on_hold(stage) == set()
    ran = sum(len(claimed) for claimed, _ in results)
    with stage.app.kernel.transaction(None) as tx:
        ran += len(stage.claim(tx, now=NOON + ROUNDS * A_MINUTE))
    assert ran == ROUNDS * ACTIONS


def test_of_two_people_who_end_one_pause_one_does(stage: Stage) -> None:
    workspaces = paused_workspaces(stage, ROUNDS)

    def ending(hand: int) -> Contender:
        def end(number: int, meeting: Meeting) -> EndedPause:
            def resume(tx: Transaction) -> EndedPause:
                return stage.app.sync.resume(workspace=workspaces[number], connection=tx.connection)

            return stage.meet(meeting, resume, holding=number % 3 == hand)

        return end

    for results in race(stage.url, ROUNDS, ending(0), ending(1)):
        assert {type(result) for result in results} == {EndedPause, NotPaused}
    assert len(stage.app.sync.ended_pauses(limit=2 * ROUNDS)) == ROUNDS


def test_of_two_people_who_pause_the_same_both_are_told_of_one_pause(stage: Stage) -> None:
    def pausing(hand: int) -> Contender:
        def pause(number: int, meeting: Meeting) -> UUID:
            def begin(tx: Transaction) -> UUID:
                return stage.app.sync.pause(action_type=f"type-{number}", connection=tx.connection).id

            return stage.meet(meeting, begin, holding=number % 3 == hand)

        return pause

    for first, second in race(stage.url, ROUNDS, pausing(0), pausing(1)):
        assert first == second
    assert len(stage.app.sync.paused()) == ROUNDS


def test_nothing_is_left_of_a_paused_workspace_that_is_deleted_meanwhile(stage: Stage) -> None:
    """And the deletion neither fails nor makes others fail, whoever comes first."""
    workspaces = paused_workspaces(stage, ROUNDS)

    def deleting(tx: Transaction, workspace: UUID) -> None:
        table = tx.tables.workspaces
        assert tx.execute(delete(table).where(table.c.id == workspace)).rowcount == 1

    def claiming(tx: Transaction, _workspace: UUID) -> None:
        stage.claim(tx, slots=ACTIONS // 2, now=NOON + ROUNDS * A_MINUTE)

    def resuming(tx: Transaction, workspace: UUID) -> None:
        stage.app.sync.resume(workspace=workspace, connection=tx.connection)

    deeds = [deleting, claiming, resuming]

    def acting(hand: int) -> Contender:
        def act(number: int, meeting: Meeting) -> None:
            holding = number % (len(deeds) + 1) == hand
            stage.meet(meeting, lambda tx: deeds[hand](tx, workspaces[number]), holding=holding)

        return act

    race(stage.url, ROUNDS, *map(acting, range(len(deeds))))
    with stage.app.kernel.transaction(None) as tx:
        t = tx.tables
        left = [t.queue, t.actions, t.outcomes, t.pauses, t.ended_pauses]
        assert [tx.execute(select(func.count()).select_from(table)).scalar() for table in left] == [0] * len(left)
