"""Does each way in which a run can end lead where the design says, on both databases?"""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from sqlalchemy import text
from structlog.testing import capture_logs

from postdate import (
    Backoff,
    Context,
    Deferred,
    Invalid,
    NewAction,
    NotSent,
    Postdate,
    Published,
    Reason,
    Rejected,
    RetriesExhausted,
    Skipped,
    Status,
    Unconfirmed,
)
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from postdate.clock import ManualClock

STEADY = Backoff(first=timedelta(seconds=10), factor=2, longest=timedelta(minutes=10), spread=0)


class Script:
    """A handler that does what the test put on its list, and counts its calls."""

    def __init__(self, *steps: object) -> None:
        self.steps = list(steps)
        self.seen: list[Context] = []

    async def __call__(self, ctx: Context, payload: dict[str, Any]) -> object:
        self.seen.append(ctx)
        step = self.steps.pop(0)
        if isinstance(step, BaseException):
            raise step
        return step


def scripted(app: Postdate, *steps: object, **options: Any) -> Script:
    script = Script(*steps)
    app.action("act", backoff=STEADY, **options)(script)
    return script


@pytest.mark.parametrize(
    ("step", "status", "reason", "provider_id"),
    [
        ("p-1", Status.PUBLISHED, None, "p-1"),
        (None, Status.PUBLISHED, None, None),
        (Published(provider_id="p-2"), Status.PUBLISHED, None, "p-2"),
        (17, Status.PUBLISHED, None, "17"),
        (Rejected("no such number"), Status.FAILED, Reason.REJECTED, None),
        (Unconfirmed("cut"), Status.FAILED, Reason.UNCONFIRMED, None),
        (Skipped("unsubscribed"), Status.CANCELLED, Reason.SKIPPED, None),
        (RuntimeError("a bug"), Status.FAILED, Reason.UNCONFIRMED, None),
        (TimeoutError("their own"), Status.FAILED, Reason.UNCONFIRMED, None),
        (SystemExit(3), Status.FAILED, Reason.UNCONFIRMED, None),
    ],
)
async def test_a_run_ends_as_its_outcome_says(
    app: Postdate, step: object, status: Status, reason: Reason | None, provider_id: str | None
) -> None:
    """P28, P29, P61, P63."""
    script = scripted(app, step)
    action = await app.schedule("act", {"thing_id": "t"}, at=NOON)
    report = await app.tick()
    assert report.due_count == 1  # P41
    found = await app.get(action.id)
    assert (found.status, found.reason, found.provider_id) == (status, reason, provider_id)
    assert (found.attempt_count, found.submitted_at, found.finished_at) == (1, NOON, NOON)
    assert len(script.seen) == 1


def broken(ctx: Context, payload: dict[str, object]) -> str:
    return str(payload["number"])


async def broken_awaited(ctx: Context, payload: dict[str, object]) -> str:
    return broken(ctx, payload)


@pytest.mark.parametrize("handler", [broken, broken_awaited])
async def test_the_log_shows_where_a_handler_broke(app: Postdate, handler: Any) -> None:
    app.action("act")(handler)
    action = await app.schedule("act", {}, at=NOON)
    with capture_logs() as logs:
        await app.tick()
    (told,) = logs
    assert (told["log_level"], told["action"]) == ("warning", str(action.id))
    assert "in broken\n" in told["traceback"]
    assert told["traceback"].endswith("KeyError: 'number'\n")


@pytest.mark.parametrize("handler", [broken, broken_awaited])
async def test_a_log_that_cannot_be_written_keeps_no_run_from_its_outcome(app: Postdate, handler: Any) -> None:
    def full(*_: object) -> dict[str, object]:
        raise OSError("no space left on device")

    app.action("act")(handler)
    action = await app.schedule("act", {}, at=NOON)
    kept = structlog.get_config()
    structlog.configure(processors=[full])
    try:
        await app.tick()
    finally:
        structlog.configure(**kept)
    assert (await app.get(action.id)).reason == Reason.UNCONFIRMED


