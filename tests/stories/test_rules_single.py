"""What becomes of an occurrence that somebody decides about alone?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from postdate import Context, InvalidPayload, MoveRefused, OccurrenceNotFound, OverlapTaken, Postdate, Status
from postdate.testing.travel import travel
from tests.stories.conftest import NOON
from tests.stories.daily import DAY, HOUR, NINE, daily, due, queued, registered_post

if TYPE_CHECKING:
    from postdate.clock import ManualClock


@pytest.fixture
def ran(app: Postdate) -> list[str]:
    """What was said, and when."""
    return registered_post(app)


async def test_a_skipped_occurrence_stays_out_whatever_happens_to_the_rule(
    app: Postdate, ran: list[str], clock: ManualClock
) -> None:
    """The second is beyond the window: it is kept in the ledger until it would be materialised."""
    rule = await daily(app)
    for at in (NINE + 2 * DAY, NINE + 16 * DAY):
        skipped = await app.skip_occurrence(rule.id, at, actor="ana")
        assert await app.skip_occurrence(rule.id, at) == skipped, "idempotent"
    await app.pause_rule(rule.id)
    await app.resume_rule(rule.id)
    await app.update_rule(rule.id, payload={"text": "changed"})
    upcoming = await app.preview_rule(rule.id, n=17)
    left_out = [each.nominal_at for each in upcoming if each.publish_at is None]
    assert left_out == [NINE + 2 * DAY, NINE + 16 * DAY]
    clock.move_to(NOON + 3 * DAY)
    await app.tick()
    assert due(await queued(app)) == [NINE + n * DAY for n in range(4, 18) if n != 16]
    with pytest.raises(OccurrenceNotFound, match=r"no occurrence of rule .* at '2026-03-26T10:00"):
        await app.skip_occurrence(rule.id, "2026-03-26T10:00")
    with pytest.raises(MoveRefused, match="it is published"):
        await app.skip_occurrence(rule.id, NINE + 3 * DAY)


async def test_a_moved_occurrence_fires_where_it_was_moved_and_stays_the_same_occurrence(
    app: Postdate, ran: list[str], clock: ManualClock
) -> None:
    rule = await daily(app)
    moved = await app.move_occurrence(rule.id, "2026-03-09T09:00", to="2026-03-09T15:30")
    far = await app.move_occurrence(rule.id, NINE + 20 * DAY, to=NINE + 3 * DAY + 2 * HOUR)
    assert moved.occurrence == "2026-03-09T09:00:00Z"
    assert moved.replaces_id is not None
    assert far.replaces_id is None
    await app.update_rule(rule.id, payload={"text": "changed"})
    await app.pause_rule(rule.id)
    assert await queued(app) == [], "of a paused rule nothing fires"
    await app.resume_rule(rule.id)
    await travel(app, to=NOON + 3 * DAY)
    assert ran == [
        "03-09T15:30 changed",
        "03-10T09:00 changed",
        "03-11T09:00 changed",
        "03-11T11:00 changed",
    ]
    clock.move_to(NOON + 7 * DAY)
    await app.tick()
    assert NINE + 19 * DAY in due(await queued(app))
    assert NINE + 20 * DAY not in due(await queued(app)), "it was moved away"
    with pytest.raises(MoveRefused):
        await app.move_occurrence(rule.id, NINE + DAY, to=NOON + 30 * DAY)


async def test_an_action_that_was_rescheduled_goes_with_its_occurrence(app: Postdate, ran: list[str]) -> None:
    rule = await daily(app)
    first, *_ = await queued(app)
    await app.reschedule(first.id, at=NOON + 8 * DAY)
    await app.skip_occurrence(rule.id, NINE + DAY)
    assert NOON + 8 * DAY not in due(await queued(app))


async def test_one_occurrence_can_say_something_else(app: Postdate, ran: list[str], clock: ManualClock) -> None:
    rule = await daily(app)
    await app.override_occurrence(rule.id, NINE + 2 * DAY, {"text": "a special day"})
    await app.override_occurrence(rule.id, NINE + 15 * DAY, {"text": "later"})
    clock.move_to(NOON + DAY)
    await app.tick()
    assert [each.payload["text"] for each in await queued(app)] == ["a special day", *["hello"] * 12, "later"]
    await app.override_occurrence(rule.id, NINE + 2 * DAY, None)
    assert (await queued(app))[0].payload == {"text": "hello"}
    with pytest.raises(InvalidPayload):
        await app.override_occurrence(rule.id, NINE + 2 * DAY, {"thing_id": ""})


async def test_what_one_occurrence_says_changes_neither_when_it_happens_nor_whether(
    app: Postdate, ran: list[str], clock: ManualClock
) -> None:
    rule = await daily(app)
    moved, cancelled, *_ = await queued(app)
    await app.reschedule(moved.id, at=NINE + DAY + HOUR)
    await app.cancel(cancelled.id)
    for day in (1, 2):
        await app.override_occurrence(rule.id, NINE + day * DAY, {"text": "special"})
    await travel(app, to=NINE + 3 * DAY)
    assert ran == ["03-09T10:00 special", "03-11T09:00 hello"]


async def test_a_rule_can_be_run_now_beside_its_occurrences(app: Postdate, ran: list[str], clock: ManualClock) -> None:
    rule = await app.create_rule("post", {"text": "hello", "thing_id": "digest"}, cron="0 9 * * *", tz="UTC")
    await app.run_now(rule.id, actor="ana")
    await travel(app, to=NOON + DAY)
    assert ran == ["03-08T12:00 hello", "03-09T09:00 hello"]


async def test_where_runs_must_not_overlap_running_now_takes_the_place_of_the_next_or_is_refused(
    app: Postdate, ran: list[str], clock: ManualClock
) -> None:
    refused: list[OverlapTaken] = []

    @app.action("long")
    async def long(ctx: Context, payload: dict[str, str]) -> None:
        try:
            await app.run_now(rule.id)
        except OverlapTaken as error:
            refused.append(error)

    rule = await app.create_rule("long", {}, every=HOUR, overlap="skip")
    await app.run_now(rule.id)
    assert due(await queued(app)) == [NOON]
    await travel(app, to=NOON + 2 * HOUR)
    assert len(await app.list(status=Status.PUBLISHED)) == len(refused) == 3
