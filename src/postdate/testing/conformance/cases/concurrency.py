"""When two transactions reach for one row, does one win, and does the other say so?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from postdate.domain.states import Cause, Reason, Status
from postdate.errors import AlreadyPublished, AlreadyScheduled, IdempotencyConflict, MoveRefused, OverlapTaken
from postdate.store.idempotency import purge_expired
from postdate.store.outcomes import Settling, settle_claimed
from postdate.store.queue import claim_due
from postdate.store.transaction import Transaction
from postdate.testing.conformance.outsider import sqlstate
from postdate.testing.conformance.rival import Rival
from postdate.testing.moves import LEASE, lease_of, settlement
from postdate.testing.scene import POST

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from sqlalchemy import Connection

    from postdate.domain.action import Action
    from postdate.testing.conformance.outsider import Outsider, Values
    from postdate.testing.scene import Scene

THING = {"thing_id": "post-1"}


class ConcurrencyCases:
    """Pairs of transactions, each in both orders, with either end."""

    @pytest.mark.parametrize("verb", ["reschedule", "cancel", "post_now"])
    @pytest.mark.parametrize("commits", [True, False], ids=["committed", "rolled back"])
    def test_a_claim_that_is_under_way_wins(
        self, scene: Scene, outsider: Outsider, verb: str, *, commits: bool
    ) -> None:
        """P31, P58, P68: the verb waits for the claim, and then finds the action submitted, or queued as before."""
        action = scene.action(at=scene.clock.now())
        with outsider.connection() as ours:
            assert _claim(scene, ours) == [action.id]
            with Rival(outsider, _change(scene, verb, action)) as rival:
                rival.meet()
                assert not rival.future.done(), "it waits"
                _end(ours, commits=commits)
        stands = scene.get(action)
        if not commits:
            assert rival.future.result()
            assert stands.status is Status.CANCELLED
        elif verb == "cancel":
            assert rival.future.result().status is stands.status is Status.SUBMITTED
        else:
            assert isinstance(rival.future.exception(), MoveRefused)
            assert stands.status is Status.SUBMITTED
        active = [one for one in scene.app.sync.list() if one.status.active]
        assert len(active) == (0 if verb == "cancel" and not commits else 1), "never both, never none"

    @pytest.mark.parametrize("verb", ["reschedule", "cancel", "post_now"])
    @pytest.mark.parametrize("commits", [True, False], ids=["committed", "rolled back"])
    def test_a_claim_passes_over_what_is_being_changed(
        self, scene: Scene, outsider: Outsider, verb: str, *, commits: bool
    ) -> None:
        """P31, P58: it neither waits nor takes it; the next claim takes what came of it."""
        action = scene.action(at=scene.clock.now())
        with outsider.connection() as ours:
            changed = _change(scene, verb, action)(ours)
            with Rival(outsider, lambda connection: _claim(scene, connection)) as rival:
                rival.meet()
                assert rival.future.result() == []
                _end(ours, commits=commits)
        with outsider.connection() as ours:
            due = [] if verb == "cancel" else [changed.id]
            assert _claim(scene, ours) == (due if commits else [action.id])

    def test_two_claims_take_different_actions(self, scene: Scene, outsider: Outsider) -> None:
        """P27, P60: neither waits for the other, and none is taken twice."""
        actions = [scene.action(at=scene.clock.now() + timedelta(seconds=n)) for n in range(4)]
        with outsider.connection() as ours:
            first = _claim(scene, ours, limit=2)
            with Rival(outsider, lambda connection: _claim(scene, connection)) as rival:
                rival.meet()
                second = rival.future.result()
            ours.commit()
        assert first == [action.id for action in actions[:2]]
        assert second == [action.id for action in actions[2:]]

    @pytest.mark.parametrize("held", ["thing", "overlap key"])
    @pytest.mark.parametrize("commits", [True, False], ids=["committed", "rolled back"])
    def test_a_second_insert_waits_for_the_first(
        self, scene: Scene, outsider: Outsider, held: str, *, commits: bool
    ) -> None:
        """P26: whoever commits first has the key."""
        asked: Values = {"payload": THING} if held == "thing" else {"overlap_key": "nightly"}
        with outsider.connection() as ours:
            first = scene.action(connection=ours, **asked)
            with Rival(outsider, lambda connection: scene.action(connection=connection, **asked)) as rival:
                rival.meet()
                assert not rival.future.done(), "it waits"
                _end(ours, commits=commits)
        if commits:
            refused = rival.future.exception()
            assert isinstance(refused, AlreadyScheduled | OverlapTaken)
            assert refused.existing == first.id
        else:
            assert scene.get(rival.future.result()).status is Status.QUEUED

    @pytest.mark.parametrize("by", ["verb", "view", "retry"])
    def test_an_insert_waits_for_the_end_of_its_sibling(self, scene: Scene, outsider: Outsider, by: str) -> None:
        """P64, P66: and is let in only where that neither went out, nor may have, nor goes on."""
        for ending in (Cause.NOT_SENT, Cause.REJECTED, Cause.UNCONFIRMED, Cause.PUBLISHED):
            self._meets_its_sibling(scene, outsider, by, ending)

    @staticmethod
    def _meets_its_sibling(scene: Scene, outsider: Outsider, by: str, ending: Cause) -> None:
        thing = {"thing_id": ending.value}
        failed = scene.action(Status.FAILED, Reason.REJECTED, payload=thing)
        sibling = scene.action(Status.SUBMITTED, payload=thing)
        inserts: dict[str, Callable[[Connection], Any]] = {
            "verb": lambda connection: scene.action(payload=thing, connection=connection),
            "view": lambda connection: outsider.insert(
                "scheduled_actions", connection, action_type=POST, payload=thing, publish_at=sibling.publish_at
            ),
            "retry": lambda connection: scene.app.sync.retry(failed.id, connection=connection),
        }
        with outsider.connection() as ours:
            assert _settle(scene, ours, sibling, ending)
            with Rival(outsider, inserts[by]) as rival:
                rival.meet()
                ours.commit()
        refused = rival.future.exception()
        if ending is Cause.REJECTED:
            assert refused is None
        elif by == "view":
            assert sqlstate(refused) == "23505"
        else:
            assert isinstance(refused, AlreadyScheduled if ending is Cause.NOT_SENT else AlreadyPublished)
        active = [one for one in scene.app.sync.list(thing=ending.value) if one.status.active]
        assert len(active) == (1 if ending in {Cause.REJECTED, Cause.NOT_SENT} else 0)
        for one in active:
            scene.app.sync.cancel(one.id)

    @pytest.mark.parametrize("same", [True, False], ids=["same", "other"])
    @pytest.mark.parametrize("commits", [True, False], ids=["committed", "rolled back"])
    def test_a_replay_waits_for_the_first_call(
        self, scene: Scene, outsider: Outsider, *, commits: bool, same: bool
    ) -> None:
        """It is answered the same action, or has the key where the first call came to nothing."""
        asked: Values = {"at": scene.clock.now(), "idempotency_key": "k"}
        with outsider.connection() as ours:
            first = scene.action(payload={"n": 1}, connection=ours, **asked)
            payload = {"n": 1 if same else 2}
            with Rival(outsider, lambda it: scene.action(payload=payload, connection=it, **asked)) as rival:
                rival.meet()
                assert not rival.future.done(), "it waits"
                _end(ours, commits=commits)
        made = scene.app.sync.list()
        if commits and same:
            assert made == [first] == [rival.future.result()]
        elif commits:
            assert isinstance(rival.future.exception(), IdempotencyConflict)
            assert made == [first]
        else:
            assert made == [rival.future.result()] != [first]

    def test_an_expired_key_that_is_being_taken_anew_is_not_forgotten(self, scene: Scene, outsider: Outsider) -> None:
        """The tick's sweep passes over it rather than wait for it and sweep it away."""
        scene.action(payload={"n": 1}, idempotency_key="k")
        now = scene.clock.advance(scene.app.settings.idempotency_ttl)

        def sweep(connection: Connection) -> int:
            return purge_expired(Transaction.on(connection, scene.app.kernel.names), now=now, limit=10)

        with outsider.connection() as ours:
            again = scene.action(payload={"n": 2}, idempotency_key="k", connection=ours)
            with Rival(outsider, sweep) as rival:
                rival.meet()
                ours.commit()
        assert rival.future.result() == 0
        assert scene.action(payload={"n": 2}, at=again.publish_at, idempotency_key="k").id == again.id


def _claim(scene: Scene, connection: Connection, *, limit: int = 10) -> list[UUID]:
    tx = Transaction.on(connection, scene.app.kernel.names)
    now = scene.clock.now() + timedelta(minutes=1)
    token, until = uuid4(), now + LEASE
    found = claim_due(tx, action_type=POST, now=now, limit=limit, lease_token=token, lease_until=until, worker="rival")
    return [one.action.id for one in found]


def _settle(scene: Scene, connection: Connection, action: Action, ending: Cause) -> object:
    tx, now = Transaction.on(connection, scene.app.kernel.names), scene.clock.now()
    token = lease_of(tx, action.id) or uuid4()
    endings = {action.id: settlement(ending, attempt_count=action.attempt_count, now=now)}
    return settle_claimed(tx, Settling.of(tx.tables, token, endings), now=now, actor="engine")


def _change(scene: Scene, verb: str, action: Action) -> Callable[[Connection], Any]:
    at = {"at": scene.clock.now()} if verb == "reschedule" else {}
    return lambda connection: getattr(scene.app.sync, verb)(action.id, connection=connection, **at)


def _end(connection: Connection, *, commits: bool) -> None:
    (connection.commit if commits else connection.rollback)()
