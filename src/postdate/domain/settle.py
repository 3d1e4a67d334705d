"""What becomes of an action once its run has ended?

A pure function of the outcome, the attempts counted so far and the action type's policy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple, assert_never

from postdate.domain.outcome import Deferred, NotSent, Outcome, Published, Rejected, Skipped, Unconfirmed
from postdate.domain.retry import Backoff
from postdate.domain.states import Cause, Reason, Status

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What an action type says about its own failures."""

    auto_attempts: int = 3
    """Runs that may send nothing before the action fails; a person's retry allows one more each."""
    max_attempts: int = 5
    """All attempts together, a person's retries included; beyond it only by force."""
    idempotent: bool = False
    """Whether the provider tells a repeated call apart, so that a doubtful one may be repeated."""
    backoff: Backoff = field(default_factory=Backoff)


class Finished(NamedTuple):
    """The action is done: an outcome row replaces its queue row."""

    cause: Cause
    status: Status
    attempt_count: int
    reason: Reason | None = None
    provider_id: str | None = None
    error: str | None = None


class Requeued(NamedTuple):
    """The action is queued again and due at `due_at`."""

    cause: Cause
    due_at: datetime
    attempt_count: int
    error: str | None = None


Settlement = Finished | Requeued

_SHORTEST_DEFERRAL = timedelta(seconds=1)
"""Keeps a handler that defers to the past from spinning."""


def settle(outcome: Outcome, *, attempt_count: int, policy: Policy, now: datetime, jitter: float) -> Settlement:
    """Return what follows from `outcome`, by the table in design section 5.

    `attempt_count` includes the attempt that just ended (it is counted at the claim); `jitter` is 0 to 1.
    """
    match outcome:
        case Published():
            return Finished(Cause.PUBLISHED, Status.PUBLISHED, attempt_count, provider_id=outcome.provider_id)
        case NotSent():
            return _not_sent(outcome, attempt_count=attempt_count, policy=policy, now=now, jitter=jitter)
        case Unconfirmed() if policy.idempotent:
            again = NotSent(outcome.error)
            return _not_sent(again, attempt_count=attempt_count, policy=policy, now=now, jitter=jitter)
        case Unconfirmed():
            return _failed(Cause.UNCONFIRMED, Reason.UNCONFIRMED, attempt_count, outcome.error)
        case Rejected():
            return _failed(Cause.REJECTED, Reason.REJECTED, attempt_count, outcome.error)
        case Skipped():
            return Finished(
                cause=Cause.SKIPPED,
                status=Status.CANCELLED,
                reason=Reason.SKIPPED,
                attempt_count=attempt_count,
                error=outcome.error,
            )
        case Deferred():
            return Requeued(
                cause=Cause.DEFERRED,
                due_at=max(outcome.until, now + _SHORTEST_DEFERRAL),
                attempt_count=attempt_count - 1,
                error=outcome.error or None,
            )
        case _:
            assert_never(outcome)


def expired(*, attempt_count: int) -> Finished:
    """Return the settlement of a row that was claimed past its `expires_at`: it is not run, the attempt given back."""
    return _failed(Cause.EXPIRED, Reason.EXPIRED, attempt_count - 1, "expired before it could run")


def duplicate(*, attempt_count: int) -> Finished:
    """Return the settlement of a row claimed under a published or unconfirmed sibling: it is not run."""
    return Finished(
        cause=Cause.DUPLICATE,
        status=Status.CANCELLED,
        reason=Reason.DUPLICATE,
        attempt_count=attempt_count - 1,
        error="the same thing was published, or may have been, by another action",
    )


def never_started(*, attempt_count: int, now: datetime) -> Requeued:
    """Return the settlement of a lease that ran out before anybody started the run: the attempt is given back."""
    return Requeued(cause=Cause.NEVER_STARTED, due_at=now, attempt_count=attempt_count - 1)


def _not_sent(outcome: NotSent, *, attempt_count: int, policy: Policy, now: datetime, jitter: float) -> Settlement:
    if attempt_count >= policy.auto_attempts:
        return _failed(Cause.EXHAUSTED, Reason.EXHAUSTED, attempt_count, outcome.error)
    wait = policy.backoff.wait(attempt_count, jitter=jitter, retry_after=outcome.retry_after)
    return Requeued(cause=Cause.NOT_SENT, due_at=now + wait, attempt_count=attempt_count, error=outcome.error)


def _failed(cause: Cause, reason: Reason, attempt_count: int, error: str) -> Finished:
    return Finished(cause=cause, status=Status.FAILED, reason=reason, attempt_count=attempt_count, error=error)
