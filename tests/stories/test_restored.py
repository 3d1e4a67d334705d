"""Does a backup that was put back send again what went out since it was made?"""

from __future__ import annotations

import asyncio
import shutil
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from sqlalchemy import make_url, text, update
from structlog.testing import capture_logs

from postdate import Action, Context, InvalidInstant, NotHeld, Postdate, Reason, Settings, Status
from postdate.clock import ManualClock
from postdate.store.heartbeat import database_identity, heartbeat
from postdate.testing.postgres import create_database, drop_database
from tests.stories.conftest import NOON, running, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from postdate.store.heartbeat import Heartbeat

A_DAY = timedelta(days=1)
A_MINUTE = timedelta(minutes=1)


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock that counts like a real one, of which a long gap tells."""
    return ManualClock(NOON, leaps=False)


@pytest.fixture
def ran(app: Postdate) -> list[str]:
    return registered(app)


def registered(app: Postdate) -> list[str]:
    said: list[str] = []

    @app.action("mail", idempotent=True)
    async def mail(ctx: Context, payload: dict[str, str]) -> None:
        said.append(payload["thing_id"])

    return said


async def schedule(app: Postdate, thing: str, *, at: datetime = NOON) -> Action:
    return await app.schedule("mail", {"thing_id": thing}, at=at)


def beats(app: Postdate) -> Heartbeat:
    with app.kernel.transaction(None, read_only=True) as tx:
        return heartbeat(tx)


def last_tick(app: Postdate, at: datetime) -> None:
    """Let the last tick have been at `at`."""
    with app.kernel.transaction(None) as tx:
        tx.execute(update(tx.tables.heartbeat).values(last_tick_at=at))


async def test_nothing_is_claimed_or_recovered_until_a_person_has_released_it(
    app: Postdate, clock: ManualClock, ran: list[str]
) -> None:
    await app.tick()
    lost = await schedule(app, "lost")
    clock.advance(A_DAY + A_MINUTE)
    waiting = await schedule(app, "waiting")
    with app.kernel.transaction(None) as tx:  # as a worker that vanished had left it
        q = tx.tables.queue
        lease = {"lease_token": uuid4(), "lease_until": NOON, "claimed_by": "gone"}
        tx.execute(
            update(q)
            .where(q.c.action_id == lost.id)
            .values(submitted_at=NOON, started_at=NOON, attempt_count=1, **lease)
        )
    with capture_logs() as logs:
        for _ in range(2):
            report = await app.tick()
            assert (report.held, report.due_count, report.recovered) == (True, 0, 0)
            clock.advance(A_MINUTE)
    assert [entry["log_level"] for entry in logs if "postdate release" in entry["event"]] == ["error"] * 2
    assert [(await app.get(each.id)).status for each in (lost, waiting)] == [Status.SUBMITTED, Status.QUEUED]
    hold = await app.held()
    assert hold is not None
    assert hold.last_tick_at == NOON
    assert "1 day, 0:01:00 ago" in hold.because
    assert [(due.action_type, due.count, due.since) for due in hold.due] == [("mail", 1, NOON)]
    released = await app.release(actor="ana", note="it was only the holidays")
    assert (released.cancelled, await app.held()) == (0, None)
    report = await app.tick()
    assert (report.held, report.recovered) == (False, 1)
    assert ran == ["waiting"]
    kept = beats(app)
    assert (kept.released_by, kept.release_note) == ("ana", "it was only the holidays")
    with pytest.raises(NotHeld):
        await app.release()


async def test_a_shorter_absence_and_a_new_database_hold_nothing(
    app: Postdate, clock: ManualClock, ran: list[str]
) -> None:
    await schedule(app, "first")
    assert not (await app.tick()).held
    clock.advance(A_DAY)
    await schedule(app, "second")
    assert not (await app.tick()).held
    assert ran == ["first", "second"]
    assert beats(app).last_tick_at == NOON + A_DAY


async def test_a_setting_says_how_long_an_absence_may_be(database_url: str, clock: ManualClock) -> None:
    held = []
    for restore_hold in (timedelta(0), timedelta(hours=1), timedelta(days=3)):
        app = Postdate(database_url, settings=Settings(restore_hold=restore_hold), clock=clock)
        last_tick(app, NOON - 2 * A_DAY)
        held.append((await app.tick()).held)
        if await app.held():
            await app.release()
        await app.close()
    assert held == [False, True, False]


async def test_a_clock_that_a_test_moves_neither_holds_nor_leaves_a_trace(
    app: Postdate, database_url: str, clock: ManualClock
) -> None:
    await app.tick()
    clock.advance(9 * A_DAY)
    other = Postdate(database_url, clock=ManualClock(clock.now()))
    assert not (await other.tick()).held
    assert beats(app).last_tick_at == NOON
    await other.close()


async def test_what_was_due_before_an_instant_can_be_cancelled_with_the_release(
    app: Postdate, clock: ManualClock
) -> None:
    told: list[tuple[str | None, Status]] = []

    def settled(_connection: Connection, actions: Sequence[Action]) -> None:
        told.extend((action.thing_id, action.status) for action in actions)

    @app.action("mail", settled=settled)
    async def mail(ctx: Context, payload: dict[str, str]) -> None: ...

    await app.tick()
    old, new = await schedule(app, "old"), await schedule(app, "new", at=NOON + A_DAY)
    clock.advance(2 * A_DAY)
    await app.tick()
    with pytest.raises(InvalidInstant):
        await app.release(cancel_due_before="yesterday")
    released = await app.release(cancel_due_before=NOON + A_DAY, actor="ana", note="these went out")
    assert released.cancelled == 1
    assert told == [("old", Status.CANCELLED)]
    await app.tick()
    found = await app.get(old.id)
    assert (found.status, found.reason) == (Status.CANCELLED, Reason.USER)
    event = (await app.history(old.id))[-1]
    assert (event.actor, event.detail["note"]) == ("ana", "these went out")
    assert (await app.get(new.id)).status is Status.PUBLISHED


@pytest.fixture
def backup(database_url: str, app: Postdate) -> Iterator[Callable[[], str]]:
    """Return what makes a backup that is a database of its own, and returns its URL."""
    url = make_url(database_url)
    if url.drivername == "sqlite":

        def copied() -> str:
            with app.kernel.transaction(None) as tx:  # all that is in the journal is in the file
                tx.connection.exec_driver_sql("select 1")
            app.kernel.database.close_sync()
            copy = Path(f"{url.database}.backup")
            shutil.copyfile(str(url.database), copy)
            return f"sqlite:///{copy}"

        yield copied
        return
    name, admin_url = f"backup_{uuid4().hex}", url.set(database="postgres").render_as_string(hide_password=False)

    def templated() -> str:
        app.kernel.database.close_sync()
        return create_database(admin_url, name, template=url.database)

    yield templated
    drop_database(admin_url, name)


async def test_an_old_backup_does_not_send_again_what_went_out_since(
    app: Postdate, clock: ManualClock, ran: list[str], backup: Callable[[], str], database_url: str
) -> None:
    """PostgreSQL tells at once that it is another database; a file of SQLite's tells by its age alone."""
    await app.tick()
    await schedule(app, "news", at=NOON + A_MINUTE)
    await app.close()
    copy = await asyncio.to_thread(backup)
    clock.advance(A_MINUTE)
    await app.tick()
    assert ran == ["news"]
    clock.advance(timedelta(minutes=15) if "postgres" in database_url else A_DAY)
    restored = Postdate(copy, clock=clock)
    sent_again = registered(restored)
    for _ in range(2):
        assert (await restored.tick()).held
        clock.advance(A_MINUTE)
    assert sent_again == []
    await restored.release(cancel_due_before=clock.now())
    await restored.tick()
    assert sent_again == []
    await restored.close()


