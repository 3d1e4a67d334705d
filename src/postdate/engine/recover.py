"""What becomes of actions whose worker died?"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from postdate.domain.outcome import Unconfirmed
from postdate.domain.settle import Policy, Settlement, never_started, settle
from postdate.engine.settle import Ending, settle_set
from postdate.store.queue import lost_leases

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from postdate.kernel import Kernel
    from postdate.registry import ActionType
    from postdate.store.transaction import Transaction

_BATCH = 500

FOREIGN_GRACE = timedelta(hours=1)
"""How long a lost lease of a type unknown here is left to a process that knows its policy."""


@dataclass(frozen=True, kw_only=True)
class RecoveryReport:
    """How many lost leases were settled."""

    recovered: int


class Recovery:
    """Settles expired leases: unconfirmed, unless the run provably never started or its type is idempotent."""

    def __init__(self, kernel: Kernel, types: Mapping[str, ActionType]) -> None:
        self._kernel = kernel
        self._types = types

    async def run_once(self, now: datetime) -> RecoveryReport:
        """Settle every lease that had run out by `now`."""
        recovered = 0
        while True:
            batch = await self._kernel.work(lambda tx: self._recover(tx, now))
            recovered += batch
            if batch < _BATCH:
                return RecoveryReport(recovered=recovered)

    def _recover(self, tx: Transaction, now: datetime) -> int:
        lost = lost_leases(tx, list(self._types), now=now, others_before=now - FOREIGN_GRACE, limit=_BATCH)
        endings = [
            Ending(
                action_id=row.action_id,
                action_type=row.action_type,
                lease_token=row.lease_token,
                settlement=self._settlement(row, now),
            )
            for row in lost
        ]
        settle_set(tx, self._types, endings, now=now)
        return len(lost)

    def _settlement(self, row: Any, now: datetime) -> Settlement:
        if row.started_at is None:
            return never_started(attempt_count=row.attempt_count, now=now)
        known = self._types.get(row.action_type)
        return settle(
            Unconfirmed(f"the lease of {row.claimed_by} ran out: it crashed, hung or was cut off"),
            attempt_count=row.attempt_count,
            policy=known.policy if known else Policy(),
            now=now,
            jitter=random.random(),  # noqa: S311 - spreads retries, guards nothing
        )