async def test_an_action_fires_at_its_instant_and_not_before(app: Postdate, clock: ManualClock) -> None:
    """P1, P37: weeks away, to the microsecond."""
    script = scripted(app, None)
    due = NOON + timedelta(weeks=7)
    await app.schedule("act", {}, at=due)
    clock.move_to(due - timedelta(microseconds=1))
    assert (await app.tick()).due_count == 0
    clock.move_to(due)
    assert (await app.tick()).due_count == 1
    assert script.seen[0].now == due


async def test_what_came_due_while_nothing_ran_fires_late(app: Postdate, clock: ManualClock) -> None:
    """SC34, SC60: one-shots all fire late unless they expire."""
    script = scripted(app, None, None)
    await app.schedule("act", {}, at=NOON - timedelta(hours=2))
    await app.schedule("act", {}, at=NOON + timedelta(hours=2))
    clock.advance(timedelta(days=3))
    await app.tick()
    assert len(script.seen) == 2


async def test_what_expired_is_failed_without_being_run(app: Postdate, clock: ManualClock) -> None:
    script = scripted(app)
    action = await app.schedule("act", {}, at=NOON, expires_at=NOON + timedelta(minutes=5))
    clock.advance(timedelta(minutes=5, microseconds=1))
    await app.tick()
    found = await app.get(action.id)
    assert (found.status, found.reason, found.attempt_count) == (Status.FAILED, Reason.EXPIRED, 0)
    assert script.seen == []


async def test_what_was_not_sent_is_tried_again_and_then_exhausted(app: Postdate, clock: ManualClock) -> None:
    """SC03, P32, P62: queued again with its error, the next attempt delayed, one attempt counted per claim."""
    scripted(app, NotSent("refused"), NotSent("busy", retry_after=60), NotSent("refused again"))
    action = await app.schedule("act", {"thing_id": "t"}, at=NOON)
    await app.tick()
    found = await app.get(action.id)
    assert (found.status, found.attempt_count, found.last_error) == (Status.QUEUED, 1, "refused")
    assert found.next_attempt_at == NOON + timedelta(seconds=10)
    clock.advance(timedelta(seconds=9))
    assert (await app.tick()).due_count == 0
    clock.advance(timedelta(seconds=1))
    await app.tick()
    assert (await app.get(action.id)).next_attempt_at == NOON + timedelta(seconds=70)
    clock.advance(timedelta(seconds=60))
    await app.tick()
    found = await app.get(action.id)
    assert (found.status, found.reason, found.attempt_count) == (Status.FAILED, Reason.EXHAUSTED, 3)
    causes = [event.cause for event in await app.history(action.id)]
    assert causes == ["schedule", "not_sent", "not_sent", "exhausted"]


async def test_a_person_retries_the_same_action_within_the_budget(app: Postdate) -> None:
    """P71, P72, P73, P-i1: max_attempts bounds all attempts together; beyond it only by force, with a note."""
    scripted(app, *[Rejected("no")] * 4, auto_attempts=1, max_attempts=3)
    action = await app.schedule("act", {"thing_id": "t"}, at=NOON)
    await app.tick()
    for attempt in (2, 3):
        again = await app.retry(action.id, actor="ana")
        assert (again.id, again.status, again.attempt_count) == (action.id, Status.QUEUED, attempt - 1)
        await app.tick()
    with pytest.raises(RetriesExhausted):
        await app.retry(action.id)
    with pytest.raises(Invalid, match="note"):
        await app.retry(action.id, force=True)
    await app.retry(action.id, force=True, note="the provider asked us to", actor="ana")
    await app.tick()
    assert (await app.get(action.id)).attempt_count == 4
    assert len(await app.list()) == 1
    notes = [event.detail.get("note") for event in await app.history(action.id) if event.actor == "ana"]
    assert notes == [None, None, "the provider asked us to"]


async def test_deferring_is_not_failing(app: Postdate, clock: ManualClock) -> None:
    """SC12: ten deferrals, then one failure: the first back-off step, one attempt used."""
    script = scripted(app)
    script.steps = [Deferred(NOON + timedelta(hours=n + 1)) for n in range(10)] + [NotSent("busy")]
    action = await app.schedule("act", {}, at=NOON)
    for _ in range(11):
        await app.tick()
        clock.advance(timedelta(hours=1))
    found = await app.get(action.id)
    assert found.attempt_count == 1
    assert found.next_attempt_at == NOON + timedelta(hours=10, seconds=10)


