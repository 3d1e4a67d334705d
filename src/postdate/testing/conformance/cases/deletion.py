"""Does everything of an owner go with the owner, wherever it stands?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from postdate.domain.states import Cause, Status
from postdate.errors import ActionNotFound, OwnerNotFound
from postdate.store.schema import SYSTEM_PROFILE
from postdate.testing.conformance.outsider import Refusal
from postdate.testing.factories import STATES, make_profile, make_workspace
from postdate.testing.moves import settle_as

if TYPE_CHECKING:
    from postdate.domain.states import Reason
    from postdate.testing.conformance.outsider import Outsider, Values
    from postdate.testing.scene import Scene

OWNERS = ["workspace", "profile"]
OURS = ("actions", "queue", "outcomes", "action_events", "idempotency")


class DeletionCases:
    """Deleting a workspace or a profile."""

    @pytest.mark.parametrize("owner", OWNERS)
    def test_deleting_an_owner_removes_its_actions_wherever_they_stand(
        self, scene: Scene, outsider: Outsider, owner: str
    ) -> None:
        """P12, P13: in every state; queue, outcomes, history and idempotency keys with them, and nobody else's."""
        neighbour: Values = {"workspace": make_workspace(scene.app), "user": make_profile(scene.app)}
        others = [
            scene.action(status, reason, idempotency_key=f"k{n}", **neighbour) for n, (status, reason) in _states()
        ]
        before = outsider.contents()
        gone = [scene.action(status, reason, idempotency_key=f"k{n}") for n, (status, reason) in _states()]
        with_ours = outsider.contents()
        assert all(len(with_ours[table]) > len(before[table]) for table in OURS)
        assert _delete(scene, outsider, owner) == 1
        after = outsider.contents()
        assert {table: after[table] for table in OURS} == {table: before[table] for table in OURS}
        assert [scene.get(action) for action in others] == others
        for action in gone:
            with pytest.raises(ActionNotFound):
                scene.app.sync.get(action.id)

    @pytest.mark.parametrize("owner", OWNERS)
    def test_a_run_whose_owner_is_gone_settles_nothing(self, scene: Scene, outsider: Outsider, owner: str) -> None:
        """P12, P58: its action was deleted under it; the settle loses and leaves no row behind."""
        action = scene.action(at=scene.clock.now())
        scene.answer = lambda _ctx: _delete(scene, outsider, owner)
        scene.tick()
        assert [ctx.action.id for ctx in scene.runs] == [action.id]
        assert all(outsider.contents()[table] == [] for table in OURS)

    @pytest.mark.parametrize("owner", OWNERS)
    def test_the_key_of_a_deleted_action_is_free(self, scene: Scene, outsider: Outsider, owner: str) -> None:
        """P64: what was published for somebody who left bars nobody."""
        asked: Values = {"payload": {"thing_id": "post-1"}}
        scene.action(Status.PUBLISHED, **asked)
        _delete(scene, outsider, owner)
        with pytest.raises(OwnerNotFound) as refused:
            scene.action(**asked)
        assert refused.value.what == owner
        assert scene.action(**asked, workspace=None, user=None).status is Status.QUEUED

    def test_deleting_one_owner_leaves_the_other_and_their_other_actions(
        self, scene: Scene, outsider: Outsider
    ) -> None:
        """P12, P13: an action goes with either of its owners, an owner with neither."""
        alone = scene.action(workspace=None)
        elsewhere = scene.action(workspace=make_workspace(scene.app))
        scene.action()
        _delete(scene, outsider, "workspace")
        assert {action.id for action in scene.app.sync.list()} == {alone.id, elsewhere.id}
        _delete(scene, outsider, "profile")
        assert scene.app.sync.list() == []
        assert len(outsider.contents()["workspaces"]) == 1

    def test_an_owner_with_nothing_is_deleted_like_any_row(self, scene: Scene, outsider: Outsider) -> None:
        """P12, P13."""
        kept = scene.action()
        make_workspace(scene.app)
        outsider.run("delete from {ns}workspaces where id <> :id", id=scene.workspace)
        assert scene.get(kept) == kept

    def test_the_system_profile_cannot_be_deleted(self, scene: Scene, outsider: Outsider) -> None:
        """It owns what no person asked for; deleting everybody is refused with it."""
        scene.action(workspace=None, user=None)
        before = outsider.contents()
        for condition in ("id = :id", "id is not null or id = :id"):
            with pytest.raises(Refusal, match="system profile"):
                outsider.run(f"delete from {{ns}}profiles where {condition}", id=SYSTEM_PROFILE)
        assert outsider.contents() == before

    def test_a_deletion_that_is_rolled_back_leaves_everything(self, scene: Scene, outsider: Outsider) -> None:
        """P12, P13: what goes with an owner goes in the owner's transaction."""
        action = scene.action(Status.SUBMITTED)
        before = outsider.contents()
        with outsider.connection() as connection:
            outsider.run("delete from {ns}workspaces", connection)
            connection.rollback()
        assert outsider.contents() == before
        assert settle_as(scene.app, action, Cause.PUBLISHED)


def _states() -> list[tuple[int, tuple[Status, Reason | None]]]:
    return list(enumerate(STATES))


def _delete(scene: Scene, outsider: Outsider, owner: str) -> int:
    owner_id = scene.workspace if owner == "workspace" else scene.user
    return outsider.run(f"delete from {{ns}}{owner}s where id = :id", id=owner_id)
