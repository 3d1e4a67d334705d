"""Which due actions does this process take next?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from postdate.domain.settle import duplicate, expired
from postdate.engine.settle import Ending, ending_of, settle_set
from postdate.store.actions import guarded_keys
from postdate.store.queue import claim_due

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from postdate.domain.action import Claimed
    from postdate.registry import ActionType
    from postdate.store.transaction import Transaction

BATCH = 500
"""The most that is claimed of one type at once."""


@dataclass(frozen=True, kw_only=True)
class ClaimRound:
    """What one look at the queue brought."""

    runnable: Sequence[Claimed]
    settled: int
    """Claimed, but not to be run: expired, or duplicates of what went out."""

    @property
    def claimed(self) -> int:
        """How many due actions were found."""
        return len(self.runnable) + self.settled


def claim_round(
    tx: Transaction,
    free: Mapping[str, int],
    types: Mapping[str, ActionType],
    *,
    now: datetime,
    lease: timedelta,
    margin: timedelta,
    token: UUID,
    worker: str,
) -> ClaimRound:
    """Claim what is due, for each type at most its free slots, and settle at once what must not run.

    A claim lasts as long as its type's time-out, at most `lease`, and the margin; longer runs are renewed. All of the
    round's claims have one token, by which the engine finds them again if it never hears whether they were committed.
    """
    runnable: list[Claimed] = []
    settled = 0
    for name, slots in free.items():
        claimed = claim_due(
            tx,
            action_type=name,
            now=now,
            limit=min(slots, BATCH),
            lease_token=token,
            lease_until=now + min(types[name].timeout, lease) + margin,
            worker=worker,
        )
        barred = _barred(tx, claimed, now=now)
        settle_set(tx, types, barred, now=now)
        ended = {ending.action_id for ending in barred}
        runnable += [one for one in claimed if one.action.id not in ended]
        settled += len(ended)
    return ClaimRound(runnable=runnable, settled=settled)


def _barred(tx: Transaction, claimed: Sequence[Claimed], *, now: datetime) -> list[Ending]:
    """Return the ending of what must not run.

    The guard is looked at once more: a caller's transaction above READ COMMITTED can pass its trigger (P66, P91).
    """
    guarded = guarded_keys(tx, [one.action.key for one in claimed if one.action.key is not None])
    barred = []
    for one in claimed:
        action = one.action
        if action.expires_at is not None and action.expires_at < now:
            barred.append(ending_of(one, expired(attempt_count=action.attempt_count)))
        elif action.key in guarded:
            barred.append(ending_of(one, duplicate(attempt_count=action.attempt_count)))
    return barred
