"""Can anything go out twice?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from postdate.domain.states import Cause, Reason, Status
from postdate.errors import AlreadyPublished, AlreadyScheduled
from postdate.store.queue import claim_due
from postdate.testing.conformance.outsider import Refusal, sqlstate
from postdate.testing.moves import make_move
from postdate.testing.scene import POST
from postdate.verbs import NewAction

if TYPE_CHECKING:
    from uuid import UUID

    from postdate.domain.action import Action
    from postdate.testing.conformance.outsider import Outsider, Values
    from postdate.testing.scene import Scene

THING = {"thing_id": "post-1"}
guarded = pytest.mark.parametrize(
    ("status", "reason"),
    [(Status.PUBLISHED, None), (Status.FAILED, Reason.UNCONFIRMED)],
    ids=["published", "unconfirmed"],
)


class PublishGuardCases:
    """The publish guard: what went out, or may have, bars its key."""

    @guarded
    def test_the_verb_is_refused_and_told_which_action_went_out(
        self, scene: Scene, outsider: Outsider, status: Status, reason: Reason | None
    ) -> None:
        """P64, P-T7."""
        gone = scene.action(status, reason, payload=THING)
        before = outsider.contents()
        with pytest.raises(AlreadyPublished) as refused:
            scene.action(payload=THING)
        assert (refused.value.existing, refused.value.key) == (gone.id, gone.key)
        assert outsider.contents() == before

    @guarded
    def test_in_a_batch_only_that_one_drops_out(self, scene: Scene, status: Status, reason: Reason | None) -> None:
        """P55, P64."""
        gone = scene.action(status, reason, payload=THING)
        at = scene.clock.now()
        batch = [NewAction(action_type=POST, payload={"thing_id": f"post-{n}"}, at=at) for n in (0, 1, 2)]
        zero, one, two = scene.app.sync.schedule_many(batch)
        assert isinstance(one, AlreadyPublished)
        assert one.existing == gone.id
        assert scene.app.sync.list(status="queued") == [zero, two]

    @guarded
    def test_the_view_and_the_queue_itself_refuse_it(
        self, scene: Scene, outsider: Outsider, status: Status, reason: Reason | None
    ) -> None:
        """P64: SQLSTATE 23505 on PostgreSQL, whoever inserts."""
        gone = scene.action(status, reason, payload=THING)
        before, now = outsider.contents(), scene.clock.now()
        with pytest.raises(Refusal) as by_view:
            outsider.insert(user_id=scene.user, action_type=POST, payload=THING, publish_at=now)
        row: Values = {"action_id": uuid4(), "user_id": scene.user, "action_type": POST, "key": gone.key, "due_at": now}
        with pytest.raises(Refusal) as by_hand:
            outsider.insert("queue", **row)
        for refused in (by_view, by_hand):
            assert "already published" in str(refused.value.orig)
            assert sqlstate(refused.value) == (None if outsider.is_sqlite else "23505")
        assert outsider.contents() == before

    @guarded
    def test_other_targets_and_occurrences_are_free(self, scene: Scene, status: Status, reason: Reason | None) -> None:
        """P-i5: the next occurrence of a rule may go out although the last one did."""
        scene.action(status, reason, payload=THING, target="instagram", occurrence="2027-03-09")
        others: list[Values] = [{"target": "instagram", "occurrence": "2027-03-10"}, {"target": "mastodon"}, {}]
        for other in others:
            assert scene.action(payload=THING, **other).status is Status.QUEUED

    @guarded
    def test_a_claim_is_barred_by_its_own_key_alone(
        self, scene: Scene, outsider: Outsider, status: Status, reason: Reason | None
    ) -> None:
        """P66, P91: history that is imported may come to bar what is queued already."""
        gone = scene.action(status, reason, payload={"thing_id": "post-2"})
        free, barred = scene.action(payload={"thing_id": "post-3"}), scene.action(payload=THING)
        _import_copy(outsider, gone, key=barred.key)
        now = barred.publish_at
        with scene.app.kernel.transaction(None) as tx:
            claimed = claim_due(
                tx,
                action_type=POST,
                now=now,
                limit=9,
                lease_token=uuid4(),
                lease_until=now + timedelta(hours=1),
                worker="test",
            )
        assert {one.action.id: one.guarded for one in claimed} == {free.id: False, barred.id: True}

    @guarded
    def test_a_failed_sibling_cannot_be_retried(
        self, scene: Scene, outsider: Outsider, status: Status, reason: Reason | None
    ) -> None:
        """P66: a retry is guarded as an insert is."""
        failed = scene.action(Status.FAILED, Reason.REJECTED, payload=THING)
        gone = scene.action(status, reason, payload=THING)
        before = outsider.contents()
        with pytest.raises(AlreadyPublished) as refused:
            scene.app.sync.retry(failed.id)
        assert refused.value.existing == gone.id
        assert outsider.contents() == before

    @guarded
    def test_history_that_was_imported_with_duplicates_stays_valid(
        self, scene: Scene, outsider: Outsider, status: Status, reason: Reason | None
    ) -> None:
        """P65, P67: the guard looks at new queue rows alone; what is done may stand twice."""
        first = scene.action(status, reason, payload=THING)
        copied = _import_copy(outsider, first)
        assert scene.app.sync.get(copied).status is status
        assert {action.id for action in scene.app.sync.list(thing="post-1")} == {first.id, copied}
        with pytest.raises(AlreadyPublished):
            scene.action(payload=THING)
        unrelated = scene.action(Status.SUBMITTED)
        assert make_move(scene.app, unrelated, Cause.PUBLISHED), "and nothing else is in the way"


class VerdictCases:
    """What a person says of an action that may have gone out."""

    def test_a_dismissal_frees_the_key_and_a_confirmation_keeps_it(self, scene: Scene) -> None:
        """P64, P67: only the person who looked knows."""
        unconfirmed = scene.action(Status.FAILED, Reason.UNCONFIRMED, payload=THING)
        dismissed = scene.app.sync.dismiss(unconfirmed.id, actor="ana", note="not on the page")
        assert (dismissed.status, dismissed.reason) == (Status.FAILED, Reason.DISMISSED)
        again = scene.action(Status.FAILED, Reason.UNCONFIRMED, payload=THING)
        confirmed = scene.app.sync.confirm(again.id, provider_id="ig-7", actor="ana")
        assert (confirmed.status, confirmed.reason, confirmed.provider_id) == (Status.PUBLISHED, None, "ig-7")
        with pytest.raises(AlreadyPublished):
            scene.action(payload=THING)

    def test_a_retry_takes_the_key_with_it(self, scene: Scene) -> None:
        """P73: the same action is active again, so that nothing else is."""
        unconfirmed = scene.action(Status.FAILED, Reason.UNCONFIRMED, payload=THING)
        assert scene.app.sync.retry(unconfirmed.id).status is Status.QUEUED
        with pytest.raises(AlreadyScheduled) as refused:
            scene.action(payload=THING)
        assert refused.value.existing == unconfirmed.id

    def test_a_published_thing_posted_now_is_a_new_occurrence(self, scene: Scene) -> None:
        """P-i14: on purpose, and in the history; the first one stays as it was."""
        first = scene.action(Status.PUBLISHED, payload=THING, target="instagram")
        again = scene.app.sync.post_now(first.id, actor="ana", note="once more")
        assert (again.replaces_id, again.payload, again.target_key) == (first.id, THING, "instagram")
        assert (again.status, again.publish_at) == (Status.QUEUED, scene.clock.now())
        assert again.occurrence != first.occurrence
        assert scene.get(first) == first
        assert [(event.actor, event.detail.get("note")) for event in scene.app.sync.history(again.id)] == [
            ("ana", "once more")
        ]
        scene.tick()
        assert scene.get(again).status is Status.PUBLISHED


def _import_copy(outsider: Outsider, first: Action, *, key: str | None = None) -> UUID:
    """Insert another ended action for the same thing, or with this key, as an import of old history would."""
    copied = uuid4()
    with outsider.engine.begin() as connection:
        outsider.insert(
            "actions",
            connection,
            id=copied,
            user_id=first.user_id,
            action_type=first.action_type,
            payload=THING,
            publish_at=first.publish_at,
            created_at=first.created_at,
        )
        outsider.insert(
            "outcomes",
            connection,
            action_id=copied,
            user_id=first.user_id,
            status=str(first.status),
            reason=first.reason and str(first.reason),
            finished_at=first.finished_at,
            key=key or first.key,
        )
    return copied
