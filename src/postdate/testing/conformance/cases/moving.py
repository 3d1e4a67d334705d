"""Do actions move as the table of moves says, and in no other way?"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias
from uuid import uuid4

import pytest

from postdate.domain.states import MOVES, TERMINAL, Cause, Move, Reason, Status
from postdate.errors import MoveRefused
from postdate.testing.conformance.outsider import Refusal
from postdate.testing.factories import STATES
from postdate.testing.moves import claim, decide, settle_as, withdraw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from postdate.domain.action import Action
    from postdate.testing.conformance.outsider import Outsider
    from postdate.testing.scene import Scene

Push: TypeAlias = "Callable[[Scene, Outsider, Action], object]"


@dataclass(frozen=True, kw_only=True)
class Means:
    """One way to push an action towards a status, and the move that it makes where the table of moves has one."""

    name: str
    push: Push
    move: Move | None = None
    reason: Reason | None = None
    towards: Status | None = None

    @property
    def target(self) -> Status | None:
        """Where it pushes."""
        return self.move.target if self.move else self.towards

    def allowed_at(self, status: Status, reason: Reason | None) -> bool:
        """Whether the table of moves allows it in this state."""
        move = self.move
        return move is not None and move.source is status and move.only_from in {None, reason}


class MovingCases:
    """States and their moves."""

    @pytest.mark.parametrize("source", Status)
    def test_an_action_goes_from_one_status_to_another_as_the_table_of_moves_says(
        self, scene: Scene, outsider: Outsider, source: Status
    ) -> None:
        """P27-P34, P73: to each status, from every reason, by every means there is; the rest changes nothing."""
        for reason in (reason for status, reason in STATES if status is source):
            allowed = [one for one in MEANS if one.allowed_at(source, reason)]
            for one in allowed:
                self._moves(scene, outsider, one, scene.action(source, reason))
            action = scene.action(source, reason)
            before = outsider.contents()
            for one in MEANS:
                if one not in allowed:
                    with suppress(MoveRefused, Refusal):
                        one.push(scene, outsider, action)
                    assert outsider.contents() == before, f"{one.name} changed an action that was {source} ({reason})"

    def test_every_pair_of_statuses_is_attempted(self) -> None:
        """P34: all 25, since there are means to each status and they are tried from each."""
        assert {one.target for one in MEANS} == set(Status)
        assert {one.move for one in MEANS} == {None, *MOVES}

    @staticmethod
    def _moves(scene: Scene, outsider: Outsider, means: Means, before: Action) -> None:
        means.push(scene, outsider, before)
        after, move = scene.get(before), means.move
        assert move is not None
        assert (after.status, after.reason) == (move.target, means.reason), means.name
        assert (after.finished_at is not None) == (after.status in TERMINAL), means.name
        if move.cause is not Cause.CLAIM:  # a claim is no event: what comes of it is
            last = scene.app.sync.history(before.id)[-1]
            assert last.cause == move.cause, f"{means.name} is in the history"
        if after.status is Status.QUEUED:  # out of the way of the next one, which has to be claimed first
            scene.app.sync.cancel(after.id)

    def test_a_claim_counts_one_attempt_and_says_when_and_until_when(self, scene: Scene) -> None:
        """P27, P57; attempts are counted once, at the claim (P71)."""
        action = scene.action()
        assert claim(scene.app, action, now=action.publish_at)
        claimed = scene.get(action)
        assert claimed.status is Status.SUBMITTED
        assert (claimed.attempt_count, claimed.submitted_at) == (1, action.publish_at)

    def test_nothing_is_claimed_before_it_is_due(self, scene: Scene) -> None:
        """P37: due means `due_at <= now`, to the microsecond."""
        action = scene.action()
        assert claim(scene.app, action, now=action.publish_at - timedelta(microseconds=1)) is None
        assert claim(scene.app, action, now=action.publish_at)

    def test_a_success_keeps_the_provider_s_id_and_the_end(self, scene: Scene) -> None:
        """P28, P61."""
        published = scene.action(Status.PUBLISHED)
        assert (published.provider_id, published.finished_at) == ("provider-1", scene.clock.now())
        assert published.last_error is None

    @pytest.mark.parametrize("reason", [Reason.REJECTED, Reason.EXHAUSTED, Reason.UNCONFIRMED, Reason.EXPIRED])
    def test_a_failure_keeps_its_error(self, scene: Scene, reason: Reason) -> None:
        """P29."""
        failed = scene.action(Status.FAILED, reason)
        assert failed.last_error
        assert failed.finished_at == scene.clock.now()
        assert failed.provider_id is None

    @pytest.mark.parametrize("cause", [Cause.NOT_SENT, Cause.DEFERRED, Cause.NEVER_STARTED])
    def test_what_goes_back_to_the_queue_holds_no_lease(self, scene: Scene, outsider: Outsider, cause: Cause) -> None:
        """P32: queued again with nobody's name on it; only a run that was made counts as an attempt."""
        action = scene.action(Status.SUBMITTED)
        assert settle_as(scene.app, action, cause)
        lease = "lease_token, lease_until, claimed_by, submitted_at, started_at"
        assert outsider.rows(f"select {lease} from {{ns}}queue") == [(None,) * 5]
        again = scene.get(action)
        assert (again.status, again.submitted_at) == (Status.QUEUED, None)
        assert again.attempt_count == (1 if cause is Cause.NOT_SENT else 0)
        assert scene.get(action).publish_at == action.publish_at, "when it should have fired is not touched (P96)"

    def test_a_retry_keeps_the_action_and_its_attempts(self, scene: Scene) -> None:
        """P71, P73: the same action, due now, its outcome gone; what it said stays in the history."""
        failed = scene.action(Status.FAILED, Reason.REJECTED)
        queued = scene.app.sync.retry(failed.id, actor="ana", note="the page is back")
        assert (queued.id, queued.status, queued.attempt_count) == (failed.id, Status.QUEUED, 1)
        assert queued.next_attempt_at == scene.clock.now()
        assert (queued.last_error, queued.finished_at, queued.reason) == (None, None, None)
        event = scene.app.sync.history(failed.id)[-1]
        assert (event.actor, event.detail["error"], event.detail["reason"]) == ("ana", failed.last_error, "rejected")

    def test_cancel_is_idempotent_and_says_where_an_action_stands(self, scene: Scene, outsider: Outsider) -> None:
        """P68, P-T8: one row changed, then none, and none past queued."""
        action = scene.action()
        first = scene.app.sync.cancel(action.id)
        assert (first.status, first.reason) == (Status.CANCELLED, Reason.USER)
        before = outsider.contents()
        assert scene.app.sync.cancel(action.id) == first
        assert outsider.contents() == before
        assert scene.app.sync.cancel(scene.action(Status.SUBMITTED).id).status is Status.SUBMITTED


