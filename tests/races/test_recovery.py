"""Is a lost lease ended once, when several engines find it or its worker comes back?

SC04, SC06.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import select

from postdate import Deferred, Reason, Status
from postdate.engine import recover
from postdate.engine.dispatch import Dispatcher
from postdate.engine.recover import Recovery
from tests.races.racing import race
from tests.races.stage import LATER, NOON, PUBLISHED, REJECTED, Stage, things

if TYPE_CHECKING:
    import httpx2
    import pytest

    from postdate.domain.action import Claimed
    from tests.races.racing import Contender, Meeting

ROUNDS = 40
BATCH = 10
A_MINUTE = timedelta(minutes=1)


def recovery_of(stage: Stage) -> Recovery:
    """Return the recovery of one more engine."""
    http: httpx2.AsyncClient = None  # type: ignore[assignment]  # no handler runs here
    dispatcher = Dispatcher(clock=stage.app.kernel.clock, http=http, ended=print, has_room=print)
    return Recovery(stage.app.kernel, stage.types, dispatcher, worker="recovery")


def test_two_recoveries_at_once_end_each_lost_lease_once_and_leave_none(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recover, "_BATCH", BATCH)
    stage.running(things(ROUNDS * BATCH * 2))
    later = NOON + timedelta(hours=1)

    def recovering(*, holds: int) -> Contender:
        recovery = recovery_of(stage)

        def recover_(number: int, meeting: Meeting) -> int:
            settled, _ = stage.meet(meeting, partial(recovery._recover, now=later), holding=number % 2 == holds)
            return len(settled)

        return recover_

    results = race(stage.url, ROUNDS, recovering(holds=0), recovering(holds=1))
    assert sum(map(sum, results)) == ROUNDS * BATCH * 2
    with stage.app.kernel.transaction(None) as tx:
        told = Counter(tx.execute(select(tx.tables.action_events.c.action_id)).scalars())
        ended = Counter(tx.execute(select(tx.tables.outcomes.c.reason)).scalars())
    assert set(told.values()) == {1}
    assert ended == {Reason.UNCONFIRMED: ROUNDS * BATCH * 2}
    stage.assert_sound()


def test_a_worker_that_comes_back_as_its_lease_is_ended_changes_all_or_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recover, "_BATCH", 1)
    stage.schedule(things(ROUNDS), apart=A_MINUTE)
    running: list[Claimed] = []
    for number in range(ROUNDS):
        with stage.app.kernel.transaction(None) as tx:
            running += stage.claim(tx, slots=1, now=NOON + number * A_MINUTE)
    recovery = recovery_of(stage)

    def come_back(number: int, meeting: Meeting) -> bool:
        settle = partial(stage.settle, claimed=[running[number]], outcome=PUBLISHED)
        return bool(stage.meet(meeting, settle, holding=number % 3 == 0))

    def give_up(number: int, meeting: Meeting) -> int:
        recover_ = partial(recovery._recover, now=running[number].lease_until)
        return len(stage.meet(meeting, recover_, holding=number % 3 == 1)[0])

    for number, (settled, recovered) in enumerate(race(stage.url, ROUNDS, come_back, give_up)):
        found = stage.app.sync.get(running[number].action.id)
        assert (settled, recovered) in {(True, 0), (False, 1)}
        assert (found.status, found.reason) == (
            (Status.PUBLISHED, None) if settled else (Status.FAILED, Reason.UNCONFIRMED)
        )
        assert number % 3 == 2 or settled == (number % 3 == 0), "whoever holds wins"
    stage.assert_sound()


def test_a_worker_that_comes_back_as_another_claims_its_action_again_changes_nothing(stage: Stage) -> None:
    """SC06: the first lease is lost, the run put back; only the token tells the two claims apart."""
    stage.schedule(things(ROUNDS), apart=A_MINUTE)
    first: list[Claimed] = []
    for number in range(ROUNDS):
        with stage.app.kernel.transaction(None) as tx:
            claimed = stage.claim(tx, slots=1, now=NOON + number * A_MINUTE)
            stage.settle(tx, claimed, Deferred(NOON + number * A_MINUTE))
            first += claimed

    def come_back(number: int, meeting: Meeting) -> bool:
        settle = partial(stage.settle, claimed=[first[number]], outcome=REJECTED)
        return bool(stage.meet(meeting, settle, holding=number % 3 == 0))

    def claim_again(number: int, meeting: Meeting) -> list[Claimed]:
        claim = partial(stage.claim, slots=1, now=LATER)
        return list(stage.meet(meeting, claim, holding=number % 3 == 1))

    for settled, claimed in race(stage.url, ROUNDS, come_back, claim_again):
        assert not settled
        assert [one.action.attempt_count for one in claimed] == [1]
        with stage.app.kernel.transaction(None) as tx:
            assert stage.settle(tx, claimed, PUBLISHED)
    stage.assert_sound()
