"""What becomes of a run whose worker died, hung or came back too late?"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from postdate import Context, NotSent, Postdate, Published, Reason, Status, Unconfirmed
from postdate.engine.recover import FOREIGN_GRACE
from postdate.store.queue import claim_due
from postdate.store.read_all import Rows
from tests.stories.conftest import NOON, running, until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from postdate.clock import ManualClock
    from postdate.domain.action import Claimed
    from postdate.store.transaction import Transaction


async def die_after_claiming(app: Postdate, action_type: str, *, lease: timedelta = timedelta(minutes=1)) -> None:
    """Claim as a worker that then vanishes."""
    now = app.kernel.clock.now()

    def claim(tx: Transaction) -> Sequence[Claimed]:
        return claim_due(
            tx, action_type=action_type, now=now, limit=10, lease_token=uuid4(), lease_until=now + lease, worker="gone"
        )

    assert await app.kernel.work(claim)


@pytest.mark.parametrize(
    ("idempotent", "status", "reason"),
    [(False, Status.FAILED, Reason.UNCONFIRMED), (True, Status.QUEUED, None)],
)
async def test_a_killed_workers_run_is_settled_by_its_types_policy(
    app: Postdate, clock: ManualClock, idempotent: bool, status: Status, reason: Reason | None
) -> None:
    """SC04, SC01, P-i3: within lease and one tick it is visible, and never silently sent again."""

    @app.action("act", idempotent=idempotent)
    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    action = await app.schedule("act", {"thing_id": "t"}, at=NOON)
    await die_after_claiming(app, "act")
    assert (await app.tick()).recovered == 0
    assert (await app.get(action.id)).status is Status.SUBMITTED
    clock.advance(timedelta(minutes=1))
    assert (await app.tick()).recovered == 1
    found = await app.get(action.id)
    assert (found.status, found.reason, found.attempt_count) == (status, reason, 1)
    assert "gone" in (found.last_error or "")


async def test_the_log_says_what_a_lost_worker_has_left(app: Postdate, clock: ManualClock) -> None:
    """SC04: whoever reads it learns that a person is to look, without asking the database."""

    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    for name, idempotent in (("act", False), ("repeatable", True)):
        app.action(name, idempotent=idempotent)(act)
        for _ in range(2):
            await app.schedule(name, {}, at=NOON)
        await die_after_claiming(app, name)
    clock.advance(timedelta(hours=2))
    with capture_logs() as logs:
        assert (await app.tick()).recovered == 4
        await app.tick()
    warned = [each for each in logs if each["event"] == "leases ran out, and were settled"]
    told = [(each["action_type"], each["actions"], each["became"]) for each in warned]
    assert told == [("act", 2, "unconfirmed"), ("repeatable", 2, "queued")]


async def test_a_crash_loop_counts_its_attempts_and_ends(app: Postdate, clock: ManualClock) -> None:
    """SC10, SC13: the attempt is taken at the claim, so a run that kills its process three times is failed."""

    @app.action("act", idempotent=True)
    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    action = await app.schedule("act", {"thing_id": "t"}, at=NOON)
    for _ in range(3):
        await die_after_claiming(app, "act")
        clock.advance(timedelta(hours=2))  # past the lease; the back-off keeps this tick from running it again
        assert (await app.tick()).recovered == 1
        clock.advance(timedelta(hours=2))
    found = await app.get(action.id)
    assert (found.status, found.reason, found.attempt_count) == (Status.FAILED, Reason.EXHAUSTED, 3)
    assert (await app.retry(action.id)).attempt_count == 3


async def test_a_type_that_is_unknown_here_is_left_to_those_who_know_it(
    app: Postdate, database_url: str, clock: ManualClock
) -> None:
    """SC09, BL34: neither claimed nor discarded; only when nobody cared for an hour is it shown as unconfirmed."""

    @app.action("theirs", idempotent=True)
    async def theirs(ctx: Context, payload: dict[str, object]) -> None: ...

    lost = await app.schedule("theirs", {"n": 1}, at=NOON)
    await die_after_claiming(app, "theirs")
    waiting = await app.schedule("theirs", {"n": 2}, at=NOON)

    other = Postdate(database_url, clock=clock)

    @other.action("ours")
    async def ours(ctx: Context, payload: dict[str, object]) -> None: ...

    clock.advance(timedelta(minutes=2))
    report = await other.tick()
    assert (report.due_count, report.recovered) == (0, 0)
    assert (await app.get(lost.id)).status is Status.SUBMITTED
    clock.advance(FOREIGN_GRACE)
    assert (await other.tick()).recovered == 1
    assert (await app.get(lost.id)).reason is Reason.UNCONFIRMED
    assert (await app.get(waiting.id)).status is Status.QUEUED
    await other.close()


async def test_a_late_finish_changes_nothing(app: Postdate, database_url: str, clock: ManualClock) -> None:
    """SC06: the worker that lost its lease settles nothing; the final state is the other's."""
    finish = asyncio.Event()
    calls: list[str] = []

    @app.action("act")
    async def slow(ctx: Context, payload: dict[str, object]) -> str:
        calls.append("slow")
        await finish.wait()
        return "slow"

    action = await app.schedule("act", {"thing_id": "t"}, at=NOON)
    slow_tick = asyncio.create_task(app.tick())
    await until(lambda: calls)

    other = Postdate(database_url, clock=clock)

    @other.action("act")
    async def quick(ctx: Context, payload: dict[str, object]) -> str:
        calls.append("quick")
        return "quick"

    clock.advance(timedelta(hours=1))
    assert (await other.tick()).recovered == 1
    await other.retry(action.id)
    await other.tick()
    finish.set()
    await slow_tick
    found = await app.get(action.id)
    assert (found.status, found.provider_id, found.attempt_count) == (Status.PUBLISHED, "quick", 2)
    assert calls == ["slow", "quick"]
    await other.close()


