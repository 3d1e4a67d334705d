"""Is each due action run once, and none left behind, when several engines claim at once?"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from contextlib import AsyncExitStack, ExitStack
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from sqlalchemy import insert, null, update

from postdate import Context, NewAction, Postdate, Reason, Status
from postdate.clock import ManualClock
from tests.races.racing import A_WHILE, race
from tests.races.stage import LATER, NOON, POST, REJECTED, Stage, post, things

if TYPE_CHECKING:
    from tests.races.racing import Contender, Meeting

ROUNDS = 40
SLOTS = 10
PROCESSES, DUE, OWN = 8, 2000, 5


def claiming(stage: Stage, *, holds: int) -> Contender:
    """In each round claim up to `SLOTS`; in every second one wait to commit until the others have claimed."""

    def claim(number: int, meeting: Meeting) -> list[str]:
        claimed = stage.meet(meeting, lambda tx: stage.claim(tx, slots=SLOTS), holding=number % 2 == holds)
        return [str(one.action.payload["thing_id"]) for one in claimed]

    return claim


def test_two_claims_at_once_take_each_action_once_and_leave_none(stage: Stage) -> None:
    """P57, P60; SC50."""
    names = things(ROUNDS * SLOTS * 2)
    stage.schedule(names)
    results = race(stage.url, ROUNDS, claiming(stage, holds=0), claiming(stage, holds=1))
    assert Counter(thing for result in results for hand in result for thing in hand) == Counter(names)


def test_a_batch_with_duplicates_goes_on_without_them(stage: Stage) -> None:
    """SC16: each claim meets actions whose keys are taken by what went out, or may have."""
    names = things(ROUNDS * SLOTS * 2)
    taken = names[::3]
    before = stage.ended(taken, REJECTED)
    stage.schedule(names)
    with stage.app.kernel.transaction(None) as tx:  # as an import of history would, without the guard's leave
        o = tx.tables.outcomes
        went_out = o.c.action_id.in_([action.id for action in before[::2]])
        tx.execute(update(o).values(status=Status.PUBLISHED, reason=null()).where(went_out))
        tx.execute(update(o).values(reason=Reason.UNCONFIRMED).where(o.c.status == Status.FAILED))
    results = race(stage.url, ROUNDS, claiming(stage, holds=0), claiming(stage, holds=1))
    assert Counter(thing for result in results for hand in result for thing in hand) == Counter(set(names) - {*taken})
    cancelled = stage.app.sync.list(reason=Reason.DUPLICATE, limit=len(names))
    assert Counter(action.payload["thing_id"] for action in cancelled) == Counter(taken)
    stage.assert_sound()


async def test_engines_side_by_side_run_each_action_once(stage: Stage) -> None:
    """P60: on PostgreSQL with both drivers."""
    stage.schedule(names := things(600))
    urls = [stage.url, stage.url, stage.url.replace("+psycopg", "+asyncpg")]
    ran: Counter[str] = Counter()
    engines = [Postdate(url, clock=ManualClock(NOON)) for url in urls]
    for engine in engines:

        @engine.action(POST, concurrency=50)
        async def publish(_ctx: Context, payload: dict[str, str]) -> None:
            await asyncio.sleep(0)
            ran[payload["thing_id"]] += 1

    async with AsyncExitStack() as ending:
        for engine in engines:
            ending.push_async_callback(engine.close)
        reports = await asyncio.gather(*(engine.tick() for engine in engines))
    assert ran == Counter(names)
    assert sum(report.due_count for report in reports) == len(names)
    assert all(action.status is Status.PUBLISHED for action in stage.app.sync.list(limit=1000))


def test_eight_processes_on_one_sqlite_file_run_each_action_once_and_none_finds_it_locked(sqlite_stage: Stage) -> None:
    """SC50: while they drain the queue, each of them schedules actions of its own."""
    sqlite_stage.schedule(names := things(DUE))
    command = [sys.executable, "-m", "tests.races.draining", sqlite_stage.url, str(OWN)]
    with ExitStack() as running:
        processes = [
            running.enter_context(
                subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    cwd=Path(__file__).parents[2],
                )
            )
            for _ in range(PROCESSES)
        ]
        for process in processes:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        said = [process.communicate(timeout=A_WHILE)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * PROCESSES, said
    assert "locked" not in "".join(said)
    ran = Counter(thing for lines in said for thing in json.loads(lines.splitlines()[-1]))
    assert Counter(dict.fromkeys(names, 1)) <= ran
    assert set(ran.values()) == {1}
    assert ran.total() == DUE + PROCESSES * OWN
    sqlite_stage.assert_sound()


async def test_a_flood_of_one_type_does_not_hold_up_another(stage: Stage) -> None:
    """SC53: the quiet action comes due after 10 000 others, none of which ends before it has run."""
    app, stop, quiet_ran = stage.app, asyncio.Event(), asyncio.Event()

    @app.action("flood")
    async def flood(_ctx: Context, _payload: dict[str, object]) -> None:
        await quiet_ran.wait()

    @app.action("quiet")
    async def quiet(_ctx: Context, _payload: dict[str, object]) -> None:
        quiet_ran.set()
        stop.set()

    app.sync.schedule_many([NewAction(action_type="flood", payload={}, at=NOON - timedelta(hours=1))] * 10_000)
    app.sync.schedule("quiet", {}, at=NOON)
    async with AsyncExitStack() as ending:
        ending.push_async_callback(app.close)
        await asyncio.wait_for(app.run(stop), A_WHILE)
    assert quiet_ran.is_set()


def test_within_a_type_the_order_is_by_due_time_whoever_owns_it_so_a_flood_delays_others_by_its_length(
    stage: Stage,
) -> None:
    """P38; what SC53 asks for is promised between types alone."""
    owner = uuid4()
    with stage.app.kernel.transaction(None) as tx:
        tx.execute(insert(tx.tables.workspaces).values(id=owner, settings={}, created_at=NOON))
    flood = [post(f"flood-{n}", at=NOON - timedelta(hours=1)) for n in range(1000)]
    quiet = NewAction(action_type=POST, payload={}, at=NOON, workspace=owner)
    stage.app.sync.schedule_many([quiet, *flood])
    claims = []
    with stage.app.kernel.transaction(None) as tx:
        while claimed := stage.claim(tx, now=LATER):
            claims.append([one.action.workspace_id for one in claimed])
    assert claims == [[None] * 500, [None] * 500, [owner]]