async def test_an_engine_whose_database_is_put_back_under_it_claims_nothing_more(
    app: Postdate, clock: ManualClock, ran: list[str]
) -> None:
    async with app._engine(None) as engine:
        assert not (await engine.run_once(clock.now())).held
        clock.advance(3 * A_DAY)  # suspended, with its database as it left it
        assert not (await engine.run_once(clock.now())).held
        last_tick(app, clock.now() - timedelta(hours=1))
        await schedule(app, "again")
        assert await engine._rounds.claim_all(seen=engine._restore_watch.seen) == 0, "before the next tick, too"
        assert (await engine.run_once(clock.now())).held
    assert "has lost what was written to it" in str(beats(app).held_because)
    assert ran == []


async def test_a_running_engine_goes_on_as_soon_as_it_is_released(live: Postdate, database_url: str) -> None:
    ran, elsewhere = registered(live), Postdate(database_url)
    now = await live.kernel.read_clock()
    last_tick(live, now - 2 * A_DAY)
    await schedule(live, "due", at=now)
    async with running(live):
        await until(lambda: beats(live).held_at is not None)
        await asyncio.to_thread(elsewhere.sync.release)
        await until(lambda: ran == ["due"])
    await elsewhere.close()


def test_postgresql_tells_who_it_is_to_a_role_without_privileges(postgres_url: str) -> None:
    app, role = Postdate(postgres_url), f"reader_{uuid4().hex}"
    with app.kernel.transaction(None) as tx:
        before = str(database_identity(tx))
        system, timeline, oid = before.split("/")
        assert int(system) > 0
        assert int(timeline, 16) >= 1
        assert int(oid) > 0
        tx.execute(text(f"create role {role}"))
        tx.execute(text(f"set local role {role}"))
        assert database_identity(tx) == before
        tx.execute(text("reset role"))
        tx.execute(text("revoke execute on function pg_control_system() from public"))
        tx.execute(text(f"set local role {role}"))
        assert database_identity(tx) == f"?/{timeline}/{oid}"
        tx.connection.rollback()
    app.kernel.database.close_sync()
