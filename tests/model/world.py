"""How is the real thing moved step by step, and how does it stand?"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID, uuid4

from sqlalchemy import delete, insert, select, text

from postdate import (
    Action,
    ActionType,
    Backoff,
    Context,
    NewAction,
    Postdate,
    PostdateError,
    Published,
    Reason,
    Settings,
    Status,
)
from postdate.clock import ManualClock
from postdate.domain.action import Request
from postdate.domain.settle import Policy, settle
from postdate.engine.claim import Claimer, ClaimRound, claim_round
from postdate.engine.dispatch import Dispatcher
from postdate.engine.recover import Recovery
from postdate.engine.settle import EndingSet, ending_of, settle_set
from postdate.store.idempotency import purge_expired
from postdate.store.leases import renew_leases
from postdate.testing.factories import make_profile, make_workspace
from tests.model.memory import ASKABLE, AUTO_ATTEMPTS, BACKOFF, IDEMPOTENT, MAX_ATTEMPTS, REMEMBERED, TYPES, Ask

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import httpx2
    from sqlalchemy import Connection

    from postdate.domain.action import Claimed
    from postdate.domain.outcome import Outcome
    from postdate.store.transaction import Transaction

Result = TypeVar("Result")

NOON = datetime(2027, 3, 14, 12, tzinfo=UTC)
LEASE = timedelta(minutes=15)
MARGIN = timedelta(minutes=1)


class Moody(Exception):
    """What a hook raises."""


def tell(connection: Connection, actions: Sequence[Action]) -> None:
    """Write down how each action ended, as a caller's hook would into a table of the caller's."""
    row = text("insert into told (action_id, status, reason) values (:id, :status, :reason)")
    for action in actions:
        connection.execute(row, {"id": str(action.id), "status": action.status, "reason": action.reason})
        if action.payload["moody"]:
            raise Moody


async def run(_ctx: Context, _payload: dict[str, object]) -> Published:
    """Run nothing, and know nothing: the steps are taken by hand."""
    return Published()


class World:
    """One database, and one person's actions in it."""

    def __init__(self, database_url: str) -> None:
        self.clock = ManualClock(NOON)
        self.app = Postdate(database_url, settings=Settings(idempotency_ttl=REMEMBERED), clock=self.clock)
        for name in TYPES:
            policy = Policy(
                auto_attempts=AUTO_ATTEMPTS,
                max_attempts=MAX_ATTEMPTS[name],
                idempotent=name == IDEMPOTENT,
                backoff=Backoff(first=BACKOFF, longest=BACKOFF, spread=0),
            )
            lookup = run if name == ASKABLE else None
            self.app.include(
                ActionType(name=name, handler=run, policy=policy, timeout=LEASE, settled=tell, lookup=lookup)
            )
        self.types = {action_type.name: action_type for action_type in self.app.kernel.registry}
        with self.app.kernel.transaction(None) as tx:
            tx.execute(text("create table told (action_id text, status text, reason text)"))

    def close(self) -> None:
        """Leave no table behind."""
        with self.app.kernel.transaction(None) as tx:
            tx.execute(text("drop table told"))
        self.app.kernel.database.close_sync()

    def begin(self) -> None:
        """Begin at noon, with a person who has nothing yet."""
        self.clock.move_to(NOON)
        self.user = make_profile(self.app)

    def end(self) -> None:
        """Let the person go: nothing of theirs may stay."""
        with self.app.kernel.transaction(None) as tx:
            t = tx.tables
            tx.execute(delete(t.profiles).where(t.profiles.c.id == self.user))
            tx.execute(text("delete from told"))
            for table in (t.queue, t.outcomes, t.actions, t.action_events):
                assert tx.execute(select(table)).all() == []
            tx.execute(delete(t.workspaces))
            tx.execute(delete(t.idempotency))

    def workspace(self) -> UUID:
        """Return a new workspace."""
        return make_workspace(self.app)

    def delete_workspace(self, workspace: UUID | None) -> None:
        """Delete a workspace as its host would."""
        with self.app.kernel.transaction(None) as tx:
            tx.execute(delete(tx.tables.workspaces).where(tx.tables.workspaces.c.id == workspace))

    def schedule(self, asks: Sequence[Ask]) -> list[Action | PostdateError]:
        """Schedule one by `schedule`, more by `schedule_many`."""
        news = [self._new(ask) for ask in asks]
        if len(news) > 1:
            return self.app.sync.schedule_many(news)
        (new,) = news
        try:
            return [self.app.sync.schedule(**{name: getattr(new, name) for name in new.__dataclass_fields__})]
        except PostdateError as refusal:
            return [refusal]

    def _new(self, ask: Ask) -> NewAction:
        return NewAction(
            action_type=ask.action_type,
            payload=payload_of(ask),
            at=ask.at,
            target=ask.target,
            workspace=ask.workspace,
            user=self.user,
            expires_at=ask.expires_at,
            overlap_key=ask.overlap_key,
            idempotency_key=ask.idempotency_key,
        )

    def import_history(self, ask: Ask, status: Status, reason: Reason | None) -> UUID:
        """Write an action that ended elsewhere, as an import would: past the guard."""
        request = Request(
            id=uuid4(),
            workspace_id=ask.workspace,
            user_id=self.user,
            action_type=ask.action_type,
            target_key=ask.target,
            payload=payload_of(ask),
            publish_at=ask.at,
            created_at=ask.at,
        )
        with self.app.kernel.transaction(None) as tx:
            a, o = tx.tables.actions, tx.tables.outcomes
            columns = ("id", "workspace_id", "user_id", "action_type", "target_key", "payload", "occurrence")
            times = {"publish_at": ask.at, "created_at": ask.at, "origin": "api"}
            tx.execute(insert(a).values(**{name: getattr(request, name) for name in columns}, **times))
            owners = {"workspace_id": ask.workspace, "user_id": self.user}
            ended = {"status": status, "reason": reason, "attempt_count": 1, "finished_at": ask.at}
            tx.execute(insert(o).values(action_id=request.id, key=request.key, **owners, **ended))
        return request.id

    def claim(self, limit: int) -> Sequence[Claimed]:
        """Claim as an engine does, and return what is to run."""
        free, now = dict.fromkeys(TYPES, limit), self.clock.now()

        def claim(tx: Transaction) -> ClaimRound:
            claimer = Claimer(worker="model", token=uuid4(), lease=LEASE, margin=MARGIN)
            return claim_round(tx, claimer, free, self.types, now=now)

        return self._written(claim).runnable

    def settle(self, ended: Sequence[tuple[Claimed, Outcome]]) -> frozenset[UUID]:
        """Settle runs as an engine does, and return the actions that still held their lease."""
        now = self.clock.now()
        endings = [
            ending_of(
                one,
                settle(
                    outcome,
                    attempt_count=one.action.attempt_count,
                    policy=self.types[one.action.action_type].policy,
                    now=now,
                    jitter=0.5,
                ),
            )
            for one, outcome in ended
        ]
        return self._written(lambda tx: settle_set(tx, self.types, EndingSet.of(tx.tables, endings), now=now))

    def renew(self, runs: Sequence[Claimed], *, lease_until: datetime) -> set[tuple[UUID, UUID]]:
        """Renew leases as an engine does, and return those that are still held: action and token."""
        leases = {(run.action.id, run.lease_token) for run in runs}
        became = self._written(lambda tx: renew_leases(tx, leases, lease_until=lease_until))
        assert became.renewed == became.held, "nobody else has locked a row"
        return set(became.held)

    def recover(self) -> Sequence[Claimed]:
        """End lost leases, and forget expired keys, as a tick does; return what is to be asked about."""
        http: httpx2.AsyncClient = None  # type: ignore[assignment]  # nobody is asked here
        dispatcher = Dispatcher(clock=self.clock, http=http, ended=print, has_room=print)
        recovery = Recovery(self.app.kernel, self.types, dispatcher, worker="recovery")
        now = self.clock.now()
        _, taken = self._written(lambda tx: recovery._recover(tx, now))
        self._written(lambda tx: purge_expired(tx, now=now, limit=100))
        return taken

    def _written(self, work: Callable[[Transaction], Result]) -> Result:
        with self.app.kernel.transaction(None) as tx:
            return work(tx)

    def look(self) -> tuple[dict[UUID, tuple[object, ...]], Counter[tuple[UUID, Status, Reason | None]]]:
        """Return how each action stands, which must be in exactly one place, and what the hooks wrote."""
        with self.app.kernel.transaction(None, read_only=True) as tx:
            a, q, o = tx.tables.actions, tx.tables.queue, tx.tables.outcomes
            queued: dict[UUID, tuple[object, ...]] = {
                row.action_id: (
                    Status.QUEUED if row.lease_token is None else Status.SUBMITTED,
                    row.lease_token,
                    row.lease_until,
                    row.attempt_count,
                    row.key,
                    row.overlap_key,
                    row.due_at,
                )
                for row in tx.execute(select(q))
            }
            ended: dict[UUID, tuple[object, ...]] = {
                row.action_id: (Status(row.status), row.reason and Reason(row.reason), row.attempt_count, row.key)
                for row in tx.execute(select(o))
            }
            asked = set(tx.execute(select(a.c.id)).scalars())
            told = tx.execute(text("select action_id, status, reason from told")).all()
        assert not queued.keys() & ended.keys(), "an action is in two places"
        assert asked == queued.keys() | ended.keys(), "an action is nowhere, or a place holds none"
        wrote = Counter((UUID(row.action_id), Status(row.status), row.reason and Reason(row.reason)) for row in told)
        return queued | ended, wrote


def payload_of(ask: Ask) -> dict[str, object]:
    """Return what is stored with it."""
    return {"moody": ask.moody, **({} if ask.thing is None else {"thing_id": ask.thing})}
