"""How does a hand-written loop look over psycopg?"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import psycopg

from postdate.bench.raw import RawClaim, key_of
from postdate.bench.subject import ACTION_TYPE, LEASE, TARGET
from postdate.clock import host_time
from postdate.ids import TimeOrderedIds
from postdate.store.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from postdate.bench.place import Place
    from postdate.bench.subject import Post

_CLAIM = """
update {ns}queue set lease_token = %(token)s, lease_until = %(until)s, claimed_by = 'raw', submitted_at = %(now)s,
  started_at = %(now)s, attempt_count = attempt_count + 1
where action_id = any(array(
  select action_id from {ns}queue where action_type = %(type)s and lease_token is null and due_at <= %(now)s
  order by due_at, action_id limit %(limit)s for update skip locked))
returning action_id, due_at, attempt_count, last_error, (
  select o.action_id from {ns}outcomes o
  where o.key = {ns}queue.key and (o.status = 'published' or o.reason = 'unconfirmed') limit 1)
"""

_ASKED = "select * from {ns}actions where id = any(%(ids)s)"

_LEAVE = """
delete from {ns}queue where action_id = any(%(ids)s) and lease_token = %(token)s
returning action_id, workspace_id, user_id, key, submitted_at, attempt_count
"""

_OUTCOMES = """
insert into {ns}outcomes (action_id, workspace_id, user_id, status, provider_id, attempt_count, submitted_at,
  finished_at, key)
select action_id, workspace_id, user_id, 'published', 'raw', attempt_count, submitted_at, %(now)s, key
from unnest(%(ids)s::uuid[], %(workspaces)s::uuid[], %(users)s::uuid[], %(keys)s::text[], %(submitted)s::timestamptz[],
  %(attempts)s::int[]) as ended (action_id, workspace_id, user_id, key, submitted_at, attempt_count)
"""

_OWNERS = """
select (select id from {ns}workspaces where id = %(workspace)s for key share),
       (select id from {ns}profiles where id = %(user)s for key share)
"""

_ENQUEUE = """
insert into {ns}queue (action_id, action_type, workspace_id, user_id, key, due_at)
select action_id, %(type)s, %(workspace)s, %(user)s, key, %(at)s
from unnest(%(ids)s::uuid[], %(keys)s::text[]) as asked (action_id, key)
where (select o.action_id from {ns}outcomes o
       where o.key = asked.key and (o.status = 'published' or o.reason = 'unconfirmed') limit 1) is null
order by key
on conflict do nothing returning action_id
"""

_ACTIONS = """
insert into {ns}actions (id, workspace_id, user_id, action_type, target_key, payload, publish_at, created_at)
select id, %(workspace)s, %(user)s, %(type)s, %(target)s, payload, %(at)s, %(now)s
from unnest(%(ids)s::uuid[], %(payloads)s::jsonb[]) as asked (id, payload)
"""


@contextmanager
def on_postgres(place: Place) -> Iterator[RawPostgres]:
    """Give the loop on a connection of its own."""
    url = Database(place.url).url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url) as connection:
        yield RawPostgres(connection, place)


class RawPostgres:
    """Claims, settles and inserts. psycopg prepares what it sees often."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]], place: Place) -> None:
        self._connection = connection
        self._ns = place.names.qualifier("postgresql")
        self._known = {
            "workspace": place.workspace,
            "user": place.user,
            "type": ACTION_TYPE,
            "target": TARGET,
        }
        self._new_id = TimeOrderedIds()

    def claim(self, limit: int) -> RawClaim:
        """Claim up to `limit` due rows and read what they ask for."""
        now, token = host_time(), uuid4()
        with self._connection.transaction():
            rows = self._run(_CLAIM, token=token, until=now + LEASE, now=now, limit=limit)
            runnable: list[UUID] = [row[0] for row in rows if row[4] is None]
            self._run(_ASKED, ids=runnable)
        return RawClaim(lease_token=token, action_ids=runnable)

    def settle(self, claim: RawClaim) -> None:
        """Settle them all as published."""
        with self._connection.transaction():
            left = self._run(_LEAVE, ids=claim.action_ids, token=claim.lease_token)
            ids, workspaces, users, keys, submitted, attempts = map(list, zip(*left, strict=True))
            self._run(
                _OUTCOMES,
                now=host_time(),
                ids=ids,
                workspaces=workspaces,
                users=users,
                keys=keys,
                submitted=submitted,
                attempts=attempts,
            )

    def insert(self, posts: Sequence[Post], at: datetime) -> None:
        """Insert actions."""
        now = host_time()
        made = {self._new_id(now): post for post in sorted(posts, key=lambda post: post.thing_id)}
        keys = [key_of(ACTION_TYPE, post, TARGET) for post in made.values()]
        with self._connection.transaction():
            self._run(_OWNERS)
            admitted = [row[0] for row in self._run(_ENQUEUE, ids=list(made), keys=keys, at=at)]
            payloads = [made[action_id].model_dump_json() for action_id in admitted]
            self._run(_ACTIONS, ids=admitted, payloads=payloads, at=at, now=now)

    def _run(self, statement: str, **values: object) -> Sequence[tuple[Any, ...]]:
        parameters: Mapping[str, object] = self._known | values
        cursor = self._connection.execute(statement.replace("{ns}", self._ns).encode(), parameters)
        return cursor.fetchall() if cursor.description else ()