async def test_a_payload_that_is_no_longer_valid_is_never_run(
    app: Postdate, database_url: str, clock: ManualClock
) -> None:
    """P32, P-T4: the validation error puts it back to queued; it was surely not sent."""
    yesterday = Postdate(database_url, clock=clock)
    scripted(yesterday, payload=dict[str, int])
    action = await yesterday.schedule("act", {"n": 1}, at=NOON)
    await yesterday.close()
    script = scripted(app, payload=dict[str, bytes])
    await app.tick()
    found = await app.get(action.id)
    assert (found.status, found.attempt_count, script.seen) == (Status.QUEUED, 1, [])
    assert "payload.n" in (found.last_error or "")


async def test_a_synchronous_handler_runs_in_a_thread(app: Postdate) -> None:
    threads: list[threading.Thread] = []

    @app.action("sync")
    def sync(ctx: Context, payload: dict[str, object]) -> str:
        threads.append(threading.current_thread())
        return ctx.idempotency_key

    action = await app.schedule("sync", {}, at=NOON)
    await app.tick()
    found = await app.get(action.id)
    assert (found.status, found.provider_id) == (Status.PUBLISHED, str(action.id))
    assert threads[0] is not threading.main_thread()
    assert threads[0].daemon


async def test_a_synchronous_handler_that_hangs_is_cut_off_and_keeps_its_slot(app: Postdate) -> None:
    """P42: others of its type go on as long as there are slots."""
    let_go = threading.Event()
    entered = 0

    @app.action("sync", timeout=0.05, concurrency=2)
    def sync(ctx: Context, payload: dict[str, object]) -> None:
        nonlocal entered
        entered += 1
        if payload.get("hang"):
            let_go.wait(20)

    hung = await app.schedule("sync", {"hang": True}, at=NOON)
    fine = [await app.schedule("sync", {"n": n}, at=NOON) for n in range(5)]
    await app.tick()
    let_go.set()
    assert ((await app.get(hung.id)).reason, entered) == (Reason.UNCONFIRMED, 6)
    assert {(await app.get(action.id)).status for action in fine} == {Status.PUBLISHED}


async def test_a_plain_function_that_returns_a_coroutine_has_sent_nothing(app: Postdate) -> None:
    async def inner() -> str:
        return "sent"

    app.action("act", backoff=STEADY)(lambda ctx, payload: inner())
    action = await app.schedule("act", {}, at=NOON)
    await app.tick()
    found = await app.get(action.id)
    assert found.status is Status.QUEUED
    assert "async def" in (found.last_error or "")


async def test_one_poisoned_outcome_holds_no_other_back(app: Postdate, database_url: str) -> None:
    """A batch that the database refuses is settled row by row."""
    scripted(app, *["p"] * 5)
    actions = [await app.schedule("act", {"thing_id": str(n)}, at=NOON) for n in range(5)]
    poisoned = actions[2].id
    with app.kernel.database.sync_engine.begin() as connection:
        if database_url.startswith("sqlite"):
            connection.execute(
                text(
                    "create trigger poison before insert on outcomes "
                    f"when new.action_id = '{poisoned}' begin select raise(abort, 'poison'); end"
                )
            )
        else:
            connection.execute(text(f"alter table postdate.outcomes add check (action_id <> '{poisoned}')"))
    await app.tick()
    statuses = [(await app.get(action.id)).status for action in actions]
    assert statuses == [Status.PUBLISHED] * 2 + [Status.SUBMITTED] + [Status.PUBLISHED] * 2


async def test_more_than_a_batch_is_drained_by_one_pass_in_order(app: Postdate) -> None:
    """P38, P39 and P-T1 as superseded: `(due_at, id)`; nothing is left for the next minute."""
    script = scripted(app, *[None] * 1201, concurrency=700)
    made = await app.schedule_many(
        NewAction(action_type="act", payload={"n": n}, at=NOON - timedelta(seconds=n // 3)) for n in range(1201)
    )
    assert (await app.tick()).due_count == 1201
    started = [(ctx.action.publish_at, ctx.action.id) for ctx in script.seen]
    assert started == sorted(started)
    assert len({action.id for action in made if not isinstance(action, Exception)}) == 1201
