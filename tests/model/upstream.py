"""What does an upstream want that people edit, and what may the reconciler make of it?"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, assert_never
from uuid import uuid4

from sqlalchemy import delete, select

from postdate import Desired, Insert, Keep, Parent, Planned, Postdate, Reason, Replace, Status, Withdraw
from postdate.clock import ManualClock
from postdate.domain.settle import Policy, settle
from postdate.engine import fulfil
from postdate.engine.claim import Claimer, claim_round
from postdate.engine.reconcile import Reconciler
from postdate.engine.recover import Recovery
from postdate.engine.settle import EndingSet, ending_of, settle_set
from postdate.testing.factories import make_workspace
from tests.model.world import NOON

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from postdate import Action
    from postdate.domain.action import Claimed
    from postdate.domain.outcome import Outcome
    from postdate.store.transaction import Transaction

TYPE, SOURCE = "publish_post", "posts"
LEASE = timedelta(minutes=15)
ATTEMPTS = 2
AGE = timedelta(minutes=2)
"""Below which nothing is withdrawn (P53)."""


class Crash(Exception):
    """The process is gone."""


@dataclass
class Post:
    """A post upstream, for one or several networks."""

    networks: dict[str, int] = field(default_factory=dict)
    """For which it is approved, and when it is to go out there, in minutes after noon."""
    finished: bool = False


@dataclass
class Upstream:
    """What its owner edits; a source."""

    posts: dict[str, Post] = field(default_factory=dict)
    breaks_after: int | None = None
    """After how many words; None is never."""

    def wanted(self) -> dict[str, Desired]:
        """Return what should be scheduled, by key."""
        desired = [
            Desired(action_type=TYPE, payload={"thing_id": thing}, target=network, at=NOON + timedelta(minutes=minutes))
            for thing, post in sorted(self.posts.items())
            for network, minutes in sorted(post.networks.items())
            if not post.finished
        ]
        return {each.key: each for each in desired}

    async def desired(self, workspace: UUID | None, *, thing_id: str | None = None) -> AsyncIterator[Desired]:
        for said, each in enumerate(self.wanted().values()):
            if said == self.breaks_after:
                raise ConnectionResetError
            yield each
        if self.breaks_after is not None:
            raise ConnectionResetError

    async def parents(self, thing_ids: Sequence[str]) -> Mapping[str, Parent]:
        known = {thing: post for thing, post in self.posts.items() if thing in thing_ids}
        return {thing: Parent.FINISHED if post.finished else Parent.OPEN for thing, post in known.items()}


class World:
    """One database, its app, and the workspace of this example."""

    def __init__(self, database_url: str) -> None:
        self.clock = ManualClock(NOON)
        self.app = Postdate(database_url, clock=self.clock)
        self.app.action(TYPE, timeout=LEASE, max_attempts=ATTEMPTS)(lambda _ctx, _payload: None)
        self.types = {each.name: each for each in self.app.kernel.registry}
        self.upstream = Upstream()
        self.loop = asyncio.Runner()

    @property
    def now(self) -> datetime:
        return self.clock.now()

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

    def actions(self) -> list[Action]:
        return sorted(self.app.sync.list(workspace=self.workspace), key=lambda action: action.id)

    def reconcile(self, *, dry_run: bool = False) -> tuple[list[Planned], str | None]:
        """Do one pass, or see what it would do; return that without what it keeps, and why it did not end well."""
        done: list[Planned] = []

        def told(_scope: object, planned: Planned) -> None:
            if not isinstance(planned.step, Keep):
                done.append(planned)

        report = self.loop.run(Reconciler(self.app.kernel, dry_run=dry_run, told=told).run_once(self.now))
        (part,) = report.parts
        return done, part.failed

    @contextmanager
    def crashing_after(self, function: str) -> Iterator[None]:
        """Let the process be gone in the middle of a transaction, and what it had not committed with it."""
        real = getattr(fulfil, function)

        def crash(*args: Any, **kwargs: Any) -> Any:
            real(*args, **kwargs)
            raise Crash

        setattr(fulfil, function, crash)
        try:
            yield
        finally:
            setattr(fulfil, function, real)

    def claim(self) -> Sequence[Claimed]:
        claimer = Claimer(worker="w", token=uuid4(), lease=LEASE, margin=timedelta(minutes=1))
        found = self._written(lambda tx: claim_round(tx, claimer, {TYPE: 3}, self.types, now=self.now))
        runnable: Sequence[Claimed] = found.runnable
        return runnable

    def settle(self, run: Claimed, outcome: Outcome) -> bool:
        now, policy = self.now, Policy(max_attempts=ATTEMPTS)
        settled = settle(outcome, attempt_count=run.action.attempt_count, policy=policy, now=now, jitter=0.5)
        ended = EndingSet.of(self.app.kernel.tables, [ending_of(run, settled)])
        return bool(self._written(lambda tx: settle_set(tx, self.types, ended, now=now)))

    def recover(self) -> None:
        """Let every lease run out."""
        self.clock.advance(LEASE + timedelta(minutes=2))
        recovery = Recovery(self.app.kernel, self.types, None, worker="recovery")  # type: ignore[arg-type]  # none is asked
        self._written(lambda tx: recovery._recover(tx, self.now))

    def forget(self) -> None:
        """Drop what was asked, as retention does, where it has ended; what happened is kept."""
        self._written(
            lambda tx: tx.execute(
                delete(tx.tables.actions).where(tx.tables.actions.c.id.in_(select(tx.tables.outcomes.c.action_id)))
            )
        )

    def _written(self, work: Callable[[Transaction], Any]) -> Any:
        with self.app.kernel.transaction(None) as tx:
            return work(tx)


@dataclass(frozen=True)
class Standing:
    """What there is, as far as the reconciler should care."""

    active: Mapping[str, Action]
    """By key."""
    barred: frozenset[str]
    """The keys that no source may schedule any more (P50)."""

    @classmethod
    def of(cls, actions: Sequence[Action], barred_for_ever: frozenset[str]) -> Standing:
        return cls(
            active={str(action.key): action for action in actions if action.status.active},
            barred=barred_for_ever | {str(action.key) for action in actions if _bars(action)},
        )


def _bars(action: Action) -> bool:
    return action.status in {Status.PUBLISHED, Status.FAILED} or action.reason in {Reason.USER, Reason.SKIPPED}


def require_lawful(planned: Planned, world: World, before: Standing) -> None:
    """Fail where the reconciler does what it never may."""
    step, wish = planned.step, world.upstream.wanted().get(planned.step.key)
    old = before.active.get(step.key)
    assert planned.refused is None
    assert not planned.clashed, "nobody else was there"
    assert step.key not in before.barred or isinstance(step, Withdraw), "what has ended under a key bars it"
    match step:
        case Insert():
            assert wish is not None
            assert old is None
        case Replace():
            assert wish is not None
            assert old is not None
            assert (old.id, old.status) == (step.action_id, Status.QUEUED)
            assert old.fingerprint != wish.fingerprint(), "nothing has changed"
        case Withdraw():
            assert wish is None, "it is wanted"
            assert old is not None
            assert (old.id, old.status) == (step.action_id, Status.QUEUED)
            assert old.origin_id == SOURCE, "it is a person's"
            assert world.now - old.created_at >= AGE, "it is too young"
            post = world.upstream.posts.get(str(old.thing_id))
            assert post is None or not post.finished, "a person asked for it when its post was finished"
            assert post is None or old.fingerprint is not None, "a person posted it once more"
        case Keep():
            pass
        case _:
            assert_never(step)


def require_at_rest(world: World, standing: Standing) -> None:
    """Fail unless the queue holds what is desired and may be, and nothing that nobody wants."""
    wanted, active = world.upstream.wanted(), standing.active
    for key in wanted.keys() - standing.barred:
        assert key in active, "it was forgotten"
        assert active[key].fingerprint == wanted[key].fingerprint(), "it is not what upstream says"
    for key in active.keys() - wanted.keys():
        action = active[key]
        post = world.upstream.posts.get(str(action.thing_id))
        again = action.fingerprint is None
        assert action.origin_id != SOURCE or (post is not None and (post.finished or again)), "nobody wants it"
