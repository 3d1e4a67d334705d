"""How is a set of claims that have ended settled in one transaction?"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

from postdate.domain.action import ENGINE
from postdate.domain.settle import Finished, Settlement
from postdate.hooks import tell_settled
from postdate.store.outcomes import Settling, settle_claimed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.action import Claimed
    from postdate.registry import ActionType
    from postdate.store.schema import Tables
    from postdate.store.transaction import Transaction


class Ending(NamedTuple):
    """A claim, and what becomes of its action."""

    action_id: UUID
    action_type: str
    lease_token: UUID
    settlement: Settlement


def ending_of(claimed: Claimed, settlement: Settlement) -> Ending:
    """Return the ending of a claim."""
    action = claimed.action
    return Ending(action.id, action.action_type, claimed.lease_token, settlement)


@dataclass(frozen=True)
class EndingSet:
    """Endings that are to be settled in one transaction."""

    endings: Sequence[Ending]
    by_lease: Sequence[Settling]

    @classmethod
    def of(cls, tables: Tables, endings: Sequence[Ending]) -> Self:
        """Write what can be written of them before the transaction."""
        by_lease: defaultdict[UUID, dict[UUID, Settlement]] = defaultdict(dict)
        for ending in endings:
            by_lease[ending.lease_token][ending.action_id] = ending.settlement
        return cls(endings, [Settling.of(tables, token, settlements) for token, settlements in by_lease.items()])


def settle_set(tx: Transaction, types: Mapping[str, ActionType], ended: EndingSet, *, now: datetime) -> frozenset[UUID]:
    """Settle these claims, tell the hooks of their types, and return the actions that were settled.

    The others have lost their lease, or another transaction has their row in hand (`still_leased`).
    """
    won = {each.lease_token: settle_claimed(tx, each, now=now, actor=ENGINE) for each in ended.by_lease}
    with_hook = {name for name, action_type in types.items() if action_type.settled is not None}
    if with_hook:
        finished = {
            ending.action_id: ending.action_type
            for ending in ended.endings
            if ending.action_type in with_hook
            and isinstance(ending.settlement, Finished)
            and ending.action_id in won[ending.lease_token]  # it may be in the set twice, by a lease that was lost
        }
        tell_settled(tx, types, finished, now=now)
    return frozenset().union(*won.values())
