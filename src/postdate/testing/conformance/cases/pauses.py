"""Does the database keep to what pauses, quiet hours and the heartbeat rest on?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest

from postdate.domain.states import Cause, Status
from postdate.store.pauses import hold_claimed, hold_due, release_held
from postdate.store.queue import next_due
from postdate.testing.conformance.outsider import Refusal
from postdate.testing.factories import make_workspace
from postdate.testing.moves import claim, make_move
from postdate.testing.scene import POST, REMINDER

if TYPE_CHECKING:
    from datetime import datetime

    from postdate.domain.action import Action
    from postdate.testing.conformance.outsider import Outsider, Values
    from postdate.testing.scene import Scene

QUIET: dict[str, Any] = {"start_time": "22:00", "end_time": "08:00", "set_by": "ana"}


class PauseCases:
    """What is on hold, and the rows that say why."""

    def test_what_is_on_hold_is_queued_and_nobody_claims_it(self, scene: Scene, outsider: Outsider) -> None:
        """The attempt is given back, and no alarm is set for it."""
        action, token = _claimed(scene)
        with scene.app.kernel.transaction(None) as tx:
            assert hold_claimed(tx, lease_token=uuid4(), action_ids=[action.id]) == set(), "under no other token"
            assert hold_claimed(tx, lease_token=token, action_ids=[action.id]) == {action.id}
        held = scene.get(action)
        assert (held.status, held.attempt_count, held.next_attempt_at) == (Status.QUEUED, 0, None)
        assert (outsider.column(action.id, "status"), outsider.column(action.id, "attempt_count")) == ("queued", 0)
        assert claim(scene.app, action) is None
        with scene.app.kernel.transaction(None) as tx:
            assert next_due(tx, [POST, REMINDER]) is None

    def test_what_is_on_hold_is_released_once_no_pause_stops_it(self, scene: Scene) -> None:
        """Of several pauses, by the end of the last."""
        action, _ = _held(scene)
        pause, resume = scene.app.sync.pause, scene.app.sync.resume
        pause(workspace=scene.workspace)
        pause(workspace=scene.workspace, action_type=POST)
        pause(workspace=make_workspace(scene.app))
        for scope in ({"workspace": scene.workspace}, {"workspace": scene.workspace, "action_type": POST}):
            assert _release(scene) == 0
            assert claim(scene.app, action) is None
            resume(**scope)
        assert claim(scene.app, action) is not None, "the end of the last has released it"

    def test_what_a_pause_has_left_behind_is_released_by_the_tick(self, scene: Scene) -> None:
        """As where the pause ended in the moment in which it was put on hold."""
        action, _ = _held(scene)
        assert _release(scene) == 1
        assert _release(scene) == 0
        again, _ = _held(scene, action)
        scene.tick()
        assert scene.get(again).status is Status.PUBLISHED

    def test_only_what_is_due_first_and_belongs_to_the_workspaces_is_put_on_hold(self, scene: Scene) -> None:
        """Nothing that somebody has claimed, nothing of another type or workspace, and no more than is looked at."""
        now, other = scene.clock.now(), make_workspace(scene.app)
        late = {n: now - timedelta(minutes=n) for n in range(1, 7)}
        running = scene.action(at=late[6])
        assert claim(scene.app, running, now=now) is not None
        for number, workspace in ((5, scene.workspace), (4, other), (3, scene.workspace), (2, scene.workspace)):
            scene.action(at=late[number], workspace=workspace)
        reminder = scene.action(at=late[1], action_type=REMINDER)
        assert [_hold_due(scene, now=now, among=3) for _ in range(3)] == [2, 1, 0]
        (theirs,) = scene.app.sync.list(workspace=other)
        assert [claim(scene.app, each, now=now) is not None for each in (theirs, reminder)] == [True, True]
        with scene.app.kernel.transaction(None) as tx:
            assert next_due(tx, [POST, REMINDER]) is None
        assert make_move(scene.app, scene.get(running), Cause.PUBLISHED)

    @pytest.mark.parametrize("cause", [Cause.CANCEL, Cause.REPLACE, Cause.WITHDRAW, Cause.DUPLICATE])
    def test_what_is_on_hold_is_withdrawn_like_anything_queued(self, scene: Scene, cause: Cause) -> None:
        """P30."""
        action, _ = _held(scene)
        assert make_move(scene.app, action, cause)
        assert scene.get(action).status is Status.CANCELLED

    def test_what_is_on_hold_is_cancelled_by_the_view_and_guards_its_key(
        self, scene: Scene, outsider: Outsider
    ) -> None:
        """P26, P68."""
        action, _ = _held(scene, scene.action(payload={"thing_id": "post-1"}))
        with pytest.raises(Refusal):
            outsider.insert(action_type=POST, payload={"thing_id": "post-1"}, publish_at=scene.clock.now())
        outsider.update(action.id, status="cancelled")
        assert scene.get(action).status is Status.CANCELLED

    def test_no_row_is_on_hold_and_claimed_or_on_hold_for_an_unknown_reason(
        self, scene: Scene, outsider: Outsider
    ) -> None:
        """The database states it too."""
        claimed, _ = _claimed(scene)
        with pytest.raises(Refusal):
            outsider.run("update {ns}queue set hold = 'paused' where action_id = :id", id=claimed.id)
        with pytest.raises(Refusal):
            outsider.run("update {ns}queue set hold = 'tired' where action_id = :id", id=scene.action().id)

    def test_there_is_one_pause_of_each_workspace_type_and_both(self, scene: Scene, outsider: Outsider) -> None:
        """And none of nothing."""
        workspace, other = scene.workspace, make_workspace(scene.app)
        scopes: list[Values] = [
            {"workspace_id": workspace},
            {"action_type": POST},
            {"workspace_id": workspace, "action_type": POST},
        ]
        near: list[Values] = [
            {"workspace_id": other},
            {"action_type": REMINDER},
            {"workspace_id": other, "action_type": POST},
        ]
        for scope in [*scopes, *near]:
            _insert_pause(outsider, scene, scope)
        for scope in [*scopes, {}]:
            with pytest.raises(Refusal):
                _insert_pause(outsider, scene, scope)
        assert len(scene.app.sync.paused()) == len(scopes) + len(near)

    def test_the_record_of_ended_pauses_is_append_only(self, scene: Scene, outsider: Outsider) -> None:
        """Who paused, who went on, when and why: no line is ever rewritten."""
        scene.app.sync.pause(action_type=POST, actor="ana")
        ended = scene.app.sync.resume(action_type=POST, actor="bo")
        for name in ("paused_by", "ended_by", "ended_at", "note"):
            with pytest.raises(Refusal, match="append-only"):
                outsider.run(f"update {{ns}}ended_pauses set {name} = {name}")
        if outsider.is_sqlite:
            with pytest.raises(Refusal, match="append-only"):
                outsider.run("insert or replace into {ns}ended_pauses select * from {ns}ended_pauses")
        assert scene.app.sync.ended_pauses() == [ended]

    def test_deleting_a_workspace_deletes_its_pauses_and_quiet_hours_and_nobody_elses(
        self, scene: Scene, outsider: Outsider
    ) -> None:
        """P13."""
        sync, other = scene.app.sync, make_workspace(scene.app)
        for workspace in (scene.workspace, other):
            sync.pause(workspace=workspace, action_type=POST)
            sync.resume(workspace=workspace, action_type=POST)
            sync.pause(workspace=workspace)
            sync.set_quiet_hours(workspace, "22:00-08:00", tz="UTC")
        sync.pause(action_type=POST)
        outsider.run("delete from {ns}workspaces where id = :id", id=scene.workspace)
        assert [pause.workspace_id for pause in sync.paused()] == [other, None]
        assert [pause.workspace_id for pause in sync.ended_pauses()] == [other]
        assert [hours.workspace_id for hours in sync.quiet_hours()] == [other]

    @pytest.mark.parametrize(
        "wrong",
        [
            {"start_time": "24:00"},
            {"end_time": "8:00"},
            {"end_time": "08:60"},
            {"start_time": "noon!"},
            {"weekdays": ""},
            {"weekdays": "8"},
            {"weekdays": "12345671"},
        ],
    )
    def test_quiet_hours_that_nobody_could_read_are_refused(
        self, scene: Scene, outsider: Outsider, wrong: Values
    ) -> None:
        """What one claim cannot read, would stop every other."""
        row = {"id": uuid4(), "workspace_id": scene.workspace, "set_at": scene.clock.now(), **QUIET}
        assert outsider.insert("quiet_hours", **row, weekdays="1234567") == 1
        with pytest.raises(Refusal):
            outsider.insert("quiet_hours", **{**row, "id": uuid4(), **wrong})

    def test_there_is_one_heartbeat(self, scene: Scene, outsider: Outsider) -> None:
        """And it does not say that it holds without saying why."""
        for number in (1, 2):
            with pytest.raises(Refusal):
                outsider.insert("heartbeat", id=number)
        with pytest.raises(Refusal):
            outsider.run("update {ns}heartbeat set held_at = :now", now=scene.clock.now())
        assert outsider.rows("select id from {ns}heartbeat") == [(1,)]


def _claimed(scene: Scene, action: Action | None = None) -> tuple[Action, UUID]:
    action = action or scene.action(at=scene.clock.now())
    token = claim(scene.app, action)
    assert token is not None
    return action, token


def _held(scene: Scene, action: Action | None = None) -> tuple[Action, UUID]:
    """Return an action that is on hold, and the token under which it was claimed."""
    action, token = _claimed(scene, action)
    with scene.app.kernel.transaction(None) as tx:
        assert hold_claimed(tx, lease_token=token, action_ids=[action.id]) == {action.id}
    return action, token


def _release(scene: Scene) -> int:
    with scene.app.kernel.transaction(None) as tx:
        return release_held(tx)


def _hold_due(scene: Scene, *, now: datetime, among: int) -> int:
    with scene.app.kernel.transaction(None) as tx:
        return hold_due(tx, action_type=POST, workspace_ids=[scene.workspace], now=now, among=among)


def _insert_pause(outsider: Outsider, scene: Scene, scope: Values) -> None:
    outsider.insert("pauses", id=uuid4(), paused_at=scene.clock.now(), paused_by="ana", **scope)
