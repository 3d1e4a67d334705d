"""How does a hand-written loop look over sqlite3?"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from postdate.bench.raw import RawClaim, key_of
from postdate.bench.subject import ACTION_TYPE, LEASE, TARGET
from postdate.clock import host_time
from postdate.ids import TimeOrderedIds
from postdate.store.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from postdate.bench.place import Place
    from postdate.bench.subject import Post

_CLAIM = """
update {ns}queue set lease_token = :token, lease_until = :until, claimed_by = 'raw', submitted_at = :now,
  started_at = :now, attempt_count = attempt_count + 1
where action_id in (
  select action_id from {ns}queue where action_type = :type and lease_token is null and due_at <= :now
  order by due_at, action_id limit :limit)
returning action_id, due_at, attempt_count, last_error, (
  select o.action_id from {ns}outcomes o
  where o.key = {ns}queue.key and (o.status = 'published' or o.reason = 'unconfirmed') limit 1)
"""

_ASKED = "select * from {ns}actions where id in (select value from json_each(:ids))"

_LEAVE = """
delete from {ns}queue where action_id in (select value from json_each(:ids)) and lease_token = :token
returning action_id, workspace_id, user_id, key, submitted_at, attempt_count
"""

_OUTCOMES = """
insert into {ns}outcomes (action_id, workspace_id, user_id, key, submitted_at, attempt_count, status, provider_id,
  finished_at)
values (?, ?, ?, ?, ?, ?, 'published', 'raw', ?)
"""

_OWNERS = """
select (select id from {ns}workspaces where id = :workspace), (select id from {ns}profiles where id = :user)
"""

_ENQUEUE = """
insert into {ns}queue (action_id, action_type, workspace_id, user_id, key, due_at)
select :id, :type, :workspace, :user, :key, :at
where (select o.action_id from {ns}outcomes o
       where o.key = :key and (o.status = 'published' or o.reason = 'unconfirmed') limit 1) is null
on conflict do nothing
"""

_ACTION = """
insert into {ns}actions (id, workspace_id, user_id, action_type, target_key, payload, publish_at, created_at)
values (:id, :workspace, :user, :type, :target, :payload, :at, :now)
"""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@contextmanager
def on_sqlite(place: Place) -> Iterator[RawSqlite]:
    """Give the loop on a connection of its own."""
    with closing(
        sqlite3.connect(str(Database(place.url).url.database), timeout=30, isolation_level=None)
    ) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        yield RawSqlite(connection, place)


class RawSqlite:
    """Claims, settles and inserts."""

    def __init__(self, connection: sqlite3.Connection, place: Place) -> None:
        self._connection = connection
        self._ns = place.names.qualifier("sqlite")
        self._known = {
            "workspace": str(place.workspace),
            "user": str(place.user),
            "type": ACTION_TYPE,
            "target": TARGET,
        }
        self._new_id = TimeOrderedIds()

    def claim(self, limit: int) -> RawClaim:
        """Claim up to `limit` due rows and read what they ask for."""
        now, token = host_time(), uuid4()
        with self._transaction():
            until = _microseconds(now + LEASE)
            rows = self._run(_CLAIM, token=str(token), until=until, now=_microseconds(now), limit=limit)
            runnable = [row[0] for row in rows if row[4] is None]
            for row in self._run(_ASKED, ids=json.dumps(runnable)):
                json.loads(row[5])  # the payload
        return RawClaim(lease_token=token, action_ids=runnable)

    def settle(self, claim: RawClaim) -> None:
        """Settle them all as published."""
        now = _microseconds(host_time())
        with self._transaction():
            left = self._run(_LEAVE, ids=json.dumps(claim.action_ids), token=str(claim.lease_token))
            self._connection.executemany(self._named(_OUTCOMES), [(*row, now) for row in left])

    def insert(self, posts: Sequence[Post], at: datetime) -> None:
        """Insert actions."""
        now = host_time()
        written = self._known | {"at": _microseconds(at), "now": _microseconds(now)}
        with self._transaction():
            self._run(_OWNERS)
            for post in posts:
                row = written | {"id": str(self._new_id(now)), "key": key_of(ACTION_TYPE, post, TARGET)}
                if self._connection.execute(self._named(_ENQUEUE), row).rowcount:
                    self._connection.execute(self._named(_ACTION), row | {"payload": post.model_dump_json()})

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("begin immediate")
        yield
        self._connection.execute("commit")

    def _run(self, statement: str, **values: object) -> list[Any]:
        return self._connection.execute(self._named(statement), self._known | values).fetchall()

    def _named(self, statement: str) -> str:
        return statement.replace("{ns}", self._ns)


def _microseconds(instant: datetime) -> int:
    return (instant - _EPOCH) // timedelta(microseconds=1)
