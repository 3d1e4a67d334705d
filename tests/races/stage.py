"""What do races happen on, and what must hold after each?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from sqlalchemy import case, exists, func, or_, select

from postdate import ActionType, NewAction, Postdate, Published, Rejected, Unconfirmed
from postdate.clock import ManualClock
from postdate.domain.settle import Policy, settle
from postdate.engine.claim import Claimer, claim_round
from postdate.engine.settle import EndingSet, ending_of, settle_set
from postdate.store.leases import lease_of
from postdate.store.queue import still_leased

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from postdate import Action, Context
    from postdate.domain.action import Claimed
    from postdate.domain.outcome import Outcome
    from postdate.store.transaction import Transaction
    from tests.races.racing import Meeting

Result = TypeVar("Result")

NOON = datetime(2027, 3, 14, 12, tzinfo=UTC)
LATER = NOON + timedelta(days=30)
LEASE = timedelta(seconds=60)
MARGIN = timedelta(seconds=30)
POST = "publish_post"

PUBLISHED = Published(provider_id="provider-1")
REJECTED = Rejected("no such page")
UNCONFIRMED = Unconfirmed("no answer")


def publish(_ctx: Context, _payload: dict[str, object]) -> str:
    """Publish nothing: these races claim and settle by hand."""
    return "provider-1"


@dataclass(frozen=True)
class Stage:
    """One application on one database, with the steps of the engine as calls."""

    url: str
    app: Postdate

    @classmethod
    def on(cls, url: str) -> Stage:
        """Open the database with a clock that stands at noon."""
        app = Postdate(url, clock=ManualClock(NOON))
        app.include(ActionType(name=POST, handler=publish, concurrency=10_000))
        return cls(url, app)

    @property
    def types(self) -> dict[str, ActionType]:
        """The action types, by name."""
        return {action_type.name: action_type for action_type in self.app.kernel.registry}

    @property
    def view(self) -> str:
        """The view's name in SQL."""
        kernel = self.app.kernel
        return f"{kernel.names.qualifier(kernel.database.dialect)}scheduled_actions"

    def close(self) -> None:
        """Close every connection."""
        self.app.kernel.database.close_sync()

    def schedule(self, things: Sequence[str], *, apart: timedelta = timedelta(0)) -> list[Action]:
        """Schedule a post of each thing, from noon on and so far apart; all must be admitted."""
        made = self.app.sync.schedule_many([post(thing, at=NOON + n * apart) for n, thing in enumerate(things)])
        for one in made:
            if isinstance(one, Exception):
                raise one
        return [one for one in made if not isinstance(one, Exception)]

    def claim(self, tx: Transaction, *, slots: int = 500, now: datetime = NOON) -> Sequence[Claimed]:
        """Claim as the engine does, and return what is to run."""
        free = dict.fromkeys(self.types, slots)
        claimer = Claimer(worker="race", token=uuid4(), lease=LEASE, margin=MARGIN)
        return claim_round(tx, claimer, free, self.types, now=now).runnable

    def running(self, things: Sequence[str]) -> list[Claimed]:
        """Schedule a post of each thing and claim them, in this order."""
        wanted = [action.id for action in self.schedule(things)]
        with self.app.kernel.transaction(None) as tx:
            claimed: dict[UUID, Claimed] = {}
            while len(claimed) < len(wanted):
                claimed |= {one.action.id: one for one in self.claim(tx)}
        return [claimed[action_id] for action_id in wanted]

    def ended(self, things: Sequence[str], outcome: Outcome) -> list[Action]:
        """Schedule a post of each thing, and let its run end in `outcome`."""
        claimed = self.running(things)
        with self.app.kernel.transaction(None) as tx:
            self.settle(tx, claimed, outcome)
        return [one.action for one in claimed]

    def settle(self, tx: Transaction, claimed: Sequence[Claimed], outcome: Outcome) -> frozenset[UUID]:
        """Settle runs as the engine does, and return those that still held their lease."""
        endings = [
            ending_of(one, settle(outcome, attempt_count=one.action.attempt_count, policy=Policy(), now=NOON, jitter=0))
            for one in claimed
        ]
        return settle_set(tx, self.types, EndingSet.of(tx.tables, endings), now=NOON)

    def settle_surely(self, claimed: Sequence[Claimed], outcome: Outcome) -> None:
        """Settle runs in transactions of their own, again while somebody who lost to the claim has a row locked."""
        waiting = {one.action.id: one for one in claimed}
        while waiting:
            with self.app.kernel.transaction(None) as tx:
                won = self.settle(tx, list(waiting.values()), outcome)
                leases = [lease_of(one) for key, one in waiting.items() if key not in won]
                locked = {action_id for action_id, _ in still_leased(tx, leases)}
            assert won | locked == waiting.keys()
            waiting = {key: waiting[key] for key in locked}

    def meet(self, meeting: Meeting, work: Callable[[Transaction], Result], *, holding: bool) -> Result:
        """Do `work` in a transaction: the others come as it begins, or, `holding`, when only the commit is missing."""
        if not holding:
            meeting.start()
        with self.app.kernel.transaction(None) as tx:
            result = work(tx)
            if holding:
                meeting.hold()
        return result

    def publish_all(self) -> int:
        """Claim and publish until nothing is due, however far ahead; return how many went out."""
        count = 0
        while True:
            with self.app.kernel.transaction(None) as tx:
                claimed = self.claim(tx, now=LATER)
                self.settle(tx, claimed, PUBLISHED)
            count += len(claimed)
            if not claimed:
                return count

    def assert_sound(self) -> None:
        """Check what no race may break: one place for each action, one publication or active action for each key."""
        with self.app.kernel.transaction(None) as tx:
            a, q, o = tx.tables.actions, tx.tables.queue, tx.tables.outcomes
            places = case((exists().where(q.c.action_id == a.c.id), 1), else_=0) + case(
                (exists().where(o.c.action_id == a.c.id), 1), else_=0
            )
            assert tx.execute(select(a.c.id).where(places != 1)).all() == []
            asked = tx.execute(select(func.count()).select_from(a)).scalar_one()
            kept = [tx.execute(select(func.count()).select_from(table)).scalar_one() for table in (q, o)]
            assert asked == sum(kept), "queue and outcomes hold rows of no action"
            gone = or_(o.c.status == "published", o.c.reason == "unconfirmed")
            twice = select(o.c.key).where(gone, o.c.key.is_not(None)).group_by(o.c.key).having(func.count() > 1)
            assert tx.execute(twice).all() == []
            active = select(q.c.key).where(exists().where(o.c.key == q.c.key, gone))
            assert tx.execute(active).all() == []


def post(thing: str, *, at: datetime = NOON) -> NewAction:
    """Return a post of this thing."""
    return NewAction(action_type=POST, payload={"thing_id": thing}, at=at, target="instagram")


def things(count: int) -> list[str]:
    """Return this many things that nobody has used."""
    run = uuid4().hex[:8]
    return [f"{run}-{number}" for number in range(count)]
