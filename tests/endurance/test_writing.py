"""Is what runs have come to written in the end, in bounded memory, whatever is refused or breaks?"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy.exc import ProgrammingError
from structlog.testing import capture_logs

from postdate import Context, EngineBroken, NewAction, OutcomesUnwritten, Postdate, Reason, Status
from postdate.clock import ManualClock
from postdate.engine import settler
from postdate.engine.rounds import Rounds
from postdate.engine.settle import settle_set
from postdate.engine.settler import Settler
from tests.endurance.conftest import running, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from postdate.engine.settle import EndingSet
    from postdate.store.transaction import Transaction

PAST = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Postdate]:
    app = Postdate(database_url)

    @app.action("act", concurrency=50)
    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    yield app
    await app.close()


async def scheduled(app: Postdate, count: int) -> list[UUID]:
    """Schedule so many actions that are due."""
    made = await app.schedule_many([NewAction(action_type="act", payload={"n": n}, at=PAST) for n in range(count)])
    return [one.id for one in made if not isinstance(one, Exception)]


async def test_a_database_that_does_not_keep_up_bounds_what_is_claimed(
    app: Postdate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While nothing can be written, no more is claimed than the bound and what was running; later all of it is."""
    bound, running_at_once = 100, 50
    monkeypatch.setattr(settler, "MOST_UNWRITTEN", bound)
    away, most = asyncio.Event(), 0
    write = Settler._write

    async def slow(self: Settler, left: Any) -> None:
        nonlocal most
        await away.wait()
        most = max(most, len(self.unwritten))
        await write(self, left)

    monkeypatch.setattr(Settler, "_write", slow)
    looked: list[int] = []
    claim_all = Rounds.claim_all

    async def noted(self: Rounds, *, seen: datetime | None) -> int:
        looked.append(await claim_all(self, seen=seen))
        return looked[-1]

    monkeypatch.setattr(Rounds, "claim_all", noted)
    await scheduled(app, 600)
    async with running(app):
        async with asyncio.timeout(60):
            while len(await app.list(status="submitted", limit=500)) < bound:
                await asyncio.sleep(0)
        for _ in range(5):  # each wakes the engine, which looks until there is nothing left that it may claim
            looks = len(looked)
            await app.schedule("act", {}, at=PAST)
            await until(lambda looks=looks: len(looked) > looks)  # type: ignore[misc]  # bound as it stands
        assert bound <= len(await app.list(status="submitted", limit=500)) <= bound + running_at_once
        away.set()
        async with asyncio.timeout(60):
            while len(await app.list(status="published", limit=1000)) < 605:
                await asyncio.sleep(0)
    assert bound <= most <= bound + running_at_once


class Refusing:
    """Settles all but one action, as a database would that has something against it."""

    def __init__(self, poisoned: UUID, error: Exception) -> None:
        self.poisoned = poisoned
        self.error = error
        self.times = 0

    def __call__(self, tx: Transaction, types: Any, ended: EndingSet, *, now: datetime) -> frozenset[UUID]:
        if any(ending.action_id == self.poisoned for ending in ended.endings):
            self.times += 1
            raise self.error
        return settle_set(tx, types, ended, now=now)


