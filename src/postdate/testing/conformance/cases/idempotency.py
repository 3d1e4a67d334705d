"""Is a request that is made twice carried out once?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from postdate.domain.states import Cause, Status
from postdate.errors import AlreadyScheduled, IdempotencyConflict, Invalid
from postdate.testing.factories import make_workspace
from postdate.testing.moves import make_move
from postdate.testing.scene import POST

if TYPE_CHECKING:
    from postdate.testing.conformance.outsider import Outsider, Values
    from postdate.testing.scene import Scene


class IdempotencyCases:
    """`idempotency_key`."""

    def test_a_replay_answers_the_first_action_as_it_stands_by_then(self, scene: Scene, outsider: Outsider) -> None:
        """However long ago it was published."""
        asked: Values = {
            "payload": {"thing_id": "post-1", "b": 1, "a": [1.0]},
            "target": "instagram",
            "idempotency_key": "k",
        }
        first = scene.action(**asked)
        before = outsider.contents()
        scene.clock.advance(timedelta(minutes=5))
        assert scene.action(**{**asked, "at": first.publish_at}) == first
        reordered: Values = {**asked, "payload": {"a": [1.0], "thing_id": "post-1", "b": 1}}
        assert scene.action(**{**reordered, "at": first.publish_at}) == first
        assert outsider.contents() == before
        assert make_move(scene.app, first, Cause.CLAIM)
        assert make_move(scene.app, scene.get(first), Cause.PUBLISHED)
        assert scene.action(**{**asked, "at": first.publish_at}) == scene.get(first)

    def test_another_request_under_the_key_is_a_conflict(self, scene: Scene, outsider: Outsider) -> None:
        """Every part of the request counts; the error names the action that holds the key."""
        asked: Values = {"payload": {"n": 1}, "at": "2027-03-09T14:00Z", "idempotency_key": "k"}
        first = scene.action(**asked)
        before = outsider.contents()
        others: list[Values] = [
            {"payload": {"n": 2}},
            {"target": "mastodon"},
            {"occurrence": "2"},
            {"overlap_key": "nightly"},
            {"at": "2027-03-09T15:00Z"},
            {"at": "2027-03-09T14:00", "tz": "Europe/London"},
            {"expires_at": "2028-01-01T00:00Z"},
            {"action_type": "reminder"},
        ]
        for other in others:
            with pytest.raises(IdempotencyConflict) as refused:
                scene.action(**{**asked, **other})
            assert (refused.value.key, refused.value.existing) == ("k", first.id)
        assert outsider.contents() == before

    def test_an_expired_key_is_free(self, scene: Scene) -> None:
        """From the instant of its expiry, whether or not it was swept away."""
        first = scene.action(payload={"n": 1}, idempotency_key="k")
        ttl = scene.app.settings.idempotency_ttl
        scene.clock.advance(ttl - timedelta(microseconds=1))
        with pytest.raises(IdempotencyConflict):
            scene.action(payload={"n": 2}, idempotency_key="k")
        scene.clock.advance(timedelta(microseconds=1))
        second = scene.action(payload={"n": 2}, idempotency_key="k")
        assert second.id != first.id
        assert scene.action(payload={"n": 2}, at=second.publish_at, idempotency_key="k").id == second.id

    def test_the_tick_forgets_expired_keys_and_no_others(self, scene: Scene, outsider: Outsider) -> None:
        """They do not pile up."""
        scene.action(idempotency_key="old")
        scene.clock.advance(timedelta(days=1))
        scene.action(idempotency_key="new")
        scene.tick(after=scene.app.settings.idempotency_ttl - timedelta(days=1))
        assert outsider.rows("select key from {ns}idempotency") == [("new",)]

    def test_a_refused_request_gives_its_key_back(self, scene: Scene, outsider: Outsider) -> None:
        """The key is kept only if what it guards was admitted: the same call works once the way is free."""
        thing = {"thing_id": "post-1"}
        holder = scene.action(payload=thing)
        with pytest.raises(AlreadyScheduled):
            scene.action(payload=thing, idempotency_key="k")
        with pytest.raises(Invalid):
            scene.action(target="", idempotency_key="k")
        assert outsider.contents()["idempotency"] == []
        scene.app.sync.cancel(holder.id)
        assert scene.action(payload=thing, idempotency_key="k").status is Status.QUEUED

    def test_a_cancel_frees_the_key_where_it_is_asked_to(self, scene: Scene) -> None:
        """And only where it cancelled something."""
        asked: Values = {"payload": {"n": 1}, "at": scene.clock.now(), "idempotency_key": "k"}
        first = scene.action(**asked)
        scene.app.sync.cancel(first.id)
        assert scene.action(**asked).id == first.id, "cancelled, and still the answer"
        second = scene.action(**{**asked, "idempotency_key": "l"})
        scene.app.sync.cancel(second.id, free_idempotency_key=True)
        assert scene.action(**{**asked, "idempotency_key": "l"}).id != second.id
        running = scene.action(Status.SUBMITTED, idempotency_key="m", payload={"n": 3})
        scene.app.sync.cancel(running.id, free_idempotency_key=True)
        with pytest.raises(IdempotencyConflict):
            scene.action(idempotency_key="m", payload={"n": 4})

    def test_each_owner_has_keys_of_its_own(self, scene: Scene) -> None:
        """One workspace never meets another's answers."""
        other = make_workspace(scene.app)
        asked: Values = {"payload": {"n": 1}, "at": scene.clock.now(), "idempotency_key": "k"}
        owners: list[Values] = [{"workspace": scene.workspace}, {"workspace": other}, {"workspace": None}]
        made = [scene.action(**asked, **owner).id for owner in owners]
        assert len(set(made)) == 3
        assert [scene.action(**asked, **owner).id for owner in owners] == made

    def test_a_replay_does_not_move_an_action_that_was_rescheduled(self, scene: Scene, outsider: Outsider) -> None:
        """It answers what the first call made: the one that was replaced."""
        asked: Values = {"payload": {"thing_id": "post-1"}, "at": scene.clock.now(), "idempotency_key": "k"}
        first = scene.action(**asked)
        scene.app.sync.reschedule(first.id, at=scene.clock.now() + timedelta(days=1))
        before = outsider.contents()
        assert scene.action(**asked) == scene.get(first)
        assert outsider.contents() == before

    def test_a_verb_without_a_key_takes_none(self, scene: Scene, outsider: Outsider) -> None:
        """Nothing is remembered that nobody asked to be remembered."""
        scene.app.sync.schedule(POST, {}, at=scene.clock.now())
        assert outsider.contents()["idempotency"] == []
