"""What becomes of runs whose process is stopped, killed, told to end, or stuck?"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select

from postdate import NewAction, Reason, Status
from postdate.store.time import database_time
from tests.endurance.conftest import SHOP, wait_for

if TYPE_CHECKING:
    from postdate import Action
    from tests.endurance.conftest import Shop
    from tests.surfaces.cli.program import Running

NOW = datetime(2020, 1, 1, tzinfo=UTC)
SHORT = {"POSTDATE_LEASE": "1", "POSTDATE_LEASE_MARGIN": "0"}


def wait_until_leases_are_over(shop: Shop) -> None:
    """Ask the database until every lease has run out."""

    def are_over() -> bool:
        with shop.app.kernel.transaction(None, read_only=True) as tx:
            q = tx.tables.queue
            return tx.execute(select(q.c.action_id).where(q.c.lease_until > database_time(tx))).first() is None

    wait_for(are_over)


def stop(shop: Shop, worker: Running) -> None:
    """Let the process stand still, but not while it keeps everybody from writing to a SQLite file."""
    file = shop.app.kernel.database.file

    def stands_still_with_the_file_free() -> bool:
        worker.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, worker.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)  # its threads go on for a moment
        if file is None:
            return True
        with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as connection:
            try:
                connection.execute("begin immediate")
            except sqlite3.OperationalError:
                worker.signal(signal.SIGCONT)
                return False
        return True

    wait_for(stands_still_with_the_file_free)


def lease_end(shop: Shop, action: Action) -> datetime:
    """Return when the lease of a running action ends."""
    with shop.app.kernel.transaction(None, read_only=True) as tx:
        q = tx.tables.queue
        end: datetime = tx.execute(select(q.c.lease_until).where(q.c.action_id == action.id)).scalar_one()
    return end


def active(shop: Shop) -> bool:
    """Whether anything is left to do."""
    with shop.app.kernel.transaction(None, read_only=True) as tx:
        return tx.execute(select(tx.tables.queue.c.action_id).limit(1)).first() is not None


async def recover(shop: Shop, *, count: int) -> None:
    """Settle so many lost leases, as another engine would."""
    wait_until_leases_are_over(shop)
    assert (await shop.app.tick(types=["slow"])).recovered == count
    await shop.app.close()


async def test_a_run_longer_than_its_lease_keeps_it_and_fires_once(shop: Shop) -> None:
    action = shop.app.sync.schedule("slow", {"thing_id": "t"}, at=NOW)
    worker = shop.working(**SHORT)
    worker.wait_for("slow")
    first = lease_end(shop, action)
    wait_for(lambda: lease_end(shop, action) > first + timedelta(seconds=2))
    assert (await shop.app.tick(types=["slow"])).recovered == 0
    shop.let_go()
    worker.signal(signal.SIGTERM)
    assert worker.ended() == 0
    await shop.app.close()
    found = shop.get(action)
    assert (found.status, found.provider_id, found.attempt_count) == (Status.PUBLISHED, "provider-1", 1)
    assert len(shop.calls) == 1


async def test_a_process_that_was_stopped_past_its_lease_changes_nothing_once_another_has_settled(shop: Shop) -> None:
    action = shop.app.sync.schedule("slow", {"thing_id": "t"}, at=NOW)
    worker = shop.working(**SHORT)
    worker.wait_for("slow")
    stop(shop, worker)
    await recover(shop, count=1)
    settled = shop.get(action)
    assert (settled.status, settled.reason) == (Status.FAILED, Reason.UNCONFIRMED)
    worker.signal(signal.SIGCONT)
    worker.wait_for("lost the lease before settling; nothing changed")  # it was cut off; nobody let it go
    worker.signal(signal.SIGTERM)
    assert worker.ended() == 0
    assert shop.get(action) == settled
    assert len(shop.calls) == 1


def test_a_process_that_was_stopped_past_its_lease_goes_on_where_nobody_has_settled(shop: Shop) -> None:
    action = shop.app.sync.schedule("slow", {"thing_id": "t"}, at=NOW)
    worker = shop.working(**SHORT)
    worker.wait_for("slow")
    stop(shop, worker)
    wait_until_leases_are_over(shop)
    worker.signal(signal.SIGCONT)
    shop.let_go()
    worker.signal(signal.SIGTERM)
    assert worker.ended() == 0
    assert shop.get(action).status is Status.PUBLISHED
    assert len(shop.calls) == 1


def test_after_a_kill_in_mid_call_each_types_policy_decides(shop: Shop) -> None:
    """In doubt; called again with the same key; or asked about, and nothing is sent."""
    names = ("slow", "repeatable", "answerable")
    actions = {name: shop.app.sync.schedule(name, {"thing_id": name}, at=NOW) for name in names}
    killed = shop.working(**SHORT)
    for _ in names:
        killed.wait_for(*names)
    killed.signal(signal.SIGKILL)
    assert killed.ended() == -signal.SIGKILL
    wait_until_leases_are_over(shop)
    shop.let_go()
    successor = shop.working(**SHORT)
    assert successor.wait_for("repeatable")["attempt"] == 2
    successor.signal(signal.SIGTERM)
    assert successor.ended() == 0
    found = {name: shop.get(action) for name, action in actions.items()}
    ends = {name: (one.status, one.reason, one.provider_id, one.attempt_count) for name, one in found.items()}
    assert ends == {
        "slow": (Status.FAILED, Reason.UNCONFIRMED, None, 1),
        "repeatable": (Status.PUBLISHED, None, "provider-1", 2),
        "answerable": (Status.PUBLISHED, None, "provider-2", 1),
    }
    words = sorted(call["word"] for call in shop.calls)
    assert words == ["answerable", "looked up", "repeatable", "repeatable", "slow"]


def test_sigterm_under_load_gives_back_the_attempts_of_what_can_end_in_time(shop: Shop) -> None:
    names = ("considerate", "considerate_in_a_thread")
    actions = [shop.app.sync.schedule(name, {"n": n}, at=NOW) for name in names for n in range(30)]
    worker = shop.working()
    for _ in range(40):  # of each type as many run as it allows
        worker.wait_for(*names)
    worker.signal(signal.SIGTERM)
    assert worker.ended() == 0
    found = [shop.get(action) for action in actions]
    assert {(one.status, one.attempt_count) for one in found} == {(Status.QUEUED, 0)}
    assert len(shop.calls) == 40


def test_a_handler_that_ignores_being_cut_off_does_not_hold_the_process(corner_shop: Shop) -> None:
    action = corner_shop.app.sync.schedule("deaf", {}, at=NOW)
    worker = corner_shop.working(POSTDATE_STOP_GRACE="0")
    worker.wait_for("deaf")
    worker.signal(signal.SIGTERM)
    assert worker.ended() == 0
    told = [json.loads(line)["event"] for line in worker.said]
    assert told[-3:] == [
        "a handler goes on although it was cut off: its run is settled without it",
        "stopped",
        "ending although handlers go on",
    ]
    found = corner_shop.get(action)
    assert (found.status, found.reason) == (Status.FAILED, Reason.UNCONFIRMED)
    assert "the handler did not end" in (found.last_error or "")


def test_a_stuck_process_says_where_and_ends_with_an_exit_code_of_its_own(corner_shop: Shop) -> None:
    corner_shop.app.sync.schedule("blocking", {}, at=NOW)
    worker = corner_shop.working(POSTDATE_STUCK_AFTER="1")
    told = worker.wait_for("the engine is stuck")
    assert "time.sleep(60)" in told["at"]
    assert worker.ended() == 9


@pytest.mark.timeout(300)  # the processes share what processors there are
def test_engines_side_by_side_drain_a_queue_and_call_each_action_once(shop: Shop) -> None:
    """Four on PostgreSQL, two on SQLite."""
    on_sqlite = shop.app.kernel.database.is_sqlite
    count, workers = (2_000, 2) if on_sqlite else (5_000, 4)
    things = [{"thing_id": str(number)} for number in range(count)]
    started = [shop.working() for _ in range(workers)]
    shop.app.sync.schedule_many([NewAction(action_type="shared", payload=thing, at=NOW) for thing in things])

    def is_empty() -> bool:
        assert [worker.said for worker in started if worker.process.poll() is not None] == []
        return not active(shop)

    wait_for(lambda: len({call["process"] for call in shop.calls}) == workers)
    shop.let_go()
    wait_for(is_empty, within=240)
    for worker in started:
        worker.signal(signal.SIGTERM)
    assert [worker.ended() for worker in started] == [0] * workers
    called = [call["action"] for call in shop.calls]
    assert len(called) == len(set(called)) == count


def test_a_single_pass_with_a_handler_that_does_not_end_ends_all_the_same(corner_shop: Shop) -> None:
    """Deaf to its time limit, or blocking for good: cron must not pile processes up."""
    deaf = corner_shop.app.sync.schedule("deaf_at_once", {}, at=NOW)
    corner_shop.app.sync.schedule("blocking_at_once", {}, at=NOW)
    ticking = corner_shop.program.start("tick", SHOP, "--types", "deaf_at_once")
    settings = {"POSTDATE_STUCK_AFTER": "0.5"}
    stuck = corner_shop.program.start("tick", SHOP, "--types", "blocking_at_once", settings=settings)
    assert (stuck.ended(), ticking.ended()) == (9, 0)
    found = corner_shop.get(deaf)
    assert (found.status, found.reason) == (Status.FAILED, Reason.UNCONFIRMED)
