"""A user's table of posts, and a source in SQL over it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from postdate import Postdate, SqlSource
from postdate.clock import ManualClock

if TYPE_CHECKING:
    from uuid import UUID

    from sqlalchemy import Engine

    from postdate import Reconciled

TYPE = "publish_post"
A_MINUTE = timedelta(minutes=1)

POSTS = """
create table posts (
  id text primary key, team text, state text, publish_on text, zone text, network text, words text, extra {json}
)
"""
DESIRED = """
select 'publish_post' as action_type, id as thing_id, publish_on as at, zone as tz, network as target, words as text,
  extra as payload
from posts where state = 'approved' and team = cast(:workspace as text);
"""
PARENTS = "select id as thing_id, state in ('published', 'failed') as finished from posts where id in :thing_ids"


class Posts:
    """The user's table."""

    def __init__(self, engine: Engine, team: UUID) -> None:
        self._engine = engine
        self._team = str(team)
        with engine.begin() as connection:
            kind = "jsonb" if engine.dialect.name == "postgresql" else "text"
            connection.execute(text(POSTS.format(json=kind)))

    def add(self, thing: str, on: str = "2026-03-09T09:00", **row: Any) -> None:
        values = {"zone": "Europe/Lisbon", "network": "instagram", "words": "Hello", "extra": None, "team": self._team}
        values |= {"id": thing, "state": "approved", "publish_on": on, **row}
        cast = "cast(:extra as jsonb)" if self._engine.dialect.name == "postgresql" else ":extra"
        names = ", ".join(values)
        places = ", ".join(cast if name == "extra" else f":{name}" for name in values)
        with self._engine.begin() as connection:
            connection.execute(text(f"insert into posts ({names}) values ({places})"), values)

    def change(self, thing: str, **row: Any) -> None:
        with self._engine.begin() as connection:
            said = ", ".join(f"{name} = :{name}" for name in row)
            connection.execute(text(f"update posts set {said} where id = :id"), {"id": thing, **row})

    def delete(self, thing: str) -> None:
        with self._engine.begin() as connection:
            connection.execute(text("delete from posts where id = :id"), {"id": thing})


def source(**changed: str) -> SqlSource:
    return SqlSource(**{"desired_sql": DESIRED, "parents_sql": PARENTS, **changed})


async def reconciled(app: Postdate, *, after: timedelta = A_MINUTE) -> Reconciled:
    assert isinstance(app.kernel.clock, ManualClock)
    app.kernel.clock.advance(after)
    (part,) = (await app.reconcile()).parts
    return part
