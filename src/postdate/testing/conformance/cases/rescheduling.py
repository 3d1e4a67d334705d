"""Does a move to another time keep everything else, and lose against a claim?"""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from postdate.domain.action import Intent, Request
from postdate.domain.states import Reason, Status
from postdate.errors import Invalid, InvalidInstant, MoveRefused
from postdate.testing.conformance.cases.view import INWARD
from postdate.testing.factories import STATES, make_workspace
from postdate.testing.moves import claim
from postdate.testing.scene import POST

if TYPE_CHECKING:
    from postdate.testing.conformance.outsider import Outsider, Values
    from postdate.testing.scene import Scene

NAIVE = datetime(2027, 3, 15, 9)  # noqa: DTZ001 - naive on purpose
PAST_QUEUED = [state for state in STATES if state[0] is not Status.QUEUED]


class ReschedulingCases:
    """Reschedule is cancel and insert, in one transaction; `publish_at` is never edited."""

    def test_reschedule_copies_everything_but_the_time(self, scene: Scene, outsider: Outsider) -> None:
        """P31, P69, P70, P96: every field of the request, whichever hand made it."""
        asked: Values = {
            "id": uuid4(),
            "workspace_id": scene.workspace,
            "user_id": scene.user,
            "action_type": POST,
            "target_key": "instagram",
            "payload": {"thing_id": "post-1", "text": "Olá 🎉", "n": [1, 2.5, None]},
            "occurrence": "7",
            "publish_at": scene.clock.now() + timedelta(hours=1),
            "expires_at": scene.clock.now() + timedelta(days=9),
            "wall_time": "2027-03-09T14:00",
            "tz": "Europe/Lisbon",
            "gap": "reject",
            "fold": "second",
            "origin": "recurring",
            "origin_id": "rule-1",
            "replaces_id": uuid4(),
            "overlap_key": "nightly",
            "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "created_at": scene.clock.now() - timedelta(days=1),
        }
        outsider.insert(**asked)
        old = scene.app.sync.get(asked["id"])
        plain = {field.name: field.default for field in fields(Request) if field.name not in INWARD}
        assert all(getattr(old, name) != default for name, default in plain.items()), "nothing is left at its default"
        new = scene.app.sync.reschedule(old.id, at=scene.clock.now() + timedelta(days=2))
        changed = {name for name in plain if getattr(new, name) != getattr(old, name)}
        assert changed == {"id", "publish_at", "intent", "replaces_id", "created_at"}
        assert (new.status, new.replaces_id, new.created_at) == (Status.QUEUED, old.id, scene.clock.now())
        assert new.intent is None, "an instant was asked for, not a wall time"

    def test_the_old_action_stays_as_history(self, scene: Scene) -> None:
        """P69: cancelled, with who and why; and its key goes to the new one."""
        old = scene.action(payload={"thing_id": "post-1"})
        new = scene.app.sync.reschedule(old.id, at="2027-03-15T09:00Z", actor="ana", note="rain")
        stands = scene.get(old)
        assert (stands.status, stands.reason, stands.publish_at) == (
            Status.CANCELLED,
            Reason.RESCHEDULED,
            old.publish_at,
        )
        assert new.key == old.key
        left, came = scene.app.sync.history(old.id)[-1], scene.app.sync.history(new.id)[-1]
        assert (left.cause, left.actor, left.detail["note"]) == ("replace", "ana", "rain")
        assert (came.cause, came.actor, came.detail["replaces"]) == ("schedule", "ana", str(old.id))

    def test_a_wall_time_keeps_the_zone_and_the_policies_of_the_first(self, scene: Scene) -> None:
        """P76: nine stays nine where it was nine."""
        old = scene.action(at="2027-03-10T09:00", tz="America/New_York", gap="reject", fold="second")
        new = scene.app.sync.reschedule(old.id, at="2027-03-15T09:00")
        assert new.publish_at == datetime(2027, 3, 15, 13, tzinfo=UTC), "summer time began on the 14th"
        assert new.intent == Intent(wall_time="2027-03-15T09:00", tz="America/New_York", gap="reject", fold="second")
        moved = scene.app.sync.reschedule(new.id, at="2027-03-15T09:00", tz="Asia/Kolkata", fold="first")
        assert moved.intent == Intent(wall_time="2027-03-15T09:00", tz="Asia/Kolkata", gap="reject", fold="first")
        with pytest.raises(Invalid):
            scene.app.sync.reschedule(moved.id, at="2027-03-14T02:30", tz="America/New_York")
        assert scene.get(moved).status is Status.QUEUED

    def test_a_wall_time_without_a_first_one_is_read_in_the_owner_s_zone(self, scene: Scene) -> None:
        """P5: the workspace's; with none anywhere it is refused."""
        lisbon = make_workspace(scene.app, account_timezone="Europe/Lisbon")
        old = scene.action(workspace=lisbon, at=scene.clock.now())
        new = scene.app.sync.reschedule(old.id, at="2027-07-01T09:00")
        assert new.publish_at == datetime(2027, 7, 1, 8, tzinfo=UTC)
        nowhere = scene.action()
        with pytest.raises(Invalid, match="tz"):
            scene.app.sync.reschedule(nowhere.id, at="2027-07-01T09:00")
        assert scene.get(nowhere) == nowhere

    def test_reschedule_loses_against_a_claim_and_says_so(self, scene: Scene, outsider: Outsider) -> None:
        """P31, P58: never both, never none."""
        action = scene.action(at=scene.clock.now())
        assert claim(scene.app, action)
        before = outsider.contents()
        with pytest.raises(MoveRefused) as refused:
            scene.app.sync.reschedule(action.id, at=scene.clock.now() + timedelta(days=1))
        assert (refused.value.status, refused.value.action_id) == ("submitted", action.id)
        assert outsider.contents() == before

    def test_a_claim_finds_only_the_new_action(self, scene: Scene) -> None:
        """P31, P58: the other order. The old one is not claimed, the new one once, when it is due."""
        old = scene.action(at=scene.clock.now())
        new = scene.app.sync.reschedule(old.id, at=scene.clock.now() + timedelta(hours=1))
        assert scene.tick().due_count == 0
        assert scene.tick(after=timedelta(hours=1)).due_count == 1
        assert [ctx.action.id for ctx in scene.runs] == [new.id]

    def test_only_a_queued_action_is_rescheduled(self, scene: Scene, outsider: Outsider) -> None:
        """P33, P34: the refusal says where the action stands, and nothing comes of it."""
        for status, reason in PAST_QUEUED:
            action = scene.action(status, reason)
            before = outsider.contents()
            with pytest.raises(MoveRefused) as refused:
                scene.app.sync.reschedule(action.id, at=scene.clock.now() + timedelta(days=1))
            assert (refused.value.status, refused.value.reason) == (status, reason)
            if status is not Status.PUBLISHED:
                with pytest.raises(MoveRefused, match="post now"):
                    scene.app.sync.post_now(action.id)
            assert outsider.contents() == before

    def test_a_time_that_is_none_leaves_the_action_where_it_was(self, scene: Scene, outsider: Outsider) -> None:
        """P95, P100."""
        action = scene.action()
        before = outsider.contents()
        odd: list[Any] = ["2027-03-15", "", "tomorrow", NAIVE, 1.5, None]
        for at in odd:
            with pytest.raises(Invalid):
                scene.app.sync.reschedule(action.id, at=at)
        assert outsider.contents() == before

    def test_a_time_after_the_expiry_is_refused_unless_that_moves_too(self, scene: Scene) -> None:
        """It would be too late before it is due."""
        now = scene.clock.now()
        action = scene.action(at=now, expires_at=now + timedelta(hours=1))
        with pytest.raises(InvalidInstant, match="expires_at"):
            scene.app.sync.reschedule(action.id, at=now + timedelta(hours=2))
        later = now + timedelta(hours=3)
        assert scene.app.sync.reschedule(action.id, at=now + timedelta(hours=2), expires_at=later).expires_at == later

    def test_post_now_is_a_reschedule_to_now(self, scene: Scene) -> None:
        """P31: the same lineage, due at once."""
        old = scene.action(payload={"thing_id": "post-1"}, target="instagram", at="2027-06-01T09:00", tz="Asia/Tokyo")
        new = scene.app.sync.post_now(old.id)
        assert (new.publish_at, new.replaces_id, new.key, new.intent) == (scene.clock.now(), old.id, old.key, None)
        assert scene.get(old).reason is Reason.RESCHEDULED
        assert scene.tick().due_count == 1
