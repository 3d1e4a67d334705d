"""A post a day, by a rule."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from postdate import Action, Context, Postdate, Status
from tests.stories.conftest import NOON

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
NINE = NOON - 3 * HOUR
"""Of the day that the tests begin on: past already."""


def registered_post(app: Postdate) -> list[str]:
    """Register a type, and return when its actions ran and what they said."""
    said: list[str] = []

    @app.action("post")
    async def post(ctx: Context, payload: dict[str, str]) -> None:
        said.append(f"{ctx.now:%m-%dT%H:%M} {payload['text']}")

    return said


async def daily(app: Postdate, **asked: Any) -> Any:
    return await app.create_rule("post", {"text": "hello"}, **{"cron": "0 9 * * *", "tz": "UTC", **asked})


async def queued(app: Postdate) -> list[Action]:
    return await app.list(status=Status.QUEUED, limit=1000)


def due(actions: list[Action]) -> list[datetime]:
    return [each.publish_at for each in actions]
