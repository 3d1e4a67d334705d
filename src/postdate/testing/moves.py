"""How is an action moved, by the very functions that move it in production?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from sqlalchemy import select

from postdate.domain.action import ENGINE
from postdate.domain.outcome import Deferred, NotSent, Published, Rejected, Skipped, Unconfirmed
from postdate.domain.settle import Policy, Settlement, duplicate, expired, never_started, settle
from postdate.domain.states import Cause, Reason, Status
from postdate.errors import MoveRefused
from postdate.store.outcomes import Settling, settle_claimed, withdraw_queued
from postdate.store.queue import claim_due

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from postdate.app import Postdate
    from postdate.domain.action import Action
    from postdate.domain.outcome import Outcome
    from postdate.store.transaction import Transaction

ACTOR = "test"
LEASE = timedelta(minutes=2)

_OUTCOMES: dict[Cause, Callable[[datetime], Outcome]] = {
    Cause.PUBLISHED: lambda _now: Published(provider_id="provider-1"),
    Cause.NOT_SENT: lambda _now: NotSent("connection refused"),
    Cause.EXHAUSTED: lambda _now: NotSent("connection refused"),
    Cause.DEFERRED: lambda now: Deferred(now + timedelta(hours=1), "quiet hours"),
    Cause.REJECTED: lambda _now: Rejected("no such page"),
    Cause.UNCONFIRMED: lambda _now: Unconfirmed("no answer"),
    Cause.SKIPPED: lambda _now: Skipped("unsubscribed"),
}


def make_move(app: Postdate, action: Action, cause: Cause, reason: Reason | None = None) -> bool:
    """Move an action by `cause`, and say whether it moved. `reason` matters where the cause allows several.

    Claims take the action that is due first: nothing else of its type may be due before it.
    """
    match cause:
        case Cause.CLAIM:
            return claim(app, action) is not None
        case Cause.CANCEL | Cause.REPLACE | Cause.WITHDRAW:
            return withdraw(app, action, cause, reason or Reason.USER)
        case Cause.DUPLICATE if action.status is Status.QUEUED:
            return withdraw(app, action, cause, Reason.DUPLICATE)
        case Cause.RETRY | Cause.CONFIRM | Cause.DISMISS:
            return decide(app, action, cause)
        case _:
            return settle_as(app, action, cause)


def claim(app: Postdate, action: Action, *, now: datetime | None = None) -> UUID | None:
    """Claim the action at `now`, else when it is due, and return the lease's token; None where it was not claimed."""
    token = uuid4()
    with app.kernel.transaction(None) as tx:
        now = now or max(app.kernel.now(tx), action.next_attempt_at or action.publish_at)
        claimed = claim_due(
            tx,
            action_type=action.action_type,
            now=now,
            limit=1,
            lease_token=token,
            lease_until=now + LEASE,
            worker="test",
        )
    return token if [one.action.id for one in claimed] == [action.id] else None


def withdraw(app: Postdate, action: Action, cause: Cause, reason: Reason) -> bool:
    """Cancel a queued action for `reason`, and say whether it was cancelled."""
    with app.kernel.transaction(None) as tx:
        now = app.kernel.now(tx)
        return bool(withdraw_queued(tx, [action.id], cause=cause, reason=reason, now=now, actor=ACTOR))


def decide(app: Postdate, action: Action, verdict: Cause) -> bool:
    """Pass a person's verdict, and say whether the action's state allowed it."""
    try:
        match verdict:
            case Cause.RETRY:
                app.sync.retry(action.id, force=True, actor=ACTOR, note="the page is back")
            case Cause.CONFIRM:
                app.sync.confirm(action.id, provider_id="provider-1", actor=ACTOR)
            case _:
                app.sync.dismiss(action.id, actor=ACTOR)
    except MoveRefused:
        return False
    return True


def settle_as(app: Postdate, action: Action, cause: Cause, *, lease_token: UUID | None = None) -> bool:
    """Settle a run under `lease_token`, else the lease that the action holds, and say whether it still held it."""
    with app.kernel.transaction(None) as tx:
        now = app.kernel.now(tx)
        token = lease_token or lease_of(tx, action.id) or uuid4()
        ending = settlement(cause, attempt_count=max(action.attempt_count, 1), now=now)
        settling = Settling.of(tx.tables, token, {action.id: ending})
        return action.id in settle_claimed(tx, settling, now=now, actor=ENGINE)


def settlement(cause: Cause, *, attempt_count: int, now: datetime) -> Settlement:
    """Return the settlement that moves a claimed action by `cause`."""
    match cause:
        case Cause.NEVER_STARTED:
            return never_started(attempt_count=attempt_count, now=now)
        case Cause.EXPIRED:
            return expired(attempt_count=attempt_count)
        case Cause.DUPLICATE:
            return duplicate(attempt_count=attempt_count)
        case _:
            attempts_left = 0 if cause is Cause.EXHAUSTED else 1
            policy = Policy(auto_attempts=attempt_count + attempts_left, max_attempts=attempt_count + 5)
            return settle(_OUTCOMES[cause](now), attempt_count=attempt_count, policy=policy, now=now, jitter=0.5)


def lease_of(tx: Transaction, action_id: UUID) -> UUID | None:
    """Return the token of the lease that the action holds, or None."""
    q = tx.tables.queue
    token: UUID | None = tx.execute(select(q.c.lease_token).where(q.c.action_id == action_id)).scalar()
    return token