async def test_what_only_one_row_is_refused_for_holds_no_other_back_and_is_tried_again(
    app: Postdate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trigger of the host's, a right that is missing: all others are written at once, this one when it may be."""
    monkeypatch.setattr(settler, "_REFUSED_PAUSE", 0.01)
    poisoned, *others = await scheduled(app, 20)
    refusing = Refusing(poisoned, ProgrammingError("settle", {}, Exception("not before Monday")))
    monkeypatch.setattr(settler, "settle_set", refusing)
    with capture_logs() as logs:
        async with running(app):
            await until(lambda: refusing.times > 3)
            assert {(await app.get(action)).status for action in others} == {Status.PUBLISHED}
            assert (await app.get(poisoned)).status is Status.SUBMITTED
            monkeypatch.setattr(settler, "settle_set", settle_set)
    assert (await app.get(poisoned)).status is Status.PUBLISHED
    assert {log["log_level"] for log in logs if "refused" in log["event"]} == {"warning"}


async def test_what_is_refused_for_ever_is_given_up_and_shown_as_unconfirmed(
    app: Postdate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settler, "_REFUSED_PAUSE", 0.0)
    poisoned, *others = await scheduled(app, 5)
    monkeypatch.setattr(settler, "settle_set", Refusing(poisoned, LookupError("a bug")))
    with capture_logs() as logs:
        await app.tick()
    assert {(await app.get(action)).status for action in others} == {Status.PUBLISHED}
    assert (await app.get(poisoned)).status is Status.SUBMITTED
    errors = [log for log in logs if log["log_level"] == "error"]
    assert [(log["action"], log["error"]) for log in errors] == [(str(poisoned), "a bug")]
    later = app.on(app.settings.database_url, clock=ManualClock(app.kernel.clock.now() + timedelta(hours=1)))
    assert (await later.tick()).recovered == 1
    await later.close()
    found = await app.get(poisoned)
    assert (found.status, found.reason) == (Status.FAILED, Reason.UNCONFIRMED)


async def test_a_settler_that_dies_ends_the_engine_and_says_of_what(
    app: Postdate, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(self: Settler, batch: Any) -> None:
        raise LookupError("a bug")

    monkeypatch.setattr(Settler, "_write_surely", broken)
    (action,) = await scheduled(app, 1)
    with pytest.raises(EngineBroken, match="settler") as raised:
        await asyncio.wait_for(app.run(asyncio.Event()), 20)
    assert repr(raised.value.__cause__) == "LookupError('a bug')"
    assert (await app.get(action)).status is Status.SUBMITTED


async def test_a_settler_that_dies_fails_a_single_pass(app: Postdate, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: Settler, batch: Any) -> None:
        raise LookupError("a bug")

    monkeypatch.setattr(Settler, "_write_surely", broken)
    await scheduled(app, 1)
    with pytest.raises(EngineBroken):
        await asyncio.wait_for(app.tick(), 20)


async def test_a_single_pass_does_not_wait_for_ever_for_a_database_that_is_away(
    app: Postdate, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(self: Settler, left: Any) -> None:
        raise OSError("the database is away")

    monkeypatch.setattr(Settler, "_write", away)
    monkeypatch.setattr("postdate.engine.loop._WRITING_SECONDS_OF_A_TICK", 0.05)
    monkeypatch.setattr("postdate.engine.loop._WRITING_SECONDS", 0.05)
    await scheduled(app, 3)
    with pytest.raises(OutcomesUnwritten, match="3 outcomes"):
        await asyncio.wait_for(app.tick(), 20)


async def test_a_claim_whose_commit_nobody_heard_of_is_handed_back(
    app: Postdate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is lost when the server has committed: nothing of it ever ran, and nothing of it is in doubt."""
    ran: list[int] = []

    @app.action("counted")
    async def counted(ctx: Context, payload: dict[str, object]) -> None:
        ran.append(ctx.attempt)

    action = await app.schedule("counted", {}, at=PAST)
    lost: list[Any] = []
    work = app.kernel.work

    async def unheard(function: Any, *, read_only: bool = False) -> Any:
        answer = await work(function, read_only=read_only)
        if getattr(answer, "runnable", ()) and not lost:
            lost.append(answer)
            raise ConnectionResetError("lost after the commit")
        return answer

    monkeypatch.setattr(app.kernel, "work", unheard)
    monkeypatch.setattr("postdate.engine.loop._PAUSE_AFTER_ERROR", 0.0)
    with capture_logs() as logs:
        async with running(app):
            await until(lambda: ran)
    assert [log["actions"] for log in logs if "handed back" in log["event"]] == [1]
    assert ran == [1]
    found = await app.get(action.id)
    assert (found.status, found.reason, found.attempt_count) == (Status.PUBLISHED, None, 1)


async def test_it_is_handed_back_too_where_the_engine_stops_with_it(
    app: Postdate, monkeypatch: pytest.MonkeyPatch
) -> None:
    (action,) = await scheduled(app, 1)
    work = app.kernel.work

    async def unheard(function: Any, *, read_only: bool = False) -> Any:
        answer = await work(function, read_only=read_only)
        if getattr(answer, "runnable", ()):
            raise ConnectionResetError("lost after the commit")
        return answer

    monkeypatch.setattr(app.kernel, "work", unheard)
    with pytest.raises(ConnectionResetError):
        await app.tick()
    found = await app.get(action)
    assert (found.status, found.attempt_count) == (Status.QUEUED, 0)
    assert found.reason is not Reason.UNCONFIRMED
