"""Does what is too much for one batch come to the same in several?"""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from postdate import Action, Context, NewAction, Postdate, Published, Reason, Status
from postdate.engine import expand, recover
from postdate.engine.expand import Expander
from postdate.store.leases import lease_of
from postdate.store.queue import claim_due
from postdate.testing.factories import make_workspace
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    import pytest

    from postdate.clock import ManualClock
    from postdate.engine.dispatch import Dispatcher
    from postdate.engine.look import LookReport
    from postdate.store.leases import Lease
    from postdate.store.transaction import Transaction

A_MINUTE = timedelta(minutes=1)
A_DAY = timedelta(days=1)


async def idle(ctx: Context, payload: dict[str, object]) -> None: ...


async def test_of_rules_that_want_more_than_one_transaction_makes_each_gets_all_of_its_occurrences(
    app: Postdate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P78: the rest of them is left to the next transaction of the same pass, not to the next day."""
    app.action("post")(idle)
    monkeypatch.setattr("postdate.engine.look.MOST_ACTIONS", 20)  # more than one rule has, and less than two
    rules = [await app.create_rule("post", {}, cron="0 9 * * *", tz="UTC") for _ in range(5)]
    made: list[int] = []
    look = expand.look_at_batch

    def counted(*args: object, **kwargs: object) -> LookReport:
        report = look(*args, **kwargs)  # type: ignore[arg-type]
        made.append(report.materialised)
        return report

    with app.kernel.transaction(None) as tx:  # so that all of them have the whole window to come
        r = tx.tables.recurring_schedules
        tx.execute(r.update().values(look_at=NOON + 30 * A_DAY, last_materialized_at=NOON + 30 * A_DAY))
    monkeypatch.setattr(expand, "look_at_batch", counted)
    report = await Expander(app.kernel).run_once(NOON + 30 * A_DAY)
    assert (report.looked, report.materialised) == (5, 5 * 14)
    assert made == [28, 28, 14]
    beyond = [action for action in await app.list(limit=1000) if action.publish_at > NOON + 30 * A_DAY]
    assert {rule.id: 14 for rule in rules} == {
        rule.id: sum(action.origin_id == str(rule.id) for action in beyond) for rule in rules
    }


async def test_all_lost_leases_are_ended_in_one_tick_and_what_never_started_is_queued_again(
    app: Postdate, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SC04: also those of a hand-over that nobody picked up, which get their attempt back."""
    monkeypatch.setattr(recover, "_BATCH", 2)
    app.action("post")(idle)
    actions = await app.schedule_many([NewAction(action_type="post", payload={}, at=NOON) for _ in range(5)])
    ids = [each.id for each in actions if isinstance(each, Action)]

    def die(tx: Transaction) -> None:
        q = tx.tables.queue
        claim_due(tx, action_type="post", now=NOON, limit=5, lease_token=uuid4(), lease_until=NOON, worker="gone")
        tx.execute(q.update().where(q.c.action_id == ids[0]).values(started_at=None))

    await app.kernel.work(die)
    await app.pause(action_type="post")  # so that what is queued again stays to be looked at
    clock.advance(A_MINUTE)
    report = await app.tick()
    assert report.recovered == 5
    found = [await app.get(each) for each in ids]
    assert (found[0].status, found[0].attempt_count) == (Status.QUEUED, 0)
    assert {(each.status, each.reason) for each in found[1:]} == {(Status.FAILED, Reason.UNCONFIRMED)}


async def test_what_an_engine_has_in_hand_itself_hides_no_lost_leases_behind_it(
    app: Postdate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SC04: however many its own are, and however long ago they ran out."""
    monkeypatch.setattr(recover, "_BATCH", 2)
    app.action("post")(idle)
    await app.schedule_many([NewAction(action_type="post", payload={}, at=NOON) for _ in range(6)])

    def claim(tx: Transaction) -> set[Lease]:
        mine, theirs = (
            claim_due(tx, action_type="post", now=NOON, limit=3, lease_token=uuid4(), lease_until=until, worker=worker)
            for worker, until in (("here", NOON), ("gone", NOON + A_MINUTE / 2))
        )
        assert len(mine) == len(theirs) == 3
        return set(map(lease_of, mine))

    ours = await app.kernel.work(claim)
    dispatcher: Dispatcher = None  # type: ignore[assignment]  # nobody is asked here
    types = {"post": app.kernel.registry["post"]}
    recovery = recover.Recovery(app.kernel, types, dispatcher, worker="here", ours=lambda: ours)
    assert (await recovery.run_once(NOON + A_MINUTE)).recovered == 3
    left = {action.id for action in await app.list(status=Status.SUBMITTED)}
    assert left == {action_id for action_id, _ in ours}


async def test_what_never_started_needs_no_slot_to_be_queued_again(app: Postdate, clock: ManualClock) -> None:
    """SC04: also of a type whose provider is asked about what did start, as far as there are slots."""
    answer = asyncio.Event()

    async def lookup(ctx: Context, payload: dict[str, object]) -> Published:
        await answer.wait()
        return Published()

    app.action("post", lookup=lookup, concurrency=1)(idle)
    await app.schedule_many([NewAction(action_type="post", payload={}, at=NOON) for _ in range(6)])

    def die(tx: Transaction) -> None:
        q = tx.tables.queue
        claimed = claim_due(
            tx, action_type="post", now=NOON, limit=6, lease_token=uuid4(), lease_until=NOON, worker="gone"
        )
        unbegun = [each.action.id for each in claimed[:4]]
        tx.execute(q.update().where(q.c.action_id.in_(unbegun)).values(started_at=None))

    await app.kernel.work(die)
    await app.pause(action_type="post")  # so that what is queued again stays to be looked at
    async with app._engine(["post"]) as engine, engine._working():
        assert (await engine.tick(clock.advance(A_MINUTE))).recovered == 4 + 1
        answer.set()
        await engine._dispatcher.drain()
    stand = Counter((action.status, action.attempt_count) for action in await app.list())
    assert stand == {(Status.QUEUED, 0): 4, (Status.SUBMITTED, 1): 1, (Status.PUBLISHED, 1): 1}


async def test_for_a_crowd_of_one_workspace_its_zone_is_asked_for_once(database_url: str, clock: ManualClock) -> None:
    asked: list[UUID | None] = []

    def zone_of(workspace: UUID | None, _user: UUID) -> str:
        asked.append(workspace)
        return "UTC"

    app = Postdate(database_url, clock=clock, zone_of=zone_of)
    app.action("post")(idle)
    workspace = make_workspace(app)
    await app.set_quiet_hours(workspace, "11:00-13:00")
    await app.schedule_many([NewAction(action_type="post", payload={}, at=NOON, workspace=workspace) for _ in range(5)])
    asked.clear()
    await app.tick()
    assert {action.next_attempt_at for action in await app.list()} == {NOON + timedelta(hours=1)}
    assert asked == [workspace]
    await app.close()