def _means() -> Iterator[Means]:
    """Yield every means that there is to bring an action to any status."""
    for move in MOVES:
        reasons: list[Reason | None] = [*sorted(move.reasons)] or [None]
        for reason in reasons:
            yield Means(name=f"{move.cause} as {reason}", push=_push(move, reason), move=move, reason=reason)
        if move.source is Status.SUBMITTED:
            name, push = f"{move.cause} under a lost lease", _settle(move.cause, lost=True)
            yield Means(name=name, push=push, towards=move.target)
        if move.cause is Cause.REPLACE:
            yield Means(name="reschedule", push=_reschedule, move=move, reason=Reason.RESCHEDULED)
        if move.cause is Cause.CANCEL:
            yield Means(name="cancel", push=_cancel, move=move, reason=Reason.USER)
            yield Means(name="cancel by the view", push=_update(move.target), move=move, reason=Reason.USER)
    for status in set(Status) - {Status.CANCELLED}:
        yield Means(name=f"update the view to {status}", push=_update(status), towards=status)


def _push(move: Move, reason: Reason | None) -> Push:
    match move.source:
        case Status.SUBMITTED:
            return _settle(move.cause)
        case Status.QUEUED if reason is not None:
            return lambda scene, _outsider, action: withdraw(scene.app, action, move.cause, reason)
        case Status.QUEUED:
            return lambda scene, _outsider, action: claim(scene.app, action)
        case _:
            return lambda scene, _outsider, action: decide(scene.app, action, move.cause)


def _settle(cause: Cause, *, lost: bool = False) -> Push:
    return lambda scene, _outsider, action: settle_as(scene.app, action, cause, lease_token=uuid4() if lost else None)


def _update(status: Status) -> Push:
    return lambda _scene, outsider, action: outsider.update(action.id, status=str(status))


def _cancel(scene: Scene, _outsider: Outsider, action: Action) -> object:
    return scene.app.sync.cancel(action.id)


def _reschedule(scene: Scene, _outsider: Outsider, action: Action) -> object:
    new = scene.app.sync.reschedule(action.id, at=scene.clock.now() + timedelta(days=1))
    return scene.app.sync.cancel(new.id)


MEANS = tuple(_means())