async def test_two_ticks_at_once_run_an_action_once(app: Postdate, database_url: str, clock: ManualClock) -> None:
    """P58, P60, P-T2: whoever finds no row makes no call."""
    calls: list[int] = []

    async def act(ctx: Context, payload: dict[str, object]) -> None:
        calls.append(1)

    others = [Postdate(database_url, clock=clock) for _ in range(3)]
    for each in (app, *others):
        each.action("act", concurrency=50)(act)
    for n in range(40):
        await app.schedule("act", {"thing_id": str(n)}, at=NOON)
    reports = await asyncio.gather(*(each.tick() for each in (app, *others)))
    assert sum(report.due_count for report in reports) == len(calls) == 40
    for each in others:
        await each.close()


@pytest.mark.parametrize(
    ("answer", "status", "reason", "provider_id"),
    [
        (Published(provider_id="p-9"), Status.PUBLISHED, None, "p-9"),
        (NotSent("never arrived"), Status.QUEUED, None, None),
        (Unconfirmed("they cannot tell"), Status.FAILED, Reason.UNCONFIRMED, None),
        (LookupError("their search is down"), Status.FAILED, Reason.UNCONFIRMED, None),
        ("yes", Status.FAILED, Reason.UNCONFIRMED, None),
    ],
)
@pytest.mark.parametrize("crashed", [True, False])
async def test_the_provider_is_asked_about_a_doubtful_run(
    app: Postdate,
    clock: ManualClock,
    answer: object,
    status: Status,
    reason: Reason | None,
    provider_id: str | None,
    crashed: bool,
) -> None:
    """SC01: whether the worker is gone or the connection was, only a clear answer ends the doubt; nothing is sent."""
    sent: list[int] = []

    async def lookup(ctx: Context, payload: dict[str, object]) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    @app.action("act", lookup=lookup)
    async def act(ctx: Context, payload: dict[str, object]) -> None:
        sent.append(1)
        raise ConnectionError("cut")

    action = await app.schedule("act", {"thing_id": "t"}, at=NOON)
    if crashed:
        await die_after_claiming(app, "act")
        clock.advance(timedelta(minutes=1))
    await app.tick()
    found = await app.get(action.id)
    assert (found.status, found.reason, found.provider_id) == (status, reason, provider_id)
    assert (found.attempt_count, len(sent)) == (1, 0 if crashed else 1)


