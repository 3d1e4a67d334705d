"""What becomes of actions whose worker died?"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import structlog

from postdate.domain.outcome import Unconfirmed
from postdate.domain.settle import Finished, Policy, Settlement, never_started, settle
from postdate.domain.states import Status
from postdate.engine.run import LOOKUP_SECONDS
from postdate.engine.settle import Ending, EndingSet, settle_set
from postdate.store.queue import doubtful_leases, lost_leases, take_over

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from postdate.domain.action import Claimed
    from postdate.engine.dispatch import Dispatcher
    from postdate.kernel import Kernel
    from postdate.registry import ActionType
    from postdate.store.leases import Lease
    from postdate.store.queue import LostLease
    from postdate.store.transaction import Transaction

_log = structlog.get_logger("postdate")

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
    Otherwise the run is unconfirmed, and its type's policy decides. What this very process has in hand, `ours`, is
    not lost: it stood still, or could not renew, and goes on.
    """

    def __init__(
        self,
        kernel: Kernel,
        types: Mapping[str, ActionType],
        dispatcher: Dispatcher,
        *,
        worker: str,
        ours: Callable[[], Collection[Lease]] = frozenset,
    ) -> None:
        self._ours = ours
        self._kernel = kernel
        self._types = types
        self._dispatcher = dispatcher
        self._worker = worker

    async def run_once(self, now: datetime) -> RecoveryReport:
        """End every lease that had run out by `now`; but of doubtful runs, as many as may be asked about at once."""
        ours = self._ours()
        settled, taken = await self._kernel.work(lambda tx: self._recover(tx, now, ours=ours))
        for claimed in taken:
            self._dispatcher.take_up(claimed, self._types[claimed.action.action_type]).ask()
        ended = list(settled)
        while settled:
            ours = self._ours()
            settled = await self._kernel.work(partial(self._settle, now=now, ours=ours))
            ended += settled
        _tell(ended)
        return RecoveryReport(recovered=len(ended) + len(taken))

    def _recover(
        self, tx: Transaction, now: datetime, *, ours: Collection[Lease] = ()
    ) -> tuple[list[Ending], list[Claimed]]:
        """Return what was settled, of a batch, and what is to be asked about."""
        return self._settle(tx, now=now, ours=ours), self._taken_over(tx, now, ours=ours)

    def _settle(self, tx: Transaction, *, now: datetime, ours: Collection[Lease]) -> list[Ending]:
        """Settle a batch of what nobody is to be asked about, and return it."""
        asked = {name for name, action_type in self._types.items() if action_type.lookup is not None}
        lost = lost_leases(
            tx,
            [name for name in self._types if name not in asked],
            unbegun_of=asked,
            now=now,
            limit=_BATCH,
            others_than=self._types,
            others_before=now - FOREIGN_GRACE,
            but=ours,
        )
        endings = [self._ending(lease, now) for lease in lost]
        settled = settle_set(tx, self._types, EndingSet.of(tx.tables, endings), now=now)
        return [ending for ending in endings if ending.action_id in settled]

    def _taken_over(self, tx: Transaction, now: datetime, *, ours: Collection[Lease]) -> list[Claimed]:
        """Take over what is doubtful of each type that offers a look-up, as far as it has slots."""
        token = uuid4()
        until = now + timedelta(seconds=LOOKUP_SECONDS) + self._kernel.settings.lease_margin
        taken: list[Claimed] = []
        for name, action_type in self._types.items():  # each for itself: those that wait for a slot bar no others
            slots = 0 if action_type.lookup is None else self._dispatcher.free_slots(action_type)
            if slots > 0 and (lost := doubtful_leases(tx, name, now=now, limit=slots, but=ours)):
                ids = [each.action_id for each in lost]
                taken += take_over(tx, name, ids, now=now, lease_token=token, lease_until=until, worker=self._worker)
        return taken

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


def _tell(ended: Sequence[Ending]) -> None:
    """Say what lost workers have left: they cannot any more, and what is unconfirmed waits for a person."""
    for (action_type, became), actions in Counter((each.action_type, _became(each)) for each in ended).items():
        _log.warning("leases ran out, and were settled", action_type=action_type, actions=actions, became=became)


def _became(ending: Ending) -> str:
    """Return the reason for which it ended, or that it is queued again."""
    settlement = ending.settlement
    return str((settlement.reason or settlement.status) if isinstance(settlement, Finished) else Status.QUEUED)
