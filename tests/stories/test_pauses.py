"""What stops when a workspace or an action type is paused, and what comes of it afterwards?"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from sqlalchemy import event

from postdate import (
    Action,
    Context,
    Invalid,
    NewAction,
    NotPaused,
    NotSent,
    OwnerNotFound,
    Pause,
    Postdate,
    Reason,
    Status,
)
from postdate.engine.claim import Claimer, ClaimRound, claim_round
from postdate.testing.factories import make_workspace
from tests.stories.conftest import NOON, running, until

if TYPE_CHECKING:
    from uuid import UUID

    from postdate.clock import ManualClock

A_MINUTE = timedelta(minutes=1)
SOMEBODY_ELSE = "0193e000-0000-7000-8000-000000000000"


@pytest.fixture
def ran(app: Postdate) -> list[str]:
    """Register two types that say what they ran, and return what they said."""
    said: list[str] = []

    async def act(ctx: Context, payload: dict[str, str]) -> None:
        said.append(payload["text"])

    app.action("mail")(act)
    app.action("text")(act)
    return said


async def schedule(
    app: Postdate, text: str, *, action_type: str = "mail", workspace: UUID | None = None, late: int = 0
) -> Action:
    return await app.schedule(action_type, {"text": text}, at=NOON + late * A_MINUTE, workspace=workspace)


async def test_of_a_paused_workspace_nothing_starts_and_after_resume_everything_does_in_its_order(
    app: Postdate, ran: list[str]
) -> None:
    paused, other = make_workspace(app), make_workspace(app)
    for text in ("first", "second", "third"):
        await schedule(app, text, workspace=paused)
    await schedule(app, "theirs", workspace=other)
    await schedule(app, "nobody's")
    await app.pause(workspace=paused, actor="ana", note="a crisis")
    await app.tick()
    assert sorted(ran) == ["nobody's", "theirs"]
    waiting = await app.list(workspace=paused)
    assert [(each.status, each.attempt_count, each.paused) for each in waiting] == [(Status.QUEUED, 0, True)] * 3
    ran.clear()
    await app.resume(workspace=paused)
    assert not any(each.paused for each in await app.list(workspace=paused))
    await app.tick()
    assert ran == ["first", "second", "third"]


async def test_of_a_paused_type_nothing_starts_whosever_it_is(app: Postdate, ran: list[str]) -> None:
    held = await schedule(app, "mail", workspace=make_workspace(app))
    await schedule(app, "text", action_type="text")
    await app.pause(action_type="mail")
    assert (await app.tick()).due_count == 1
    assert ran == ["text"]
    assert (await app.get(held.id)).paused
    await app.resume(action_type="mail")
    await app.tick()
    assert ran == ["text", "mail"]


async def test_one_type_of_one_workspace_can_be_paused(app: Postdate, ran: list[str]) -> None:
    workspace, other = make_workspace(app), make_workspace(app)
    await schedule(app, "held", workspace=workspace)
    await schedule(app, "text", action_type="text", workspace=workspace)
    await schedule(app, "other", workspace=other)
    await app.pause(workspace=workspace, action_type="mail")
    await app.tick()
    assert sorted(ran) == ["other", "text"]
    with pytest.raises(NotPaused):
        await app.resume(workspace=workspace)
    await app.resume(workspace=workspace, action_type="mail")
    await app.tick()
    assert ran[-1] == "held"


@pytest.mark.parametrize("first_ended", [0, 1, 2])
async def test_what_two_pauses_stop_waits_for_the_end_of_both(app: Postdate, ran: list[str], first_ended: int) -> None:
    workspace = make_workspace(app)
    await schedule(app, "held", workspace=workspace)
    scopes: list[dict[str, Any]] = [
        {"workspace": workspace},
        {"workspace": workspace, "action_type": "mail"},
        {"action_type": "mail"},
    ]
    await app.pause(workspace=workspace)
    await app.tick()  # holds it
    for scope in scopes[1:]:
        await app.pause(**scope)
    for number in range(3):
        assert ran == []
        await app.resume(**scopes[(first_ended + number) % 3])
        await app.tick()
    assert ran == ["held"]


async def test_a_pause_says_who_began_and_ended_it_and_why(app: Postdate, ran: list[str], clock: ManualClock) -> None:
    begun = await app.pause(action_type="mail", actor="ana", note="the provider is down")
    clock.advance(A_MINUTE)
    assert await app.pause(action_type="mail", actor="bo", note="again") == begun, "the one that there is"
    assert await app.paused() == [begun]
    assert (begun.paused_at, begun.paused_by, begun.note) == (NOON, "ana", "the provider is down")
    ended = await app.resume(action_type="mail", actor="bo", note="it is back")
    assert (ended.id, ended.paused_by, ended.note) == (begun.id, "ana", "the provider is down")
    assert (ended.ended_at, ended.ended_by, ended.ended_note) == (NOON + A_MINUTE, "bo", "it is back")
    assert await app.paused() == []
    assert await app.ended_pauses() == [ended]


async def test_a_pause_has_to_be_about_something_that_exists(app: Postdate) -> None:
    with pytest.raises(Invalid, match="say what the pause is about"):
        await app.pause()
    with pytest.raises(OwnerNotFound):
        await app.pause(workspace=SOMEBODY_ELSE)
    with pytest.raises(NotPaused, match="no pause of every action type in workspace"):
        await app.resume(workspace=SOMEBODY_ELSE)


async def test_what_expires_while_it_is_held_does_not_go_out(app: Postdate, ran: list[str], clock: ManualClock) -> None:
    workspace = make_workspace(app)
    held = await app.schedule("mail", {"text": "stale"}, at=NOON, expires_at=NOON + A_MINUTE, workspace=workspace)
    await app.pause(workspace=workspace)
    await app.tick()
    clock.advance(2 * A_MINUTE)
    await app.tick()
    assert (await app.get(held.id)).status is Status.QUEUED
    await app.resume(workspace=workspace)
    await app.tick()
    found = await app.get(held.id)
    assert (found.status, found.reason, found.attempt_count) == (Status.FAILED, Reason.EXPIRED, 0)
    assert ran == []


async def test_what_runs_when_the_pause_begins_goes_on_and_its_next_attempt_waits(
    app: Postdate, clock: ManualClock
) -> None:
    workspace, begun, finish = make_workspace(app), asyncio.Event(), asyncio.Event()
    runs: list[int] = []

    @app.action("slow")
    async def slow(ctx: Context, payload: dict[str, str]) -> None:
        runs.append(ctx.attempt)
        begun.set()
        await finish.wait()
        if ctx.attempt == 1:
            raise NotSent("busy")

    action = await schedule(app, "long", action_type="slow", workspace=workspace)
    tick = asyncio.create_task(app.tick())
    await asyncio.wait_for(begun.wait(), 20)
    await app.pause(workspace=workspace)
    finish.set()
    await tick
    clock.advance(timedelta(hours=1))
    await app.tick()
    found = await app.get(action.id)
    assert (found.status, found.attempt_count, found.paused) == (Status.QUEUED, 1, True)
    await app.resume(workspace=workspace)
    await app.tick()
    assert runs == [1, 2]
    assert (await app.get(action.id)).status is Status.PUBLISHED


async def test_held_actions_are_cancelled_moved_and_posted_like_any_others(app: Postdate, ran: list[str]) -> None:
    workspace = make_workspace(app)
    unwanted, moved, urgent = [await schedule(app, text, workspace=workspace) for text in ("no", "later", "now")]
    await app.pause(workspace=workspace)
    await app.tick()
    assert (await app.cancel(unwanted.id)).status is Status.CANCELLED
    later = await app.reschedule(moved.id, at=NOON + timedelta(days=1))
    now = await app.post_now(urgent.id)
    await app.tick()
    assert ran == [], "the pause stops what takes their place, too"
    assert [(await app.get(each.id)).paused for each in (later, now)] == [True, True]
    await app.resume(workspace=workspace)
    await app.tick()
    assert ran == ["now"]


async def test_what_waits_behind_a_paused_workspace_is_not_held_up_by_its_crowd(app: Postdate, ran: list[str]) -> None:
    """However much is due there, it is met once: the claims go on behind it."""
    paused = make_workspace(app)
    crowd = [NewAction(action_type="mail", payload={"text": "held"}, at=NOON, workspace=paused)] * 300
    await app.schedule_many(crowd)
    await schedule(app, "behind")
    await app.pause(workspace=paused)
    assert (await app.tick()).due_count == 301
    assert ran == ["behind"]
    await schedule(app, "the next")
    assert (await app.tick()).due_count == 1
    assert ran == ["behind", "the next"]


def one_round(app: Postdate) -> tuple[ClaimRound, int]:
    """Claim with five slots, and count the statements that this took."""
    statements: list[str] = []

    def count(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    with app.kernel.transaction(None) as tx:
        event.listen(tx.connection, "before_cursor_execute", count)
        claimer = Claimer(worker="here", token=uuid4(), lease=A_MINUTE, margin=A_MINUTE)
        round_ = claim_round(tx, claimer, {"mail": 5}, {"mail": app.kernel.registry["mail"]}, now=NOON)
        event.remove(tx.connection, "before_cursor_execute", count)
    return round_, len(statements)


async def test_a_crowd_is_put_on_hold_by_the_first_claim_that_meets_it(app: Postdate, ran: list[str]) -> None:
    paused = make_workspace(app)
    await app.schedule_many([NewAction(action_type="mail", payload={"text": "held"}, at=NOON, workspace=paused)] * 300)
    await schedule(app, "behind")
    await app.pause(workspace=paused)
    met, _ = one_round(app)
    assert (met.held, len(met.runnable), met.due_count) == (300, 0, 300)
    following, _ = one_round(app)
    assert (following.held, [one.action.payload["text"] for one in following.runnable]) == (0, ["behind"])


async def test_pauses_cost_a_claim_one_statement(app: Postdate, ran: list[str]) -> None:
    assert one_round(app)[1] == 2, "beside the claim itself"
    await app.pause(workspace=make_workspace(app))
    await app.set_quiet_hours(make_workspace(app), "22:00-08:00", tz="UTC")
    assert one_round(app)[1] == 2, "whatever is paused or quiet"
    await app.pause(action_type="mail")
    assert one_round(app)[1] == 1, "of a paused type nothing is claimed at all"


async def test_deleting_a_workspace_ends_its_pauses(app: Postdate, ran: list[str]) -> None:
    workspace = make_workspace(app)
    await schedule(app, "held", workspace=workspace)
    await app.pause(workspace=workspace)
    await app.pause(workspace=workspace, action_type="mail")
    await app.resume(workspace=workspace, action_type="mail")
    await app.tick()
    with app.kernel.transaction(None) as tx:
        tx.execute(tx.tables.workspaces.delete().where(tx.tables.workspaces.c.id == workspace))
    assert (await app.paused(), await app.ended_pauses(), await app.list()) == ([], [], [])


async def test_an_engine_that_runs_hears_of_the_end_of_a_pause_at_once(live: Postdate, database_url: str) -> None:
    """Whether it is in this process, or in another one: no tick goes by."""
    said: list[str] = []

    @live.action("mail")
    async def mail(ctx: Context, payload: dict[str, str]) -> None:
        said.append(payload["text"])

    workspace, elsewhere = make_workspace(live), Postdate(database_url)
    now = await live.kernel.read_clock()
    await live.pause(workspace=workspace)
    await live.pause(action_type="mail")
    async with running(live):
        await live.schedule("mail", {"text": "held"}, at=now, workspace=workspace)
        await live.resume(action_type="mail")
        await live.schedule("mail", {"text": "other"}, at=now)
        await until(lambda: said == ["other"])
        await asyncio.to_thread(elsewhere.sync.resume, workspace=workspace)
        await until(lambda: said == ["other", "held"])
    await elsewhere.close()


async def test_a_pause_exists_if_and_only_if_the_callers_transaction_commits(app: Postdate, ran: list[str]) -> None:
    await schedule(app, "goes out")
    async with app.kernel.database.async_engine.connect() as connection:
        begun = await app.pause(action_type="mail", connection=connection)
        assert isinstance(begun, Pause)
        await connection.rollback()
    await app.tick()
    assert ran == ["goes out"]
