"""What becomes of claims of which the engine never heard whether they were committed?

A commit whose answer is lost, with the connection or by a time-out, may have taken place. Nobody would run what was
claimed, and when the leases ran out it would be taken for doubtful. So the engine looks until it has found the claims,
or until they would have run out, and hands them back: their runs surely never began.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import structlog

from postdate.domain.settle import never_started
from postdate.engine.settle import Ending, EndingSet, settle_set
from postdate.store.leases import held_under

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime
    from uuid import UUID

    from postdate.kernel import Kernel
    from postdate.registry import ActionType
    from postdate.store.transaction import Transaction

_log = structlog.get_logger("postdate")


class Unheard:
    """The rounds of claims whose end is unknown, by their token."""

    def __init__(self, kernel: Kernel, types: Mapping[str, ActionType]) -> None:
        self._kernel = kernel
        self._types = types
        self._rounds: dict[UUID, Collection[datetime]] = {}

    def note(self, token: UUID, *, lease_ends: Collection[datetime]) -> None:
        """Look for the claims of this round, whose leases end at one of these instants (UTC), until the last."""
        self._rounds[token] = lease_ends

    async def hand_back(self, now: datetime) -> int:
        """Queue again what was claimed after all, with its attempt given back, and return how many actions."""
        handed_back = 0
        for token, ends in list(self._rounds.items()):
            found, settled = await self._kernel.work(partial(self._hand_back, token=token, ends=ends, now=now))
            if now >= max(ends) or (found and found == settled):
                del self._rounds[token]
            if settled:
                _log.warning("handed back what was claimed without our hearing of it", actions=settled)
            handed_back += settled
        return handed_back

    def _hand_back(self, tx: Transaction, *, token: UUID, ends: Collection[datetime], now: datetime) -> tuple[int, int]:
        """Return how many claims were found, and how many of them nobody else has locked just now."""
        endings = [
            Ending(
                action_id=held.action_id,
                action_type=held.action_type,
                lease_token=token,
                settlement=never_started(attempt_count=held.attempt_count, now=max(now, held.due_at)),  # claimed ahead
            )
            for held in held_under(tx, token, lease_ends=ends)
        ]
        return len(endings), len(settle_set(tx, self._types, EndingSet.of(tx.tables, endings), now=now))
