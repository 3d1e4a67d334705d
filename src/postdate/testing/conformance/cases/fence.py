"""Does a settle that comes too late change anything?"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from postdate.domain.outcome import Unconfirmed
from postdate.domain.states import Cause, Reason, Status
from postdate.store.outcomes import Settling, settle_claimed
from postdate.store.queue import claim_due
from postdate.testing.moves import LEASE, claim, lease_of, settle_as, settlement
from postdate.testing.scene import POST, REMINDER

if TYPE_CHECKING:
    from uuid import UUID

    from postdate.context import Context
    from postdate.domain.action import Action
    from postdate.testing.conformance.outsider import Outsider
    from postdate.testing.scene import Scene

ENDINGS = [
    cause
    for cause in Cause
    if cause.value in ["published", "not_sent", "deferred", "rejected", "unconfirmed", "skipped"]
]


class FenceCases:
    """Every settle carries the token of its lease; the wrong one loses, changes nothing and says so."""

    @pytest.mark.parametrize("ending", ENDINGS)
    def test_settle_returns_lost_when_lease_was_taken_over(
        self, scene: Scene, outsider: Outsider, ending: Cause
    ) -> None:
        """P58, P60: after a lost lease was recovered, and the action retried and claimed anew."""
        action, old = self._claimed(scene)
        assert settle_as(scene.app, action, Cause.UNCONFIRMED, lease_token=old), "the lease ran out"
        self._loses(scene, outsider, action, ending, old)
        scene.app.sync.retry(action.id)
        self._loses(scene, outsider, action, ending, old)
        new = claim(scene.app, scene.get(action))
        assert new not in {None, old}
        self._loses(scene, outsider, action, ending, old)
        assert settle_as(scene.app, action, ending, lease_token=new)
        self._loses(scene, outsider, action, ending, new)

    @pytest.mark.parametrize("ending", ENDINGS)
    def test_settle_returns_lost_when_the_run_went_back_to_the_queue(
        self, scene: Scene, outsider: Outsider, ending: Cause
    ) -> None:
        """P32, P58: the same worker may have it twice; each of its runs has a lease of its own."""
        action, old = self._claimed(scene)
        assert settle_as(scene.app, action, Cause.NOT_SENT, lease_token=old)
        self._loses(scene, outsider, action, ending, old)
        assert claim(scene.app, scene.get(action))
        self._loses(scene, outsider, action, ending, old)

    def test_a_token_is_worth_nothing_for_another_action(self, scene: Scene, outsider: Outsider) -> None:
        """P60: a fence is a token and an action together."""
        first, _ = self._claimed(scene)
        _second, other = self._claimed(scene, action_type=REMINDER)
        self._loses(scene, outsider, first, Cause.PUBLISHED, other)

    def test_in_a_batch_the_lost_ones_drop_out_and_the_others_are_settled(self, scene: Scene) -> None:
        """P55, P58: what still held its lease is in the answer, whatever became of the rest."""
        token = uuid4()
        actions = [scene.action(Status.SUBMITTED) for _ in range(4)]
        with scene.app.kernel.transaction(None) as tx:
            q = tx.tables.queue
            held = [action.id for action in actions[:3]]
            tx.execute(q.update().where(q.c.action_id.in_(held)).values(lease_token=token))
        causes = (Cause.PUBLISHED, Cause.NOT_SENT, Cause.REJECTED, Cause.PUBLISHED)
        now = scene.clock.now()
        endings = {
            action.id: settlement(cause, attempt_count=1, now=now)
            for action, cause in zip(actions, causes, strict=True)
        }
        with scene.app.kernel.transaction(None) as tx:
            won = settle_claimed(tx, Settling.of(tx.tables, token, endings), now=now, actor="engine")
        assert won == set(held)
        stand = [scene.get(action).status for action in actions]
        assert stand == [Status.PUBLISHED, Status.QUEUED, Status.FAILED, Status.SUBMITTED]

    @pytest.mark.parametrize("ending", ENDINGS)
    def test_of_runs_that_end_alike_those_are_settled_that_hold_their_lease(
        self, scene: Scene, outsider: Outsider, ending: Cause
    ) -> None:
        """P55, P58: of one claim, whichever way the others have lost it: ended, queued again, claimed anew."""
        app, now, token = scene.app, scene.clock.now(), uuid4()
        made = [scene.action(at=now) for _ in range(5)]
        first, second, anew, again, ended = made
        claim_all = partial(claim_due, action_type=POST, now=now, limit=5, lease_token=token, lease_until=now + LEASE)
        assert len(scene.await_(app.kernel.work(partial(claim_all, worker="test")))) == 5
        assert settle_as(app, ended, Cause.UNCONFIRMED, lease_token=token)
        for each in (anew, again):
            assert settle_as(app, each, Cause.NOT_SENT, lease_token=token)
        assert claim(app, scene.get(anew))
        lost = [(scene.get(each), app.sync.history(each.id)) for each in (anew, again, ended)]
        endings = {each.id: settlement(ending, attempt_count=1, now=now) for each in made}
        settling = Settling.of(app.kernel.tables, token, endings)
        settle = partial(settle_claimed, settling=settling, now=now, actor="engine")
        assert scene.await_(app.kernel.work(settle)) == {first.id, second.id}
        assert [(scene.get(each), app.sync.history(each.id)) for each, _ in lost] == lost
        assert {app.sync.history(each.id)[-1].cause for each in (first, second)} == {ending}
        active = {str(each.id) for each in made if scene.get(each).status.active}
        assert {str(row.action_id) for row in outsider.rows("select action_id from {ns}queue")} == active

    def test_the_engine_loses_to_recovery_and_changes_nothing(self, scene: Scene) -> None:
        """P58: a run that outlived its lease finds its action unconfirmed; its own success comes too late."""
        recovered: list[Action] = []

        def outlive_the_lease(_ctx: object) -> str:
            (running,) = scene.app.sync.list(status="submitted")
            with scene.app.kernel.transaction(None) as tx:
                token = lease_of(tx, running.id)
            assert settle_as(scene.app, running, Cause.UNCONFIRMED, lease_token=token)
            recovered.append(scene.get(running))
            return "provider-1"

        scene.answer = outlive_the_lease
        action = scene.action(at=scene.clock.now())
        scene.tick()
        assert [one.id for one in recovered] == [action.id]
        assert scene.get(action) == recovered[0]
        assert (scene.get(action).status, scene.get(action).reason) == (Status.FAILED, Reason.UNCONFIRMED)

    def test_a_lost_lease_is_recovered_as_unconfirmed_and_the_key_stays_taken(self, scene: Scene) -> None:
        """P-i3: nobody knows whether it went out; a person looks."""
        action = scene.action(Status.SUBMITTED)
        report = scene.tick(after=timedelta(days=1))
        assert report.recovered == 1
        lost = scene.get(action)
        assert (lost.status, lost.reason) == (Status.FAILED, Reason.UNCONFIRMED)
        assert scene.runs == [], "and nothing was run again"

    def test_an_unconfirmed_run_of_an_idempotent_type_is_tried_again(self, scene: Scene) -> None:
        """The provider tells a repeated call apart: the same idempotency key, one more attempt."""

        @scene.app.action("charge", idempotent=True)
        async def charge(ctx: Context, _payload: dict[str, object]) -> None:
            scene.runs.append(ctx)
            raise Unconfirmed("no answer")

        action = scene.action(action_type="charge", at=scene.clock.now())
        scene.tick()
        scene.tick(after=timedelta(hours=1))
        assert [ctx.idempotency_key for ctx in scene.runs] == [str(action.id)] * 2
        assert (scene.get(action).status, scene.get(action).attempt_count) == (Status.QUEUED, 2)

    @staticmethod
    def _claimed(scene: Scene, action_type: str = POST) -> tuple[Action, UUID]:
        action = scene.action(at=scene.clock.now(), action_type=action_type)
        token = claim(scene.app, action)
        assert token is not None
        return scene.get(action), token

    @staticmethod
    def _loses(scene: Scene, outsider: Outsider, action: Action, ending: Cause, token: UUID | None) -> None:
        before = outsider.contents()
        assert not settle_as(scene.app, action, ending, lease_token=token)
        assert outsider.contents() == before
