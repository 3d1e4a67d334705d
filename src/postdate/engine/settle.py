"""How is a set of claims that have ended settled in one transaction?"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from postdate.domain.action import ENGINE
from postdate.domain.settle import Finished, Settlement
from postdate.hooks import tell_settled
from postdate.store.outcomes import settle_claimed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.action import Claimed
    from postdate.registry import ActionType
    from postdate.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class Ending:
    """A claim, and what becomes of its action."""

    action_id: UUID
    action_type: str
    lease_token: UUID
    settlement: Settlement


def ending_of(claimed: Claimed, settlement: Settlement) -> Ending:
    """Return the ending of a claim."""
    action = claimed.action
    return Ending(
        action_id=action.id, action_type=action.action_type, lease_token=claimed.lease_token, settlement=settlement
    )


def settle_set(
    tx: Transaction, types: Mapping[str, ActionType], endings: Sequence[Ending], *, now: datetime
) -> frozenset[UUID]:
    """Settle these claims, tell the hooks of their types, and return the actions that were settled.

    The others have lost their lease, or another transaction has their row in hand (`still_leased`).
    """
    if not endings:
        return frozenset()
    by_lease: defaultdict[UUID, dict[UUID, Ending]] = defaultdict(dict)
    for ending in endings:
        by_lease[ending.lease_token][ending.action_id] = ending
    won: set[UUID] = set()
    finished: dict[UUID, str] = {}  # by the lease that won: an action may be in the set twice, by a lease that was lost
    for token, ended in by_lease.items():
        settlements = {action_id: ending.settlement for action_id, ending in ended.items()}
        under_lease = settle_claimed(tx, lease_token=token, settlements=settlements, now=now, actor=ENGINE)
        won |= under_lease
        finished |= {key: ended[key].action_type for key in under_lease if isinstance(settlements[key], Finished)}
    tell_settled(tx, types, finished, now=now)
    return frozenset(won)
