"""Does the history of each action that a change of its rule withdraws say why, in the words of whoever changed it?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import pytest

from postdate import Context, Postdate, Status
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from postdate import RecurringRule

DAY = timedelta(days=1)
NINE = NOON - timedelta(hours=3)


async def change(app: Postdate, rule: RecurringRule, **said: Any) -> object:
    return await app.update_rule(rule.id, payload={"text": "hi"}, **said)


async def split(app: Postdate, rule: RecurringRule, **said: Any) -> object:
    return await app.update_rule(rule.id, following=NINE + 2 * DAY, payload={"text": "hi"}, **said)


async def pause(app: Postdate, rule: RecurringRule, **said: Any) -> object:
    return await app.pause_rule(rule.id, **said)


async def end(app: Postdate, rule: RecurringRule, **said: Any) -> object:
    return await app.end_rule(rule.id, **said)


async def run_now(app: Postdate, rule: RecurringRule, **said: Any) -> object:
    return await app.run_now(rule.id, **said)


@pytest.mark.parametrize(("verb", "withdrawn"), [(change, 13), (split, 13), (pause, 14), (end, 14), (run_now, 1)])
async def test_whatever_a_verb_withdraws_of_a_rule_carries_its_note(
    app: Postdate, verb: Callable[..., Awaitable[object]], withdrawn: int
) -> None:
    """P78, P82: what a person had moved, too."""

    @app.action("post")
    async def post(ctx: Context, payload: dict[str, str]) -> None: ...

    overlap: Literal["skip", "allow"] = "skip" if verb is run_now else "allow"
    rule = await app.create_rule("post", {"text": "hello"}, cron="0 9 * * *", tz="UTC", overlap=overlap)
    if verb is not run_now:
        await app.move_occurrence(rule.id, NINE + 5 * DAY, to=NINE + 5 * DAY + timedelta(hours=1))
    before = {each.id for each in await app.list(status=Status.QUEUED, limit=100)}
    await verb(app, rule, actor="ana", note="a crisis")
    still = {each.id for each in await app.list(status=Status.QUEUED, limit=100)}
    gone = before - still
    assert len(gone) == withdrawn
    for each in gone:
        last = (await app.history(each))[-1]
        assert (last.actor, last.detail["note"]) == ("ana", "a crisis")
