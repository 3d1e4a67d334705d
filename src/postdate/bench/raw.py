"""What would a hand-written loop do? The same statements on the same tables, through the bare driver.

It claims, settles and inserts with the guards, the leases, the durability and the rows of the product, and has no
engine: no tasks, no validation, no outcomes to tell apart, no lost leases to look for.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from postdate.domain.action import SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from uuid import UUID

    from postdate.bench.place import Place
    from postdate.bench.subject import Post


@dataclass(frozen=True, kw_only=True)
class RawClaim:
    """A batch that was claimed."""

    lease_token: UUID
    action_ids: Sequence[object]
    """As the driver writes them."""


class RawLoop(Protocol):
    """The statements of a drain and of an insert, on one connection."""

    def claim(self, limit: int) -> RawClaim:
        """Claim up to `limit` due rows and read what they ask for, in one transaction."""

    def settle(self, claim: RawClaim) -> None:
        """Settle them all as published, in one transaction."""

    def insert(self, posts: Sequence[Post], at: datetime) -> None:
        """Insert actions in one transaction, with one statement a table."""


@contextmanager
def raw_loop(place: Place) -> Iterator[RawLoop]:
    """Give the loop for a database."""
    if place.kind == "sqlite":
        from postdate.bench.raw_sqlite import on_sqlite  # noqa: PLC0415 - it builds on this module

        with on_sqlite(place) as sqlite:
            yield sqlite
    else:
        from postdate.bench.raw_postgres import on_postgres  # noqa: PLC0415 - psycopg is an extra

        with on_postgres(place) as postgres:
            yield postgres


def drain(loop: RawLoop, batch: int) -> int:
    """Claim and settle until nothing is due, and return how many there were."""
    drained = 0
    while (claim := loop.claim(batch)).action_ids:
        loop.settle(claim)
        drained += len(claim.action_ids)
    return drained


def key_of(action_type: str, post: Post, target: str) -> str:
    """Return the key of a post."""
    return SEPARATOR.join((action_type, post.thing_id, target, ""))
