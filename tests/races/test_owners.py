"""Is anything left of a workspace that is deleted while its actions are inserted, claimed, settled and cancelled?"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from sqlalchemy import delete, func, insert, select

from postdate import Action, NewAction
from tests.races.racing import race
from tests.races.stage import NOON, POST, PUBLISHED, Stage

if TYPE_CHECKING:
    from uuid import UUID

    from postdate.store.transaction import Transaction
    from tests.races.racing import Contender, Meeting

ROUNDS = 24
ACTIONS = 6


def test_nothing_is_left_of_a_workspace_that_is_deleted_meanwhile(stage: Stage) -> None:
    """P13: and the deletion neither fails nor makes others fail, whoever comes first."""
    workspaces = [uuid4() for _ in range(ROUNDS)]
    with stage.app.kernel.transaction(None) as tx:
        tx.execute(insert(tx.tables.workspaces), [{"id": w, "settings": {}, "created_at": NOON} for w in workspaces])
    actions = {workspace: schedule(stage, workspace) for workspace in workspaces}

    def deleting(tx: Transaction, workspace: UUID) -> None:
        table = tx.tables.workspaces
        assert tx.execute(delete(table).where(table.c.id == workspace)).rowcount == 1

    def firing(tx: Transaction, _workspace: UUID) -> None:
        stage.settle(tx, stage.claim(tx, slots=ACTIONS // 2), PUBLISHED)

    def cancelling(tx: Transaction, workspace: UUID) -> None:
        for action in reversed(actions[workspace]):
            stage.app.sync.cancel(action.id, connection=tx.connection)

    def inserting(tx: Transaction, workspace: UUID) -> None:
        stage.app.sync.schedule(POST, {}, at=NOON, workspace=workspace, connection=tx.connection)

    deeds = [deleting, firing, cancelling, inserting]

    def acting(hand: int) -> Contender:
        def act(number: int, meeting: Meeting) -> None:
            holding = number % len(deeds) == hand
            stage.meet(meeting, lambda tx: deeds[hand](tx, workspaces[number]), holding=holding)

        return act

    race(stage.url, ROUNDS, *map(acting, range(len(deeds))))
    with stage.app.kernel.transaction(None) as tx:
        left = [tx.tables.queue, tx.tables.outcomes, tx.tables.actions, tx.tables.action_events]
        assert [tx.execute(select(func.count()).select_from(table)).scalar() for table in left] == [0] * len(left)


def schedule(stage: Stage, workspace: UUID) -> list[Action]:
    """Schedule some things for one workspace, with a line in their history each."""
    news = [NewAction(action_type=POST, payload={}, at=NOON, workspace=workspace)] * ACTIONS
    return [made for made in stage.app.sync.schedule_many(news, actor="somebody") if isinstance(made, Action)]
