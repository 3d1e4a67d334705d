"""Does postdate do what a dictionary in memory would, whatever happens in whatever order?

`POSTDATE_MODEL_EXAMPLES=2000` looks longer than a run of all tests should.
"""

from __future__ import annotations

import os
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings, strategies
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from postdate import Deferred, NotSent, PostdateError, Published, Reason, Rejected, Skipped, Status, Unconfirmed
from tests.conftest import IN_CI
from tests.model.memory import ASKABLE, NOT_YET, TYPES, Ask, Item, Memory
from tests.model.world import NOON, World

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from uuid import UUID

    from postdate import Action
    from postdate.domain.action import Claimed
    from postdate.domain.outcome import Outcome
    from tests.model.memory import Refusal

EXAMPLES = int(os.environ.get("POSTDATE_MODEL_EXAMPLES", "12"))
STEPS = 40
QUICK = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,
    derandomize=IN_CI,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)

DEFERRED_BY = timedelta(minutes=20)
MINUTES = strategies.sampled_from([0, 5, 30, 120]).map(lambda minutes: timedelta(minutes=minutes))
STEPS_OF_CLOCK = strategies.sampled_from([1, 5, 20, 60, 180, -5, -60]).map(lambda minutes: timedelta(minutes=minutes))
PICKS = strategies.integers(0, 99)
ENDS = strategies.sampled_from(["published", "rejected", "not_sent", "unconfirmed", "skipped", "deferred"])
ANSWERS: dict[str, Outcome] = {
    "published": Published(provider_id="p"),
    "not_sent": NotSent("none"),
    "unconfirmed": Unconfirmed("?"),
}


@strategies.composite
def asks(draw: strategies.DrawFn, workspaces: int = 2) -> tuple[Ask, int]:
    """Return what somebody asks for, and the number of the workspace it is for; 0 is none."""
    at = NOON + draw(MINUTES)
    expiry = draw(strategies.sampled_from([None, None, None, timedelta(0), timedelta(minutes=30), -timedelta(hours=1)]))
    ask = Ask(
        action_type=draw(strategies.sampled_from(TYPES)),
        at=at,
        thing=draw(strategies.sampled_from([None, "a", "a", "b"])),
        target=draw(strategies.sampled_from([None, None, "t"])),
        expires_at=None if expiry is None else at + expiry,
        overlap_key=draw(strategies.sampled_from([None, None, "o"])),
        idempotency_key=draw(strategies.sampled_from([None, None, "i"])),
        moody=draw(strategies.booleans()),
    )
    return ask, draw(strategies.integers(0, workspaces))


