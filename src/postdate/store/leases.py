"""Who still holds which claim, and for how long?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from sqlalchemy import select, update

from postdate.store.sets import one_of, rowset, unlocked

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.action import Claimed
    from postdate.store.transaction import Transaction

Lease: TypeAlias = "tuple[UUID, UUID]"
"""An action, and the token of the claim on it."""


def lease_of(claimed: Claimed) -> Lease:
    """Return the lease that a claim has given."""
    return claimed.action.id, claimed.lease_token


@dataclass(frozen=True, kw_only=True)
class Held:
    """A claim as it stands in the queue."""

    action_id: UUID
    action_type: str
    attempt_count: int
    due_at: datetime


@dataclass(frozen=True, kw_only=True)
class Renewed:
    """What became of leases that were to be renewed. Those that are not held any more are somebody else's, or gone."""

    renewed: frozenset[Lease]
    held: frozenset[Lease]
    """The renewed, and those that keep their end, since another transaction has locked their rows."""


def renew_leases(tx: Transaction, leases: Collection[Lease], *, lease_until: datetime) -> Renewed:
    """Let these leases last until `lease_until` (UTC), and return which of them do, and which are still held.

    What somebody else has claimed or settled is not touched. A row that another transaction has locked keeps its end:
    nobody is waited for.
    """
    if not leases:
        return Renewed(renewed=frozenset(), held=frozenset())
    q = tx.tables.queue
    wanted = one_of(tx, q.c.action_id, [action_id for action_id, _ in leases])
    columns = dict(zip(("action_id", "lease_token"), zip(*leases, strict=True), strict=True))
    source = rowset(tx, "held", {name: q.c[name].type for name in columns}, columns)
    renewed = tx.execute(
        update(q)
        # both conditions: the join brings the tokens, the set of ids keeps the plan on the primary key
        .where(
            q.c.action_id == source.c.action_id,
            unlocked(tx, q.c.action_id, wanted),
            q.c.lease_token == source.c.lease_token,
        )
        .values(lease_until=lease_until)
        .returning(q.c.action_id, q.c.lease_token)
    )
    extended = frozenset((row.action_id, row.lease_token) for row in renewed)
    standing = tx.execute(select(q.c.action_id, q.c.lease_token).where(wanted))
    held = {(row.action_id, row.lease_token) for row in standing}
    return Renewed(renewed=extended, held=frozenset(leases) & held)


def held_under(tx: Transaction, lease_token: UUID, *, lease_ends: Collection[datetime]) -> list[Held]:
    """Return the claims under this token; none where the transaction that made them was not committed.

    Their leases end at one of these instants: it is by them that they are found.
    """
    q = tx.tables.queue
    found = select(q.c.action_id, q.c.action_type, q.c.attempt_count, q.c.due_at).where(
        q.c.lease_token.is_not(None), one_of(tx, q.c.lease_until, lease_ends), q.c.lease_token == lease_token
    )
    return [Held(**row) for row in tx.execute(found).mappings()]
