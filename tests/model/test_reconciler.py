"""Does whatever upstream, people, workers and crashes do leave every key published at most once, and nothing forgotten?

`POSTDATE_MODEL_EXAMPLES=2000` looks longer than a run of all tests should.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from contextlib import nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from postdate import PostdateError, Published, Reason, Rejected, Skipped, Status
from tests.conftest import IN_CI
from tests.model.upstream import TYPE, Post, Standing, World, require_at_rest, require_lawful

if TYPE_CHECKING:
    from postdate import Planned
    from postdate.domain.action import Claimed
    from postdate.domain.outcome import Outcome

EXAMPLES = int(os.environ.get("POSTDATE_MODEL_EXAMPLES", "50"))
QUICK = settings(
    max_examples=EXAMPLES,
    stateful_step_count=20,
    deadline=None,
    derandomize=IN_CI,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)

THING = st.sampled_from(["a", "b", "c"])
NETWORK = st.sampled_from(["x", "x", "y"])
WHEN = st.sampled_from([0, 10, 100, 1000])
MINUTES = st.sampled_from([0, 1, 3, 10])

NO_CRASH, IN_SOURCE = "none", "source"
CRASHES = [NO_CRASH] * 5 + [IN_SOURCE, "withdraw_queued", "insert_actions", "append_events"]

VERBS = {
    Status.QUEUED: ("cancel", "reschedule", "post_now"),
    Status.PUBLISHED: ("post_now",),
    Status.FAILED: ("retry", "retry", "confirm", "dismiss"),
}
"""What a person may do about an action; where nothing comes of it, the other model tries it."""

OUTCOMES: dict[str, Outcome] = {
    "published": Published(provider_id="p"),
    "rejected": Rejected("no"),
    "skipped": Skipped("no need"),
}


WAYS: dict[str, tuple[int, tuple[st.SearchStrategy[object], ...]]] = {
    "approve": (3, (THING, NETWORK, WHEN)),
    "unapprove": (2, (THING, NETWORK)),
    "end_a_post": (1, (THING, st.sampled_from(["finish", "delete"]))),
    "reconcile": (5, (MINUTES, st.sampled_from(CRASHES), st.integers(0, 3))),
    "decide": (4, (st.integers(0, 7), st.integers(0, 11))),
    "schedule_by_hand": (2, (THING, NETWORK)),
    "claim": (2, (MINUTES,)),
    "end_a_run": (1, (st.integers(0, 5), st.sampled_from([*OUTCOMES, "vanishes"]))),
    "everything_due_runs": (2, (st.sampled_from(["published", *OUTCOMES]),)),
    "recover": (1, ()),
    "forget": (1, ()),
}
"""What may happen: a method of the machine, how often among all, and what it is called with."""

STEPS = st.sampled_from([way for way, (weight, _) in WAYS.items() for _ in range(weight)]).flatmap(
    lambda way: st.tuples(st.just(way), *WAYS[way][1])
)
"""For one rule: of several, Hypothesis leaves most out in each example, so that little would come together."""


class Machine(RuleBasedStateMachine):
    """Edits upstream, lets people and workers act, and crashes, in any order; and then lets everything come to rest."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.runs: list[Claimed] = []
        self.went_out: Counter[str | None] = Counter()
        self.cancelled: set[str] = set()
        """The keys of what a person cancelled and nobody has scheduled by hand since."""
        self.barred_for_ever: frozenset[str] = frozenset()
        """The keys of what has ended and was dropped by retention, so that nobody can retry it."""
        world.begin()

    def teardown(self) -> None:
        try:
            if sys.exception() is None:
                self.come_to_rest()
                self.unapprove_everything()
                self.come_to_rest()
        finally:
            self.world.end()

    def look(self) -> Standing:
        return Standing.of(self.world.actions(), self.barred_for_ever)

    @initialize(first=WHEN, second=WHEN)
    def begin(self, first: int, second: int) -> None:
        self.approve("a", "x", first)
        self.approve("b", "x", second)
        self.reconcile(0, NO_CRASH, 0)

    @rule(step=STEPS)
    def go_on(self, step: tuple[Any, ...]) -> None:
        way, *values = step
        getattr(self, way)(*values)

    # upstream

    def approve(self, thing: str, network: str, minutes: int) -> None:
        post = self.world.upstream.posts.setdefault(thing, Post())
        post.networks[network], post.finished = minutes, False

    def unapprove(self, thing: str, network: str) -> None:
        if thing in self.world.upstream.posts:
            self.world.upstream.posts[thing].networks.pop(network, None)

    def unapprove_everything(self) -> None:
        """So that in every example something has to go that was made as it came to rest."""
        for post in self.world.upstream.posts.values():
            post.networks.clear()

    def end_a_post(self, thing: str, how: str) -> None:
        if thing not in self.world.upstream.posts:
            return
        if how == "finish":
            self.world.upstream.posts[thing].finished = True
        else:
            del self.world.upstream.posts[thing]

    # the reconciler, to the end or not

    def reconcile(self, after: int, crash: str, said: int) -> list[Planned]:
        self.world.clock.advance(timedelta(minutes=after))
        before = self.look()
        self.world.upstream.breaks_after = said if crash == IN_SOURCE else None
        with nullcontext() if crash in {NO_CRASH, IN_SOURCE} else self.world.crashing_after(crash):
            done, failed = self.world.reconcile()
        self.world.upstream.breaks_after = None
        assert crash != NO_CRASH or failed is None
        for planned in done:
            require_lawful(planned, self.world, before)
        return done

    # people

    def decide(self, number: int, choice: int) -> None:
        actions = [action for action in self.world.actions() if action.status in VERBS]
        if not actions:
            return
        action, verbs = actions[-1 - number % len(actions)], self.world.app.sync
        verb = VERBS[action.status][choice % len(VERBS[action.status])]
        try:
            if verb == "reschedule":
                verbs.reschedule(action.id, at=self.world.now + timedelta(minutes=10))
            else:
                made = getattr(verbs, verb)(action.id)
                if verb == "cancel" and made.reason is Reason.USER:
                    self.cancelled.add(made.key)
        except PostdateError:
            return

    def schedule_by_hand(self, thing: str, network: str) -> None:
        at, verbs = self.world.now + timedelta(minutes=2), self.world.app.sync
        try:
            made = verbs.schedule(TYPE, {"thing_id": thing}, target=network, at=at, workspace=self.world.workspace)
        except PostdateError:
            return
        self.cancelled.discard(str(made.key))

    # workers, and time

    def claim(self, after: int) -> None:
        self.world.clock.advance(timedelta(minutes=after))
        self.runs += self.world.claim()

    def end_a_run(self, number: int, how: str) -> None:
        if not self.runs:
            return
        run = self.runs.pop(number % len(self.runs))
        if how in OUTCOMES and self.world.settle(run, OUTCOMES[how]) and how == "published":
            self.went_out[run.action.key] += 1

    def everything_due_runs(self, how: str) -> None:
        self.claim(10)
        while self.runs:
            self.end_a_run(0, how)

    def recover(self) -> None:
        self.world.recover()

    def forget(self) -> None:
        """Let retention drop what has ended."""
        self.barred_for_ever = self.look().barred
        self.world.forget()

    # what must hold

    @invariant()
    def no_key_goes_out_twice_or_stands_twice_or_is_brought_back(self) -> None:
        active = [action.key for action in self.world.actions() if action.status.active]
        assert all(times == 1 for times in self.went_out.values())
        assert len(active) == len(set(active))
        assert not self.cancelled & set(active), "a person cancelled it"

    def come_to_rest(self) -> None:
        """Nobody does anything for a while: the queue holds what is desired and may be, and a pass does nothing."""
        self.world.recover()
        before = self.look()
        foreseen, _ = self.world.reconcile(dry_run=True)
        assert self.look() == before, "a dry run writes nothing"
        assert self.reconcile(0, NO_CRASH, 0) == foreseen
        at_rest = self.look()
        assert self.world.reconcile() == ([], None)
        assert self.look() == at_rest
        require_at_rest(self.world, at_rest)


def test_whatever_happens_no_key_goes_out_twice_and_the_queue_comes_to_hold_what_is_desired(database_url: str) -> None:
    world = World(database_url)
    # what is decided in Python is decided alike on every database
    as_many = QUICK if world.app.kernel.database.is_sqlite else settings(QUICK, max_examples=max(EXAMPLES // 3, 1))
    try:
        run_state_machine_as_test(lambda: Machine(world), settings=as_many)  # type: ignore[arg-type]  # it calls it alone
    finally:
        world.close()
