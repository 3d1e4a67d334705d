"""Does postdate do what a list in memory would, whatever happens in whatever order?

`POSTDATE_MODEL_EXAMPLES=2000` looks longer than a run of all tests should.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from postdate import PostdateError, Reason, Status, Unconfirmed
from tests.conftest import IN_CI
from tests.model.memory import ASKABLE, NOT_YET, Ask, Item, Memory
from tests.model.steps import (
    OUTCOMES,
    SCHEDULE,
    STEPS,
    Claim,
    Decide,
    DeleteOwner,
    Import,
    MoveClock,
    Recover,
    Renew,
    Schedule,
    Settle,
    Step,
)
from tests.model.world import LEASE, NOON, World

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from uuid import UUID

    from postdate import Action
    from postdate.domain.action import Claimed
    from tests.model.memory import Refusal

EXAMPLES = int(os.environ.get("POSTDATE_MODEL_EXAMPLES", "32"))
QUICK = settings(
    max_examples=EXAMPLES,
    stateful_step_count=60,
    deadline=None,
    derandomize=IN_CI,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)

FITTING: dict[str, Callable[[Item], bool]] = {
    "cancel": lambda item: item.status is Status.QUEUED,
    "reschedule": lambda item: item.status is Status.QUEUED,
    "post now": lambda item: item.status in {Status.QUEUED, Status.PUBLISHED},
    "retry": lambda item: item.status is Status.FAILED,
    "confirm": lambda item: item.reason is Reason.UNCONFIRMED,
    "dismiss": lambda item: item.reason is Reason.UNCONFIRMED,
}
"""Where a verb does something; it is tried elsewhere too."""


class Machine(RuleBasedStateMachine):
    """Takes one step after another, in the world and in memory, and compares them after each."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.memory = Memory()
        self.runs: list[Claimed] = []
        """What workers have in hand, whoever else may have it by now."""
        self.went_out: Counter[tuple[str, ...]] = Counter()
        world.begin()
        self.owners: list[UUID | None] = [None, world.workspace(), world.workspace()]
        self.memory.workspaces = {owner for owner in self.owners if owner is not None}

    def teardown(self) -> None:
        self.world.end()

    @property
    def now(self) -> datetime:
        return self.world.clock.now()

    @initialize(first=SCHEDULE, second=SCHEDULE)
    def begin(self, first: Schedule, second: Schedule) -> None:
        self.schedule(first)
        self.schedule(second)

    @rule(step=STEPS)
    def go_on(self, step: Step) -> None:
        match step:
            case Schedule():
                self.schedule(step)
            case Decide():
                self.decide(step)
            case Import():
                self.import_history(step)
            case DeleteOwner():
                self.delete_owner(step)
            case Claim():
                self.claim(step)
            case Settle():
                self.settle(step)
            case Renew():
                self.renew(step)
            case Recover():
                self.recover()
            case MoveClock():
                self.world.clock.advance(step.by)
            case _:
                assert_never(step)

    @invariant()
    def the_world_stands_as_memory_says(self) -> None:
        standing, told = self.world.look()
        assert standing == {item.id: item.state for item in self.memory.items}
        assert told == self.memory.told
        assert not self.memory.twice()

    # callers

    def schedule(self, step: Schedule) -> None:
        wanted = [self.owned(one) for one in step.asked]
        expected = self.memory.schedule(wanted, now=self.now)
        for should, made in zip(expected, self.world.schedule(wanted), strict=True):
            self.compare(should, made)

    def decide(self, step: Decide) -> None:
        fitting = [item for item in self.memory.items if FITTING[step.verb](item)]
        among = fitting if fitting and step.number % 4 else self.memory.items
        if not among:
            return
        item, verbs, memory = among[-1 - step.number % len(among)], self.world.app.sync, self.memory
        expected: Item | Refusal | None
        match step.verb:
            case "cancel":
                expected = memory.cancel(item, free_idempotency_key=step.flag)
                made = said(lambda: verbs.cancel(item.id, free_idempotency_key=step.flag))
            case "reschedule":
                expected = memory.reschedule(item, at=NOON + step.later)
                made = said(lambda: verbs.reschedule(item.id, at=NOON + step.later))
            case "post now":
                expected = memory.post_now(item, now=self.now)
                made = said(lambda: verbs.post_now(item.id))
            case "retry":
                expected = memory.retry(item, force=step.flag, now=self.now)
                made = said(lambda: verbs.retry(item.id, force=step.flag, note="again"))
            case "confirm":
                expected = memory.confirm(item)
                made = said(lambda: verbs.confirm(item.id))
            case _:
                expected = memory.dismiss(item)
                made = said(lambda: verbs.dismiss(item.id))
        self.compare(expected or item, made)

    def import_history(self, step: Import) -> None:
        ask = self.owned(step.asked)
        active = [item for item in self.memory.items if item.active]
        if step.like is not None and active:
            there = active[-1 - step.like % len(active)].ask
            ask = replace(ask, action_type=there.action_type, thing=there.thing, target=there.target)
        ask = replace(ask, expires_at=None, overlap_key=None, idempotency_key=None)
        if ask.workspace is None or ask.workspace in self.memory.workspaces:
            made = self.world.import_history(ask, step.status, step.reason)
            self.memory.items.append(
                Item(ask=ask, id=made, due_at=ask.at, status=step.status, reason=step.reason, attempts=1)
            )

    def delete_owner(self, step: DeleteOwner) -> None:
        gone = self.owners[step.number]
        if gone in self.memory.workspaces:
            self.memory.delete_workspace(gone)
            self.world.delete_workspace(gone)
        if step.number == 1:  # the other one stays away, and is asked for in vain
            self.owners[step.number] = made = self.world.workspace()
            self.memory.workspaces.add(made)

    # workers

    def claim(self, step: Claim) -> None:
        expected = self.memory.claim(limit=step.limit, now=self.now)
        claimed = self.world.claim(step.limit)
        assert [one.action.id for one in claimed] == [item.id for item in expected]
        for item, one in zip(expected, claimed, strict=True):
            assert one.action.attempt_count == item.attempts
            assert item.due_at <= self.now < one.lease_until
            self.hold(item, one)

    def settle(self, step: Settle) -> None:
        """Let runs end, also long after their leases were lost, and some of them twice."""
        if not any(self.item_of(run) for run in self.runs):
            self.claim(Claim(2))
        found = [(self.run_of(number), end) for number, end in step.ends]
        chosen = {(run.action.id, run.lease_token): (run, end) for run, end in found if run is not None}
        told = [(run, OUTCOMES[end](self.now)) for run, end in chosen.values() if end in OUTCOMES]
        held = [(self.item_of(run), outcome) for run, outcome in told]
        won = self.world.settle(told)
        assert won == {item.id for item, _ in held if item is not None}
        for item, outcome in held:
            if item is not None:
                self.memory.settle(item, outcome, now=self.now)
                self.count(item)
        over = [run for run, end in chosen.values() if end not in OUTCOMES]
        over += [run for (run, _), (item, _) in zip(told, held, strict=True) if item is not None and not item.active]
        self.runs = [run for run in self.runs if run not in over]

    def run_of(self, number: int) -> Claimed | None:
        """Return a run that still holds its lease, or, every other time, one whose action somebody else has by now."""
        holding = [run for run in self.runs if self.item_of(run) is not None]
        held = {run.action.id for run in holding}
        contested = [run for run in self.runs if run not in holding and run.action.id in held]
        first, second = (holding, contested) if number % 2 else (contested, holding)
        among = first or second or self.runs
        return among[-1 - number % len(among)] if among else None

    def item_of(self, run: Claimed) -> Item | None:
        """Return the action that still stands under this run's lease."""
        wanted = (run.action.id, run.lease_token)
        return next((item for item in self.memory.items if (item.id, item.token) == wanted), None)

    def count(self, item: Item) -> None:
        """No two runs of one thing, target and occurrence publish it."""
        if item.status is Status.PUBLISHED and item.ask.key is not None:
            self.went_out[item.ask.key] += 1
            assert self.went_out[item.ask.key] == 1

    def renew(self, step: Renew) -> None:
        later = self.now + LEASE
        runs = self.runs[step.odd :: 2]
        held = [item for run in runs if (item := self.item_of(run)) is not None]
        assert self.world.renew(runs, lease_until=later) == {(item.id, item.token) for item in held}
        for item in held:
            item.lease_until = later

    def recover(self) -> None:
        lost = self.memory.lost(now=self.now)
        self.memory.forget_keys(now=self.now)
        taken = {one.action.id: one for one in self.world.recover()}
        assert taken.keys() == {item.id for item in lost if item.ask.action_type == ASKABLE}
        for item in lost:
            if item.id in taken:
                assert taken[item.id].action.attempt_count == item.attempts
                self.hold(item, taken[item.id])
            else:
                self.memory.settle(item, Unconfirmed("its worker is gone"), now=self.now)

    def hold(self, item: Item, run: Claimed) -> None:
        item.token, item.lease_until = run.lease_token, run.lease_until
        self.runs.append(run)

    # both

    def owned(self, asked: tuple[Ask, int]) -> Ask:
        ask, owner = asked
        return replace(ask, workspace=self.owners[owner])

    def compare(self, should: Item | Refusal, made: Action | PostdateError) -> None:
        if isinstance(should, Item):
            assert not isinstance(made, PostdateError), made
            if should.id == NOT_YET:
                assert made.id not in {item.id for item in self.memory.items}
                should.id = made.id
            assert (made.id, made.status, made.reason) == (should.id, should.status, should.reason)
        else:
            assert type(made) is should


def said(verb: Callable[[], Action]) -> Action | PostdateError:
    """Return what a verb answers, or how it refuses."""
    try:
        return verb()
    except PostdateError as refusal:
        return refusal


def play(database_url: str, *, examples: int) -> None:
    """Take that many random ways on a database."""
    world = World(database_url)
    try:
        run_state_machine_as_test(
            lambda: Machine(world),  # type: ignore[arg-type]  # it calls it alone
            settings=settings(QUICK, max_examples=examples),
        )
    finally:
        world.close()


@pytest.mark.timeout(300)  # a few seconds of work, which a busy machine draws out
def test_whatever_happens_in_whatever_order_is_as_in_memory(database_url: str) -> None:
    """On SQLite most of them, since a step costs least there."""
    play(database_url, examples=EXAMPLES if database_url.startswith("sqlite") else max(EXAMPLES // 4, 1))
