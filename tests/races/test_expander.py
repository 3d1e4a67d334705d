"""What comes of rules that several hands look at, or change, at the same moment?"""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from postdate import Postdate, Reason, Status
from postdate.clock import ManualClock
from postdate.engine.expand import AT_ONCE, Expander, look_at_batch
from postdate.engine.look import LookReport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

NOON = datetime(2026, 3, 8, 12, tzinfo=UTC)
DAY = timedelta(days=1)
RULES = 25


@pytest.fixture
async def apps(database_url: str) -> AsyncIterator[list[Postdate]]:
    """Three processes' apps on one database, by one clock, and rules that are due to be looked at."""
    clock = ManualClock(NOON)
    apps = [Postdate(database_url, clock=clock) for _ in range(3)]
    for app in apps:
        app.action("post")(lambda ctx, payload: None)
    for number in range(RULES):
        await apps[0].create_rule("post", {"thing_id": f"digest-{number}"}, cron="0 9 * * *", tz="UTC")
    clock.advance(3 * DAY)
    yield apps
    for app in apps:
        await app.close()


def occurrences(actions: list[Any]) -> Counter[tuple[str, str]]:
    return Counter((each.origin_id, each.occurrence) for each in actions)


async def test_two_expanders_at_once_and_one_twice_come_to_the_same_as_one(apps: list[Postdate]) -> None:
    reports = await asyncio.gather(*(Expander(app.kernel).run_once(NOON + 3 * DAY) for app in apps))
    assert await Expander(apps[0].kernel).run_once(NOON + 3 * DAY) == LookReport()
    assert sum(report.materialised for report in reports) == RULES * 3
    found = occurrences(await apps[0].list(limit=1000))
    assert set(found.values()) == {1}
    assert len(found) == RULES * 17


async def test_an_expander_that_dies_in_the_middle_is_finished_by_the_next(
    apps: list[Postdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first batch is there; its second, in mid-transaction, is not."""
    monkeypatch.setattr("postdate.engine.expand.BATCH", 10)
    dying, batches = Expander(apps[0].kernel), []

    def dies(kernel: Any, tx: Any, **given: Any) -> LookReport:
        batches.append(look_at_batch(kernel, tx, **given))
        if len(batches) >= 2:
            raise SystemError("killed")
        return batches[-1]

    with monkeypatch.context() as patched:
        patched.setattr("postdate.engine.expand.look_at_batch", dies)
        with pytest.raises(SystemError):
            await dying.run_once(NOON + 3 * DAY)
    assert len(await apps[0].list(limit=1000)) == RULES * 14 + 10 * 3
    report = await Expander(apps[1].kernel).run_once(NOON + 3 * DAY)
    assert report.looked == RULES - 10
    assert len(await apps[0].list(limit=1000)) == RULES * 17


async def test_a_run_whose_time_is_over_leaves_the_rest_to_the_next(
    apps: list[Postdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else's passes begin as long as it goes on, however much there is to catch up with."""
    monkeypatch.setattr("postdate.engine.expand.BATCH", 10)
    monkeypatch.setattr("postdate.engine.expand.LONGEST", timedelta(0))
    of_one = AT_ONCE * 10
    runs = [await Expander(apps[0].kernel).run_once(NOON + 3 * DAY) for _ in range(RULES // of_one + 1)]
    assert [run.looked for run in runs] == [of_one] * (RULES // of_one) + [RULES % of_one]
    assert len(await apps[0].list(limit=1000)) == RULES * 17


async def test_a_pause_in_the_middle_of_a_pass_leaves_nothing_queued(apps: list[Postdate]) -> None:
    """Whoever has the rule first: what the expander has made is withdrawn, or it finds the rule paused."""
    rules = await apps[0].list_rules()
    await asyncio.gather(
        *(Expander(app.kernel).run_once(NOON + 3 * DAY) for app in apps[:2]),
        *(apps[2].pause_rule(rule.id) for rule in rules),
    )
    assert await apps[0].list(status=Status.QUEUED, limit=1000) == []
    withdrawn = await apps[0].list(status=Status.CANCELLED, limit=1000)
    assert {each.reason for each in withdrawn} == {Reason.RULE_CHANGED}
    await asyncio.gather(*(apps[1].resume_rule(rule.id) for rule in rules))
    queued = occurrences(await apps[0].list(status=Status.QUEUED, limit=1000))
    assert (len(queued), set(queued.values())) == (RULES * 14, {1})


async def test_two_edits_at_once_leave_the_window_of_one_of_them(apps: list[Postdate]) -> None:
    rule = (await apps[0].list_rules())[0]
    await asyncio.gather(
        apps[0].update_rule(rule.id, cron="0 7 * * *", payload={"thing_id": "seven"}),
        apps[1].update_rule(rule.id, cron="0 8 * * *"),
        Expander(apps[2].kernel).run_once(NOON + 3 * DAY),
    )
    last = await apps[0].get_rule(rule.id)
    queued = [each for each in await apps[0].list(status=Status.QUEUED, limit=1000) if each.origin_id == str(rule.id)]
    hours = {each.publish_at.hour for each in queued if each.publish_at > NOON + 3 * DAY}
    assert hours == {int(last.rrule.split()[1])}
    assert last.version == 3
    assert last.payload_template == {"thing_id": "seven"}