async def test_no_more_runs_are_asked_about_at_once_than_the_type_allows(app: Postdate, clock: ManualClock) -> None:
    asked: list[int] = []

    async def lookup(ctx: Context, payload: dict[str, object]) -> Published:
        asked.append(1)
        return Published()

    @app.action("act", lookup=lookup, concurrency=2)
    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    for _ in range(3):
        await app.schedule("act", {}, at=NOON)
    await die_after_claiming(app, "act")
    clock.advance(timedelta(minutes=1))
    assert [(await app.tick()).recovered for _ in range(3)] == [2, 1, 0]
    assert len(asked) == 3


async def test_whoever_asks_the_provider_knows_when_the_lost_run_was_claimed(app: Postdate, clock: ManualClock) -> None:
    """A look-up that asks for what went out since then would find nothing, and the action would be sent once more."""
    seen: list[datetime | None] = []

    async def lookup(ctx: Context, payload: dict[str, object]) -> Unconfirmed:
        seen.append(ctx.action.submitted_at)
        return Unconfirmed("they cannot tell")

    @app.action("act", lookup=lookup)
    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    action = await app.schedule("act", {}, at=NOON)
    await die_after_claiming(app, "act")
    clock.advance(timedelta(hours=1))
    await app.tick()
    assert [*seen, (await app.get(action.id)).submitted_at] == [NOON, NOON]


async def test_what_was_claimed_beside_what_cannot_be_read_is_handed_back(app: Postdate) -> None:
    """A row that makes no sense, past all checks: the others lose neither their attempt nor their turn."""
    ran: list[str] = []

    @app.action("act")
    async def act(ctx: Context, payload: dict[str, str]) -> None:
        ran.append(payload["thing_id"])

    made = [await app.schedule("act", {"thing_id": name}, at=NOON) for name in ("a", "b", "c")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("postdate.store.read_all.Rows.read", _refuse_the_second())
        with pytest.raises(OverflowError, match="out of range"):
            await app.tick()
    assert (ran, [(await app.get(each.id)).attempt_count for each in made]) == ([], [0, 0, 0])
    assert (await app.tick()).due_count == 3
    assert [(await app.get(each.id)).attempt_count for each in made] == [1, 1, 1]
    assert sorted(ran) == ["a", "b", "c"]


async def test_what_cannot_be_read_does_not_fill_the_history_of_what_is_claimed_beside_it(
    app: Postdate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine tries again and again: handed back once, then the claim is undone before anybody sees it."""

    @app.action("act")
    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    action = await app.schedule("act", {}, at=NOON)
    read, tried = Rows.read, count(1)
    times = 0

    def refuse(rows: Rows, row: Sequence[Any]) -> Sequence[Any]:
        nonlocal times
        times = next(tried)
        if times > 5:
            return read(rows, row)
        raise OverflowError("date value out of range")

    monkeypatch.setattr(Rows, "read", refuse)
    monkeypatch.setattr("postdate.engine.loop._PAUSE_AFTER_ERROR", 0.0)
    async with running(app):
        while (await app.get(action.id)).status is not Status.PUBLISHED:
            await asyncio.sleep(0)
    assert times == 6
    assert [event.cause for event in await app.history(action.id)].count("never_started") == 1
    assert (await app.get(action.id)).attempt_count == 1


def _refuse_the_second() -> Callable[[Rows, Sequence[Any]], Sequence[Any]]:
    read, times = Rows.read, count(1)

    def refuse(rows: Rows, row: Sequence[Any]) -> Sequence[Any]:
        if next(times) == 2:
            raise OverflowError("date value out of range")
        return read(rows, row)

    return refuse
