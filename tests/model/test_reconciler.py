"""Does whatever upstream, people, workers and crashes do leave every key published at most once, and nothing forgotten?

`POSTDATE_MODEL_EXAMPLES=2000` looks longer than a run of all tests should.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from sqlalchemy import delete

from postdate import Desired, Keep, Parent, Postdate, PostdateError, Published, Reason, Rejected, Skipped, Status
from postdate.clock import ManualClock
from postdate.domain.settle import Policy, settle
from postdate.engine import fulfil
from postdate.engine.claim import claim_round
from postdate.engine.reconcile import Reconciler
from postdate.engine.recover import Recovery
from postdate.engine.settle import ending_of, settle_set
from postdate.testing.factories import make_workspace
from tests.conftest import IN_CI
from tests.model.world import NOON

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from uuid import UUID

    from postdate import Action
    from postdate.domain.action import Claimed
    from postdate.domain.outcome import Outcome
    from postdate.engine.fulfil import Planned
    from postdate.store.transaction import Transaction

QUICK = settings(
    max_examples=int(os.environ.get("POSTDATE_MODEL_EXAMPLES", "12")),
    stateful_step_count=40,
    deadline=None,
    derandomize=IN_CI,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)

TYPE, SOURCE = "publish_post", "posts"
THINGS = ("a", "b", "c")
LEASE = timedelta(minutes=15)
TERMINAL = {Reason.USER, Reason.SKIPPED}


class Crash(Exception):
    """The process is gone."""


@dataclass
class Item:
    """A post upstream."""

    minutes: int
    """When it is to go out, after noon."""
    approved: bool = True
    finished: bool = False

    def desired(self, thing: str) -> Desired:
        at = NOON + timedelta(minutes=self.minutes)
        return Desired(action_type=TYPE, payload={"thing_id": thing}, at=at)


@dataclass
class Upstream:
    """What its owner edits."""

    posts: dict[str, Item] = field(default_factory=dict)
    breaks_after: int | None = None

    async def desired(self, workspace: UUID | None, *, thing_id: str | None = None) -> AsyncIterator[Desired]:
        for said, (thing, post) in enumerate(sorted(self.posts.items())):
            if said == self.breaks_after:
                raise ConnectionResetError
            if post.approved and not post.finished:
                yield post.desired(thing)

    async def parents(self, thing_ids: Sequence[str]) -> Mapping[str, Parent]:
        known = {thing: post for thing, post in self.posts.items() if thing in thing_ids}
        return {thing: Parent.FINISHED if post.finished else Parent.OPEN for thing, post in known.items()}


class World:
    """One database, its app, and the workspace of this example."""

    def __init__(self, database_url: str) -> None:
        self.clock = ManualClock(NOON)
        self.app = Postdate(database_url, clock=self.clock)
        self.app.action(TYPE, timeout=LEASE, max_attempts=2)(lambda _ctx, _payload: None)
        self.types = {each.name: each for each in self.app.kernel.registry}
        self.upstream = Upstream()
        self.loop = asyncio.Runner()

    def begin(self) -> None:
        self.clock.move_to(NOON)
        self.workspace = make_workspace(self.app)
        self.upstream = Upstream()
        self.app.kernel.sources = type(self.app.kernel.sources)()
        self.app.source(SOURCE, self.upstream, workspaces=[self.workspace])

    def end(self) -> None:
        with self.app.kernel.transaction(None) as tx:
            tx.execute(delete(tx.tables.workspaces))

    def close(self) -> None:
        self.loop.run(self.app.close())
        self.loop.close()

    def written(self, work: Callable[[Transaction], Any]) -> Any:
        with self.app.kernel.transaction(None) as tx:
            return work(tx)

    def claim(self) -> Sequence[Claimed]:
        now, token = self.clock.now(), uuid4()
        free, margin = {TYPE: 3}, timedelta(minutes=1)
        found = self.written(
            lambda tx: claim_round(tx, free, self.types, now=now, lease=LEASE, margin=margin, token=token, worker="w")
        )
        runnable: Sequence[Claimed] = found.runnable
        return runnable

    def settle(self, run: Claimed, outcome: Outcome) -> bool:
        now, policy = self.clock.now(), Policy(max_attempts=2)
        settled = settle(outcome, attempt_count=run.action.attempt_count, policy=policy, now=now, jitter=0.5)
        return bool(self.written(lambda tx: settle_set(tx, self.types, [ending_of(run, settled)], now=now)))

    def recover(self) -> None:
        recovery = Recovery(self.app.kernel, self.types, None, worker="recovery")  # type: ignore[arg-type]  # none is asked
        self.written(lambda tx: recovery._recover(tx, self.clock.now()))

    def reconcile(self, told: Callable[[object, Planned], None] = lambda _scope, _planned: None) -> None:
        self.loop.run(Reconciler(self.app.kernel, told=told).run_once(self.clock.now()))

    def actions(self) -> list[Action]:
        return sorted(self.app.sync.list(workspace=self.workspace), key=lambda action: action.id)


class Machine(RuleBasedStateMachine):
    """Edits upstream, lets people and workers act, and crashes, in any order."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.runs: list[Claimed] = []
        self.went_out: Counter[str | None] = Counter()
        self.cancelled: set[str | None] = set()
        """What a person cancelled and nobody has scheduled by hand since."""
        world.begin()

    def teardown(self) -> None:
        self.world.end()

    # upstream

    @rule(thing=st.sampled_from(THINGS), minutes=st.sampled_from([0, 0, 5, 30]))
    def approve(self, thing: str, minutes: int) -> None:
        post = self.world.upstream.posts.setdefault(thing, Item(minutes=minutes))
        post.minutes, post.approved = minutes, True

    @rule(thing=st.sampled_from(THINGS), how=st.sampled_from(["unapprove", "finish", "delete"]))
    def take_back(self, thing: str, how: str) -> None:
        post = self.world.upstream.posts.get(thing)
        if post is None:
            return
        post.approved = post.approved and how != "unapprove"
        post.finished = post.finished or how == "finish"
        if how == "delete":
            del self.world.upstream.posts[thing]

    # the reconciler, whole or in parts

    @rule(after=st.sampled_from([0, 1, 1, 3]))
    def reconcile(self, after: int) -> None:
        self.world.clock.advance(timedelta(minutes=after))
        self.world.reconcile()

    @rule(said=st.integers(0, 2))
    def reconcile_a_source_that_breaks(self, said: int) -> None:
        self.world.upstream.breaks_after = said
        self.world.reconcile()
        self.world.upstream.breaks_after = None

    @rule(where=st.sampled_from(["withdraw_queued", "insert_actions", "append_events"]))
    def crash_in_a_pass(self, where: str) -> None:
        """The process is gone in the middle of a transaction, and what it had not committed with it."""
        real = getattr(fulfil, where)

        def crash(*args: Any, **kwargs: Any) -> Any:
            real(*args, **kwargs)
            raise Crash

        setattr(fulfil, where, crash)
        try:
            self.world.reconcile()
        finally:
            setattr(fulfil, where, real)

    # people

    @rule(
        verb=st.sampled_from(["cancel", "reschedule", "post_now", "retry", "confirm", "dismiss"]),
        number=st.integers(0, 20),
    )
    def decide(self, verb: str, number: int) -> None:
        actions = self.world.actions()
        if not actions:
            return
        action, verbs = actions[-1 - number % len(actions)], self.world.app.sync
        try:
            if verb == "reschedule":
                verbs.reschedule(action.id, at=self.world.clock.now() + timedelta(minutes=10))
            else:
                made = getattr(verbs, verb)(action.id)
                if verb == "cancel" and made.reason is Reason.USER and not made.occurrence:
                    self.cancelled.add(made.thing_id)
        except PostdateError:
            return

    @rule(thing=st.sampled_from(THINGS))
    def schedule_by_hand(self, thing: str) -> None:
        at = self.world.clock.now() + timedelta(minutes=2)
        try:
            self.world.app.sync.schedule(TYPE, {"thing_id": thing}, at=at, workspace=self.world.workspace)
        except PostdateError:
            return
        self.cancelled.discard(thing)

    # workers

    @rule(after=st.sampled_from([0, 5, 30]))
    def claim(self, after: int) -> None:
        self.world.clock.advance(timedelta(minutes=after))
        self.runs += self.world.claim()

    @rule(number=st.integers(0, 5), how=st.sampled_from(["published", "published", "rejected", "skipped", "vanishes"]))
    def end_a_run(self, number: int, how: str) -> None:
        if not self.runs:
            return
        run = self.runs.pop(number % len(self.runs))
        outcomes: dict[str, Outcome] = {
            "published": Published(provider_id="p"),
            "rejected": Rejected("no"),
            "skipped": Skipped("no need"),
        }
        if how in outcomes and self.world.settle(run, outcomes[how]) and how == "published":
            self.went_out[run.action.key] += 1

    @rule()
    def recover(self) -> None:
        self.world.clock.advance(LEASE + timedelta(minutes=2))
        self.world.recover()

    # what must hold

    @invariant()
    def no_key_goes_out_twice_or_stands_twice(self) -> None:
        assert all(times == 1 for times in self.went_out.values())
        active = Counter(action.key for action in self.world.actions() if action.status.active)
        assert all(times == 1 for times in active.values())

    @invariant()
    def what_a_person_cancelled_was_not_brought_back(self) -> None:
        active = {action.thing_id for action in self.world.actions() if action.status.active and not action.occurrence}
        assert not active & self.cancelled

    @rule()
    def come_to_rest(self) -> None:
        """Nobody does anything for a while: the queue holds what is desired and may be, and a pass does nothing."""
        self.world.clock.advance(timedelta(minutes=3))
        self.world.reconcile()
        before, changes = self.world.actions(), []
        self.world.reconcile(lambda _scope, planned: None if _kept(planned) else changes.append(planned))
        assert self.world.actions() == before
        assert changes == []
        terminal = {each.key for each in before if _bars(each)}
        held = {each.thing_id: each for each in before if each.status.active and not each.occurrence}
        for thing, post in self.world.upstream.posts.items():
            if post.approved and not post.finished:
                wanted = post.desired(thing)
                there = held.get(thing)
                assert wanted.key in terminal or there is not None
                if wanted.key not in terminal and there is not None and there.status is Status.QUEUED:
                    assert there.fingerprint == wanted.fingerprint(), "it is not what upstream says"
        self.nothing_is_left_that_nobody_wants(held)

    def nothing_is_left_that_nobody_wants(self, held: Mapping[str | None, Action]) -> None:
        for thing, action in held.items():
            if action.origin_id == SOURCE and action.status is Status.QUEUED:
                post = self.world.upstream.posts.get(str(thing))
                assert post is not None, "its post was deleted"
                assert post.approved or post.finished, "its post was taken back"


def _kept(planned: Planned) -> bool:
    return isinstance(planned.step, Keep)


def _bars(action: Action) -> bool:
    return action.status in {Status.PUBLISHED, Status.FAILED} or action.reason in TERMINAL


def test_whatever_happens_no_key_goes_out_twice_and_the_queue_comes_to_hold_what_is_desired(database_url: str) -> None:
    world = World(database_url)
    try:
        run_state_machine_as_test(lambda: Machine(world), settings=QUICK)  # type: ignore[arg-type]  # it calls it alone
    finally:
        world.close()