class Machine(RuleBasedStateMachine):
    """Takes one step after another, in the world and in memory, and compares them after each."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.memory = Memory()
        self.runs: list[Claimed] = []
        """What workers have in hand, whoever else may have it by now."""
        self.went_out: Counter[tuple[str, ...]] = Counter()

    @initialize()
    def begin(self) -> None:
        self.world.begin()
        self.owners: list[UUID | None] = [None, self.world.workspace(), self.world.workspace()]
        self.memory.workspaces = {owner for owner in self.owners if owner is not None}

    def teardown(self) -> None:
        if hasattr(self, "owners"):
            self.world.end()

    @property
    def now(self) -> datetime:
        return self.world.clock.now()

    def owned(self, asked: tuple[Ask, int]) -> Ask:
        ask, owner = asked
        return Ask(**{**vars(ask), "workspace": self.owners[owner]})

    def pick(self, number: int) -> Item:
        """Prefer what was made last, but reach everything."""
        return self.memory.items[-1 - number % len(self.memory.items)]

    def item_of(self, run: Claimed) -> Item | None:
        """Return the action that still stands under this run's lease."""
        return next(
            (item for item in self.memory.items if item.token == run.lease_token and item.id == run.action.id), None
        )

    # callers

    @rule(asked=strategies.lists(asks(), min_size=1, max_size=3))
    def schedule(self, asked: list[tuple[Ask, int]]) -> None:
        wanted = [self.owned(one) for one in asked]
        expected = self.memory.schedule(wanted, now=self.now)
        for should, made in zip(expected, self.world.schedule(wanted), strict=True):
            self.compare(should, made)

    @precondition(lambda self: self.memory.items)
    @rule(number=PICKS, later=MINUTES)
    def reschedule(self, number: int, later: timedelta) -> None:
        item, at = self.pick(number), NOON + later
        expected = self.memory.reschedule(item, at=at)
        self.compare(expected, said(lambda: self.world.app.sync.reschedule(item.id, at=at)))

    @precondition(lambda self: self.memory.items)
    @rule(number=PICKS)
    def post_now(self, number: int) -> None:
        item = self.pick(number)
        expected = self.memory.post_now(item, now=self.now)
        self.compare(expected, said(lambda: self.world.app.sync.post_now(item.id)))

    @precondition(lambda self: self.memory.items)
    @rule(number=PICKS, free=strategies.booleans())
    def cancel(self, number: int, free: bool) -> None:
        item = self.pick(number)
        self.memory.cancel(item, free_idempotency_key=free)
        assert self.world.app.sync.cancel(item.id, free_idempotency_key=free).status is item.status

    @precondition(lambda self: self.memory.items)
    @rule(number=PICKS, force=strategies.booleans())
    def retry(self, number: int, force: bool) -> None:
        item = self.pick(number)
        expected = self.memory.retry(item, force=force, now=self.now)
        self.compare(expected or item, said(lambda: self.world.app.sync.retry(item.id, force=force, note="again")))

    @precondition(lambda self: any(item.reason is Reason.UNCONFIRMED for item in self.memory.items))
    @rule(number=PICKS, went_out=strategies.booleans())
    def decide(self, number: int, went_out: bool) -> None:
        doubtful = [item for item in self.memory.items if item.reason is Reason.UNCONFIRMED]
        item = doubtful[number % len(doubtful)]
        verbs = self.world.app.sync
        expected = self.memory.confirm(item) if went_out else self.memory.dismiss(item)
        self.compare(expected or item, said(lambda: (verbs.confirm if went_out else verbs.dismiss)(item.id)))

    @rule(asked=asks(), ended=strategies.sampled_from([(Status.PUBLISHED, None), (Status.FAILED, Reason.UNCONFIRMED)]))
    def import_history(self, asked: tuple[Ask, int], ended: tuple[Status, Reason | None]) -> None:
        ask = self.owned(asked)
        if ask.workspace is not None and ask.workspace not in self.memory.workspaces:
            return
        ask = Ask(**{**vars(ask), "expires_at": None, "overlap_key": None, "idempotency_key": None})
        made = self.world.import_history(ask, *ended)
        self.memory.items.append(Item(ask=ask, id=made, due_at=ask.at, status=ended[0], reason=ended[1], attempts=1))

    @rule(number=strategies.integers(1, 2))
    def delete_owner(self, number: int) -> None:
        gone = self.owners[number]
        if gone in self.memory.workspaces:
            self.memory.delete_workspace(gone)
            self.world.delete_workspace(gone)
        if number == 1:  # the other one stays away, and is asked for in vain
            self.owners[number] = made = self.world.workspace()
            self.memory.workspaces.add(made)

    # workers

    @rule(limit=strategies.integers(1, 3))
    def claim(self, limit: int) -> None:
        expected = self.memory.claim(limit=limit, now=self.now)
        claimed = self.world.claim(limit)
        assert [one.action.id for one in claimed] == [item.id for item in expected]
        for item, one in zip(expected, claimed, strict=True):
            assert one.action.attempt_count == item.attempts
            assert item.due_at <= self.now < one.lease_until
            self.hold(item, one)

    @precondition(lambda self: self.runs)
    @rule(ends=strategies.lists(strategies.tuples(PICKS, ENDS), min_size=1, max_size=3, unique_by=lambda end: end[0]))
    def settle(self, ends: list[tuple[int, str]]) -> None:
        """Whoever comes, also long after the lease was lost; the same run may come twice."""
        chosen = {number % len(self.runs): self.outcome(end) for number, end in ends}
        ended = [(self.runs[place], outcome) for place, outcome in chosen.items()]
        held = [(self.item_of(run), outcome) for run, outcome in ended]
        won = self.world.settle(ended)
        assert won == {item.id for item, _ in held if item is not None}
        for item, outcome in held:
            if item is not None:
                self.memory.settle(item, outcome, now=self.now)
                self.count(item)

    def count(self, item: Item) -> None:
        """No two runs of one thing, target and occurrence publish it."""
        if item.status is Status.PUBLISHED and item.ask.key is not None:
            self.went_out[item.ask.key] += 1
            assert self.went_out[item.ask.key] == 1

    @precondition(lambda self: self.runs)
    @rule(number=PICKS)
    def crash(self, number: int) -> None:
        self.runs.pop(number % len(self.runs))

    @rule()
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

    @rule(by=STEPS_OF_CLOCK)
    def move_clock(self, by: timedelta) -> None:
        self.world.clock.advance(by)

    def hold(self, item: Item, run: Claimed) -> None:
        item.token, item.lease_until = run.lease_token, run.lease_until
        self.runs.append(run)

    def outcome(self, end: str) -> Outcome:
        match end:
            case "deferred":
                return Deferred(self.now + DEFERRED_BY)
            case "rejected":
                return Rejected("no")
            case "skipped":
                return Skipped("no need")
            case _:
                return ANSWERS[end]

    def compare(self, should: Item | Refusal, made: Action | PostdateError) -> None:
        if isinstance(should, Item):
            assert not isinstance(made, PostdateError), made
            if should.id == NOT_YET:
                assert made.id not in {item.id for item in self.memory.items}
                should.id = made.id
            assert (made.id, made.status, made.reason) == (should.id, should.status, should.reason)
        else:
            assert type(made) is should

    # always

    @invariant()
    def the_world_stands_as_memory_says(self) -> None:
        if not hasattr(self, "owners"):
            return
        assert self.world.state() == {item.id: item.state for item in self.memory.items}
        assert self.world.told() == self.memory.told
        assert not self.memory.twice()


def said(verb: Callable[[], Action]) -> Action | PostdateError:
    """Return what a verb answers, or how it refuses."""
    try:
        return verb()
    except PostdateError as refusal:
        return refusal


def test_whatever_happens_in_whatever_order_is_as_in_memory(database_url: str) -> None:
    world = World(database_url)
    try:
        run_state_machine_as_test(lambda: Machine(world), settings=QUICK)  # type: ignore[arg-type]  # it calls it alone
    finally:
        world.close()
