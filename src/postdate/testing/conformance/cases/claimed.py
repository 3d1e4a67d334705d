"""Is what a claim brings what was due, in its order, as anybody else would read it?"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

from postdate.domain.states import Cause
from postdate.store.leases import lease_of, renew_leases
from postdate.store.queue import claim_due, take_over
from postdate.testing.conformance.cases.payloads import KEPT
from postdate.testing.moves import LEASE, claim, settle_as
from postdate.testing.scene import POST, REMINDER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.action import Claimed
    from postdate.store.transaction import Transaction
    from postdate.testing.conformance.outsider import Values
    from postdate.testing.scene import Scene

A_MINUTE = timedelta(minutes=1)


class ClaimedCases:
    """Claimed actions, which come back by the hundred."""

    def test_what_is_claimed_is_what_can_be_looked_up_in_the_order_in_which_it_is_due(self, scene: Scene) -> None:
        """P16, P38, P57: whatever it holds, and whatever it leaves out."""
        now, token = scene.clock.now(), uuid4()
        again = scene.action(at=now - timedelta(days=1))
        claim(scene.app, again)
        assert settle_as(scene.app, again, Cause.NOT_SENT), "so it comes with an attempt, and an error"
        asked: list[Values] = [
            {},
            {"payload": {}},
            {"payload": {"thing_id": "odd", "values": KEPT, "": {"deep": [{"er": KEPT}]}}},
            {"workspace": None, "target": "instagram", "occurrence": "2027-03-09", "overlap_key": "nightly"},
            {"at": "2027-03-09T11:00", "tz": "Europe/Lisbon", "gap": "reject", "fold": "second", "zone_policy": "ask"},
            {"at": now.replace(microsecond=1), "expires_at": now + timedelta(days=2)},
        ]
        for number, each in enumerate(asked * 2):
            named = each if number < len(asked) else {**each, "overlap_key": None, "target": "again"}
            scene.action(**{"at": now - number % 4 * A_MINUTE, **named})
        later = now + timedelta(days=1)
        claimed = _claimed(scene, POST, now=later, token=token)[POST]
        assert len(claimed) == len(asked) * 2 + 1
        due = [(one.due_at, one.action.id) for one in claimed]
        assert due == sorted(due)
        looked_up = [scene.get(one.action) for one in claimed]
        assert [repr(one.action) for one in claimed] == list(map(repr, looked_up)), "True is not 1, nor 1 1.0"
        assert [one.action.key for one in claimed] == [action.key for action in looked_up]
        assert {one[1:3] + one[4:] for one in claimed} == {(token, later + LEASE, False)}

    def test_the_claims_of_two_types_do_not_mix_under_one_token(self, scene: Scene) -> None:
        """P57, P60: as in a round of claims, whose leases may end at one instant."""
        made = {name: _due(scene, name) for name in (POST, REMINDER)}
        assert _ids(_claimed(scene, *made, now=scene.clock.now(), token=uuid4())) == made
        assert _ids(_claimed(scene, *made, now=scene.clock.now(), token=uuid4())) == {POST: [], REMINDER: []}

    def test_what_is_taken_over_of_two_types_does_not_mix_under_one_token(self, scene: Scene) -> None:
        """P58: only what was lost, and the attempt that was lost is the one that counts."""
        made = {name: _due(scene, name) for name in (POST, REMINDER)}
        began, token = scene.clock.now(), uuid4()
        kept, *_ = _claimed(scene, *made, now=began, token=uuid4())[POST]
        now = scene.clock.advance(2 * LEASE)

        def taken_over(tx: Transaction) -> dict[str, Sequence[Claimed]]:
            renew_leases(tx, [lease_of(kept)], lease_until=now + LEASE)
            over = partial(take_over, tx, now=now, lease_token=token, lease_until=now + LEASE, worker="other")
            return {name: over(name, ids) for name, ids in made.items()}

        taken = scene.await_(scene.app.kernel.work(taken_over))
        assert _ids(taken) == {**made, POST: [each for each in made[POST] if each != kept.action.id]}
        for one in (*taken[POST], *taken[REMINDER]):
            assert one.action == scene.get(one.action)
            assert (one.action.attempt_count, one.action.submitted_at) == (1, began)


def _due(scene: Scene, action_type: str) -> list[UUID]:
    """Make actions that are due, and return them in the order in which they are."""
    made = [scene.action(at=scene.clock.now() - number * A_MINUTE, action_type=action_type) for number in range(3)]
    return [action.id for action in reversed(made)]


def _claimed(scene: Scene, *action_types: str, now: datetime, token: UUID) -> dict[str, Sequence[Claimed]]:
    """Claim all that is due of these types under one token, as a round of the engine does."""

    def claim_all(tx: Transaction) -> dict[str, Sequence[Claimed]]:
        lease: Values = {"lease_token": token, "lease_until": now + LEASE, "worker": "test"}
        return {name: claim_due(tx, action_type=name, now=now, limit=100, **lease) for name in action_types}

    return scene.await_(scene.app.kernel.work(claim_all))


def _ids(claimed: Mapping[str, Sequence[Claimed]]) -> dict[str, list[UUID]]:
    return {name: [one.action.id for one in found] for name, found in claimed.items()}
