"""Which late occurrence runs where the rule itself has ended, or somebody pauses it meanwhile?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from postdate import Context, Postdate, Reason
from postdate.domain.rule import RuleStatus
from postdate.testing.factories import make_workspace
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from postdate.clock import ManualClock
    from postdate.domain.misfire import Misfire

A_DAY = timedelta(days=1)


@pytest.mark.parametrize(("misfire", "ran"), [("skip", []), ("once", [10]), ("all", [9, 10])])
async def test_of_a_rule_that_has_ended_the_last_that_was_missed_is_the_one_that_runs_late(
    app: Postdate, clock: ManualClock, misfire: Misfire, ran: list[int]
) -> None:
    """SC34: nothing of it is still to come, so its last is not superseded for ever."""
    said: list[str] = []

    @app.action("post")
    async def post(ctx: Context, payload: dict[str, object]) -> None:
        said.append(ctx.action.occurrence)

    workspace = make_workspace(app)
    two = "FREQ=DAILY;COUNT=2"
    rule = await app.create_rule(
        "post", {}, rrule=two, start="2026-03-09T09:00", tz="UTC", workspace=workspace, misfire=misfire
    )
    await app.pause(workspace=workspace)
    for _ in range(6):
        clock.advance(A_DAY)
        await app.tick()
    assert (await app.get_rule(rule.id)).status is RuleStatus.ENDED
    assert said == []
    clock.advance(20 * A_DAY)  # to beyond what the expander had decided about when it ended the rule
    await app.resume(workspace=workspace)
    await app.tick()
    assert said == [f"2026-03-{day:02}T09:00:00Z" for day in ran]
    left_out = [action for action in await app.list() if action.reason is Reason.SKIPPED]
    assert len(left_out) == 2 - len(ran)
    assert [one.nominal_at for one in await app.missed(rule=rule.id)] == [
        each.publish_at for each in reversed(left_out)
    ]
    assert clock.now() == NOON + 26 * A_DAY
