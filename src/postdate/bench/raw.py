"""What would a loop do that has no engine? It sends the statements of the product, through the bare driver.

They are noted from the product, and so stay the same: the guards, the leases, the durability and the rows. What is
missing are tasks, validation, values to hand to handlers, outcomes to tell apart, and lost leases to look for.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from postdate.bench.bare import bare
from postdate.bench.sent import sent_statements
from postdate.bench.subject import ACTION_TYPE, LEASE, TARGET
from postdate.clock import host_time
from postdate.domain.action import SEPARATOR
from postdate.ids import TimeOrderedIds
from postdate.store.claimed import CLAIMED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from postdate.bench.bare import Bare
    from postdate.bench.place import Place
    from postdate.bench.sent import SentStatements
    from postdate.bench.subject import Post


@dataclass(frozen=True, kw_only=True)
class RawClaim:
    """A batch that was claimed."""

    lease_token: UUID
    action_ids: Sequence[object]
    """As the driver reads them."""


@contextmanager
def raw_loop(place: Place) -> Iterator[RawLoop]:
    """Give the loop for a database, on a connection of its own that is set up as the product sets up its own."""
    statements = sent_statements(place)
    with place.database() as database, closing(database.sync_engine.raw_connection()) as pooled:
        driver: Any = pooled.driver_connection
        yield RawLoop(bare(driver, database.dialect), statements, place)


class RawLoop:
    """Claims, settles and inserts."""

    def __init__(self, bare_driver: Bare, statements: SentStatements, place: Place) -> None:
        self._bare = bare_driver
        self._sent = statements
        self._place = place
        self._id = CLAIMED.index("id")
        """Its place among what is read of a claimed action."""
        self._new_id = TimeOrderedIds()

    def claim(self, limit: int) -> RawClaim:
        """Claim up to `limit` due rows, and read what they ask for, in one transaction."""
        db, sent = self._bare, self._sent
        now, token = host_time(), uuid4()
        until = db.instant(now + LEASE)
        with db.transaction():
            db.run(sent.terms)
            db.run(
                sent.claim,
                token=db.uuid(token),
                until=until,
                now=db.instant(now),
                at_most=limit,
                due_by=db.instant(now),
            )
            claimed = db.read_all(sent.read, token=db.uuid(token), until=until)
            action_ids = [row[self._id] for row in claimed]
        return RawClaim(lease_token=token, action_ids=action_ids)

    def settle(self, claim: RawClaim) -> None:
        """Settle them all as published, in one transaction."""
        db, ids = self._bare, claim.action_ids
        count = len(ids)
        ended = {
            "action_id": ids,
            "status": ["published"] * count,
            "attempt_count": [1] * count,
            "reason": [None] * count,
            "provider_id": ["raw"] * count,
            "last_error": [None] * count,
        }
        now, token, settled = db.instant(host_time()), db.uuid(claim.lease_token), db.set_of(ids)
        with db.transaction():
            db.run(self._sent.finish, **db.rows("ended", ended), ids=settled, token=token, now=now)
            db.run(self._sent.forget, ids=settled)

    def insert(self, posts: Sequence[Post], at: datetime) -> None:
        """Insert actions in one transaction, with one statement a table."""
        db, count = self._bare, len(posts)
        now = host_time()
        made = {db.uuid(self._new_id(now)): post for post in sorted(posts, key=lambda post: post.thing_id)}
        workspaces, users = [db.uuid(self._place.workspace)] * count, [db.uuid(self._place.user)] * count
        types, due = [ACTION_TYPE] * count, [db.instant(at)] * count
        queued = {
            "action_id": list(made),
            "action_type": types,
            "workspace_id": workspaces,
            "user_id": users,
            "key": [_key(post.thing_id) for post in made.values()],
            "overlap_key": [None] * count,
            "due_at": due,
            "source": [None] * count,
            "place": range(count),
        }
        asked = {
            "id": list(made),
            "workspace_id": workspaces,
            "user_id": users,
            "action_type": types,
            "target_key": [TARGET] * count,
            "payload": [post.model_dump_json() for post in made.values()],
            "occurrence": [""] * count,
            "publish_at": due,
            "origin": ["api"] * count,
            "created_at": [db.instant(now)] * count,
        }
        with db.transaction():
            db.run(self._sent.owners)
            db.run(self._sent.enqueue, **db.rows("asked", queued))
            db.run(self._sent.insert, **db.rows("asked", asked))


def drain(loop: RawLoop, batch: int) -> int:
    """Claim and settle until nothing is due, and return how many there were."""
    drained = 0
    while (claim := loop.claim(batch)).action_ids:
        loop.settle(claim)
        drained += len(claim.action_ids)
    return drained


def _key(thing_id: str) -> str:
    return SEPARATOR.join((ACTION_TYPE, thing_id, TARGET, ""))
