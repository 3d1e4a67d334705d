"""In which ways can a second action for a thing come into the queue?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from postdate import AlreadyPublished, AlreadyScheduled, PostdateError
from postdate.store.schema import SYSTEM_PROFILE
from tests.races.stage import NOON, POST, REJECTED, Stage, post

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from tests.races.racing import Contender, Meeting

Newcomer: TypeAlias = "Callable[[str], object]"
"""Brings an action of this thing into the queue, or raises why it may not."""

Kind: TypeAlias = "Callable[[Stage, Sequence[str]], Newcomer]"
"""Makes a newcomer that is ready for these things."""

NEIGHBOURS = 1
"""How many unrelated things a bulk insert brings on either side of the one in question."""


def single(stage: Stage, _things: Sequence[str]) -> Newcomer:
    """Schedule it."""
    return lambda thing: stage.app.sync.schedule(POST, {"thing_id": thing}, at=NOON, target="instagram")


def bulk(stage: Stage, _things: Sequence[str]) -> Newcomer:
    """Schedule it among others, which must get in whatever becomes of it."""

    def insert(thing: str) -> object:
        before, after = ([f"{side}{n} {thing}" for n in range(NEIGHBOURS)] for side in "az")
        made = stage.app.sync.schedule_many([post(each) for each in (*before, thing, *after)])
        ours = made.pop(NEIGHBOURS)
        assert not any(isinstance(neighbour, PostdateError) for neighbour in made)
        if isinstance(ours, PostdateError):
            raise ours
        return ours

    return insert


def view(stage: Stage, _things: Sequence[str]) -> Newcomer:
    """Insert it as another program would."""
    statement = text(
        f"insert into {stage.view} (user_id, action_type, target_key, payload, publish_at) "
        f"values (:user, :type, 'instagram', :payload, {0 if stage.app.kernel.database.is_sqlite else 'now()'})"
    )

    def insert(thing: str) -> object:
        values = {"user": str(SYSTEM_PROFILE), "type": POST, "payload": json.dumps({"thing_id": thing})}
        with stage.app.kernel.database.sync_engine.begin() as connection:
            return connection.execute(statement, values).rowcount

    return insert


def retry(stage: Stage, things: Sequence[str]) -> Newcomer:
    """Retry a sibling that failed before."""
    failed: dict[str, UUID] = {
        thing: action.id for thing, action in zip(things, stage.ended(things, REJECTED), strict=True)
    }
    return lambda thing: stage.app.sync.retry(failed[thing])


NEWCOMERS = [single, bulk, view, retry]

REFUSED = (AlreadyScheduled, AlreadyPublished, IntegrityError)
"""How a newcomer is told that the thing is taken, the last one by the view."""


def coming(stage: Stage, things: Sequence[str], kind: Kind) -> Contender:
    """In each round bring one of them into the queue."""
    newcomer = kind(stage, things)

    def come(number: int, meeting: Meeting) -> object:
        meeting.start()
        return newcomer(things[number])

    return come
