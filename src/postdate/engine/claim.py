"""Which due actions does this process take next?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from postdate.domain.settle import Settlement, duplicate, expired
from postdate.store.actions import guarded_keys
from postdate.store.outcomes import settle_claimed
from postdate.store.queue import claim_due

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from postdate.domain.action import Claimed
    from postdate.registry import ActionType
    from postdate.store.transaction import Transaction

ENGINE = "engine"
"""The actor of what the engine decides by itself."""

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
    margin: timedelta,
    worker: str,
) -> ClaimRound:
    """Claim what is due, for each type at most its free slots, and settle at once what must not run."""
    runnable: list[Claimed] = []
    settled = 0
    for name, slots in free.items():
        token = uuid4()
        claimed = claim_due(
            tx,
            action_type=name,
            now=now,
            limit=min(slots, BATCH),
            lease_token=token,
            lease_until=now + types[name].timeout + margin,
            worker=worker,
        )
        barred = _barred(tx, claimed, now=now)
        if barred:
            settle_claimed(tx, lease_token=token, settlements=barred, now=now, actor=ENGINE)
        runnable += [one for one in claimed if one.action.id not in barred]
        settled += len(barred)
    return ClaimRound(runnable=runnable, settled=settled)


def _barred(tx: Transaction, claimed: Sequence[Claimed], *, now: datetime) -> dict[UUID, Settlement]:
    """Return the settlement of what must not run.

    The guard is looked at once more: a caller's transaction above READ COMMITTED can pass its trigger (P66, P91).
    """
    actions = [one.action for one in claimed]
    guarded = guarded_keys(tx, [action.key for action in actions if action.key is not None])
    barred: dict[UUID, Settlement] = {}
    for action in actions:
        if action.expires_at is not None and action.expires_at < now:
            barred[action.id] = expired(attempt_count=action.attempt_count)
        elif action.key in guarded:
            barred[action.id] = duplicate(attempt_count=action.attempt_count)
    return barred
