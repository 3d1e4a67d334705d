"""Is there at most one active action for a thing, a target and an occurrence, and for an overlap key?"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from postdate.domain.action import SEPARATOR
from postdate.domain.states import TERMINAL, Cause, Reason, Status
from postdate.errors import AlreadyScheduled, Invalid, OverlapTaken
from postdate.testing.conformance.outsider import Refusal
from postdate.testing.factories import STATES
from postdate.testing.moves import make_move
from postdate.testing.scene import POST, REMINDER

if TYPE_CHECKING:
    from postdate.domain.action import Action
    from postdate.testing.conformance.outsider import Outsider, Values
    from postdate.testing.scene import Scene

THING = {"thing_id": "post-1"}
ENDED_FREE = [
    (status, reason)
    for status, reason in STATES
    if status in TERMINAL - {Status.PUBLISHED} and reason is not Reason.UNCONFIRMED
]


class KeyCases:
    """Uniqueness."""

    @pytest.mark.parametrize("status", [Status.QUEUED, Status.SUBMITTED])
    @pytest.mark.parametrize("target", [None, "instagram"])
    def test_a_second_active_action_for_a_thing_and_target_is_refused(
        self, scene: Scene, outsider: Outsider, status: Status, target: str | None
    ) -> None:
        """P26, P-i4: also where there is no target, and by the view as by the verb; the error names the first."""
        first = scene.action(status, payload=THING, target=target)
        before = outsider.contents()
        with pytest.raises(AlreadyScheduled) as refused:
            scene.action(payload=THING, target=target)
        assert (refused.value.existing, refused.value.key) == (first.id, first.key)
        with pytest.raises(Refusal):
            outsider.insert(action_type=POST, payload=THING, target_key=target, publish_at=first.publish_at)
        assert outsider.contents() == before

    def test_an_empty_target_is_refused_and_so_never_another_spelling_of_none(
        self, scene: Scene, outsider: Outsider
    ) -> None:
        """P-i4: NULL and '' would make one key."""
        with pytest.raises(Invalid, match="target"):
            scene.action(payload=THING, target="")
        with pytest.raises(Refusal, match="target"):
            outsider.insert(action_type=POST, payload=THING, target_key="", publish_at=scene.clock.now())

    def test_another_type_target_thing_or_occurrence_is_another_key(self, scene: Scene) -> None:
        """P26, P-i5: occurrences of one rule stand side by side."""
        made: list[Action] = []
        for action_type, target, thing, occurrence in product((POST, REMINDER), (None, "x"), ("1", "2"), ("", "2027")):
            payload = {"thing_id": thing}
            made.append(scene.action(action_type=action_type, target=target, payload=payload, occurrence=occurrence))
        assert len({action.key for action in made}) == len(made) == 16

    def test_actions_without_a_thing_share_no_key(self, scene: Scene) -> None:
        """P26: there is nothing that could go out twice."""
        assert {scene.action(payload={"n": 1}, target="x").key for _ in range(3)} == {None}

    def test_what_ended_without_going_out_leaves_its_key(self, scene: Scene) -> None:
        """P67: dismissed, rejected, cancelled ... free the key; the same thing may be scheduled anew."""
        for status, reason in ENDED_FREE:
            first = scene.action(status, reason, payload=THING)
            second = scene.action(payload=THING)
            assert (second.key, second.status) == (first.key, Status.QUEUED), reason
            scene.app.sync.cancel(second.id)

    @pytest.mark.parametrize("part", ["action_type", "target", "thing", "occurrence"])
    def test_no_two_sets_of_parts_make_one_key(self, scene: Scene, outsider: Outsider, part: str) -> None:
        """P26: what joins the parts is refused in every part, by the verb and by the view."""
        forged = f"a{SEPARATOR}b"
        if part == "action_type":
            with pytest.raises(Invalid):
                scene.app.action(forged)(lambda _ctx, _payload: None)
        else:
            asked: Values = {"payload": {"thing_id": forged}} if part == "thing" else {"payload": THING, part: forged}
            with pytest.raises(Invalid):
                scene.action(**asked)
        columns: Values = {"action_type": POST, "payload": THING, "publish_at": scene.clock.now()}
        forgeries: dict[str, Values] = {
            "action_type": {"action_type": forged},
            "target": {"target_key": forged},
            "thing": {"payload": {"thing_id": forged}},
            "occurrence": {"occurrence": forged},
        }
        before = outsider.contents()
        with pytest.raises(Refusal):
            outsider.insert(**{**columns, **forgeries[part]})
        assert outsider.contents() == before

    def test_the_database_builds_the_key_that_the_app_builds(self, scene: Scene, outsider: Outsider) -> None:
        """P26: else the view and the verbs would not see each other's actions."""
        asked: Values = {"payload": {"thing_id": "Prüfung 🎉"}, "target": "+351 911", "occurrence": "2027-03-09T12:00Z"}
        ours = scene.action(**asked)
        scene.app.sync.cancel(ours.id)
        outsider.insert(
            action_type=POST,
            payload=asked["payload"],
            target_key=asked["target"],
            occurrence=asked["occurrence"],
            publish_at=ours.publish_at,
        )
        assert outsider.rows("select key from {ns}queue") == [(ours.key,)]

    @pytest.mark.parametrize("status", [Status.QUEUED, Status.SUBMITTED])
    def test_an_overlap_key_is_held_while_its_action_is_active(self, scene: Scene, status: Status) -> None:
        """Overlap `skip` is an index, not a check; the error names the holder."""
        first = scene.action(status, overlap_key="nightly")
        with pytest.raises(OverlapTaken) as refused:
            scene.action(overlap_key="nightly")
        assert (refused.value.existing, refused.value.overlap_key) == (first.id, "nightly")
        scene.action(overlap_key="weekly")
        scene.action(overlap_key="nightly", action_type=REMINDER)  # each type has its own

    def test_an_overlap_key_is_free_once_its_action_has_ended(self, scene: Scene) -> None:
        """Also where the action was published: it bars overlap, not repetition."""
        for cause in (Cause.PUBLISHED, Cause.UNCONFIRMED, Cause.SKIPPED):
            running = scene.action(Status.SUBMITTED, overlap_key="nightly")
            assert make_move(scene.app, running, cause)

    def test_a_retry_waits_for_its_overlap_key(self, scene: Scene) -> None:
        """P71: a person's retry holds the key again, or is refused while another holds it."""
        failed = scene.action(Status.FAILED, Reason.REJECTED, overlap_key="nightly")
        holder = scene.action(overlap_key="nightly")
        with pytest.raises(OverlapTaken) as refused:
            scene.app.sync.retry(failed.id)
        assert refused.value.existing == holder.id
        assert scene.get(failed).status is Status.FAILED
        scene.app.sync.cancel(holder.id)
        assert scene.app.sync.retry(failed.id).status is Status.QUEUED
        with pytest.raises(OverlapTaken):
            scene.action(overlap_key="nightly")
