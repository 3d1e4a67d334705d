"""What is scheduled and fired?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic import BaseModel

from postdate.app import Postdate
from postdate.verbs import NewAction

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from postdate.bench.place import Place
    from postdate.context import Context

ACTION_TYPE = "publish_post"
TARGET = "instagram"
LEASE = timedelta(seconds=90)

_TEXT = "The café by the river opens again on Saturday, with a new menu and the old prices."


class Post(BaseModel):
    """A payload as applications have them: a thing, and some fields."""

    thing_id: str
    text: str = _TEXT
    media: list[str] = ["https://cdn.example.com/river.jpg"]
    pinned: bool = False


def posts(first: int, count: int) -> list[Post]:
    """Return `count` different posts."""
    return [Post(thing_id=f"post-{number}") for number in range(first, first + count)]


def new_action(place: Place, post: Post, at: datetime) -> NewAction:
    """Return a post as `schedule_many` takes it."""
    return NewAction(
        action_type=ACTION_TYPE, payload=post, at=at, target=TARGET, workspace=place.workspace, user=place.user
    )


def application(place: Place, *, concurrency: int, ran: Callable[[Context], None]) -> Postdate:
    """Return an application whose handler does nothing but call `ran`."""
    app = Postdate(settings=place.settings)

    @app.action(ACTION_TYPE, concurrency=concurrency)
    async def publish_post(ctx: Context, post: Post) -> str:
        ran(ctx)
        return post.thing_id

    return app
