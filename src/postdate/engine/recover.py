"""What becomes of actions whose worker died?"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from postdate.domain.outcome import Unconfirmed
from postdate.domain.settle import Policy, Settlement, never_started, settle
from postdate.engine.dispatch import LOOKUP_SECONDS
from postdate.engine.settle import Ending, settle_set
from postdate.store.queue import lost_leases, take_over

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from postdate.domain.action import Claimed
    from postdate.engine.dispatch import Dispatcher
    from postdate.kernel import Kernel
    from postdate.registry import ActionType
    from postdate.store.queue import LostLease
    from postdate.store.transaction import Transaction

_BATCH = 500

FOREIGN_GRACE = timedelta(hours=1)
"""How long a lost lease of a type unknown here is left to a process that knows its policy."""


@dataclass(frozen=True, kw_only=True)
class RecoveryReport:
    """How many lost leases were settled, or taken over to ask the provider."""

    recovered: int


class Recovery:
    """Ends expired leases.

    A run that provably never started is queued again. Where the type offers `lookup`, the provider is asked.
    Otherwise the run is unconfirmed, and its type's policy decides.
    """

    def __init__(self, kernel: Kernel, types: Mapping[str, ActionType], dispatcher: Dispatcher, *, worker: str) -> None:
        self._kernel = kernel
        self._types = types
        self._dispatcher = dispatcher
        self._worker = worker

    async def run_once(self, now: datetime) -> RecoveryReport:
        """End every lease that had run out by `now`."""
        recovered = 0
        while True:
            settled, taken = await self._kernel.work(lambda tx: self._recover(tx, now))
            for claimed in taken:
                self._dispatcher.ask(claimed, self._types[claimed.action.action_type])
            recovered += settled + len(taken)
            if settled + len(taken) < _BATCH:
                return RecoveryReport(recovered=recovered)

    def _recover(self, tx: Transaction, now: datetime) -> tuple[int, list[Claimed]]:
        lost = lost_leases(tx, list(self._types), now=now, others_before=now - FOREIGN_GRACE, limit=_BATCH)
        doubtful: list[LostLease] = []
        endings: list[Ending] = []
        for lease in lost:
            if self._can_be_asked_about(lease):
                doubtful.append(lease)
            else:
                endings.append(self._ending(lease, now))
        settle_set(tx, self._types, endings, now=now)
        return len(endings), self._taken_over(tx, doubtful, now)

    def _can_be_asked_about(self, lease: LostLease) -> bool:
        known = self._types.get(lease.action_type)
        return lease.started_at is not None and known is not None and known.lookup is not None

    def _taken_over(self, tx: Transaction, doubtful: Sequence[LostLease], now: datetime) -> list[Claimed]:
        """Take over as many as there are slots to ask in; the rest waits for the next tick."""
        free = {name: self._dispatcher.free_slots(action_type) for name, action_type in self._types.items()}
        chosen = []
        for lease in doubtful:
            if free[lease.action_type] > 0:
                free[lease.action_type] -= 1
                chosen.append(lease.action_id)
        lease_until = now + timedelta(seconds=LOOKUP_SECONDS) + self._kernel.settings.lease_margin
        return take_over(tx, chosen, now=now, lease_token=uuid4(), lease_until=lease_until, worker=self._worker)

    def _ending(self, lease: LostLease, now: datetime) -> Ending:
        return Ending(
            action_id=lease.action_id,
            action_type=lease.action_type,
            lease_token=lease.lease_token,
            settlement=self._settlement(lease, now),
        )

    def _settlement(self, lease: LostLease, now: datetime) -> Settlement:
        if lease.started_at is None:
            return never_started(attempt_count=lease.attempt_count, now=now)
        known = self._types.get(lease.action_type)
        return settle(
            Unconfirmed(f"the lease of {lease.claimed_by} ran out: it crashed, hung or was cut off"),
            attempt_count=lease.attempt_count,
            policy=known.policy if known else Policy(),
            now=now,
            jitter=random.random(),  # noqa: S311 - spreads retries, guards nothing
        )
