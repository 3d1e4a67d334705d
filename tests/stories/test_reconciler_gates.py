"""Does the reconciler never bring back what has ended, nor take away what must stay? And do these tests notice?

Each famous failure is told twice: once with the gate, and once with the gate taken out, when it happens.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import delete, false, text

from postdate import Kept, Parent, Reason, Rejected, Skipped, Status
from postdate.domain import reconcile as domain
from postdate.engine import fulfil
from postdate.store import actions as stored_actions
from tests.stories.upstream import A_MINUTE, A_SECOND, LATER, SOURCE, TYPE, Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from postdate import Context

TWO_MINUTES = timedelta(minutes=2)


@pytest.fixture
async def stage(database_url: str) -> AsyncIterator[Stage]:
    async with Stage.on(database_url) as stage:
        yield stage


@pytest.fixture
async def sqlite_stage(sqlite_url: str) -> AsyncIterator[Stage]:
    """What is decided in Python fails on every database alike where it is taken out."""
    async with Stage.on(sqlite_url) as stage:
        yield stage


def without_the_terminal_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fulfil, "terminal_keys", lambda _tx, _keys: set())


def without_the_publish_guard(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take it out of the insert, of the claim's second look and of the database."""
    monkeypatch.setattr(stored_actions, "_guarding", lambda _outcomes: false())
    with stage.app.kernel.transaction(None) as tx:
        tx.execute(text("drop trigger queue_guard"))
        tx.tables.statements.clear()


@contextmanager
def statements_forgotten(stage: Stage) -> Iterator[None]:
    """Let nobody else use the statements that were built meanwhile: they are kept for the whole process."""
    try:
        yield
    finally:
        with stage.app.kernel.transaction(None) as tx:
            tx.tables.statements.clear()


# --- what has ended ------------------------------------------------------------------------------------


async def triple_publish(stage: Stage) -> int:
    """Let upstream go on to say that a post should be scheduled, and return how often it went out."""
    stage.approve("post-1")
    for _ in range(3):
        await stage.reconcile(after=timedelta(hours=1))
        await stage.app.tick()
    assert {each.status for each in await stage.all_of("post-1")} == {Status.PUBLISHED}
    return len(stage.ran)


async def test_what_was_published_is_not_published_three_times(stage: Stage) -> None:
    """P51."""
    assert await triple_publish(stage) == 1


@pytest.mark.parametrize(
    ("gate", "guard", "published"),
    [(False, True, 1), (True, False, 1), (False, False, 3)],
    ids=["guard alone", "gate alone", "neither"],
)
async def test_the_gate_or_the_guard_would_do_and_without_both_it_is_published_three_times(
    sqlite_stage: Stage, monkeypatch: pytest.MonkeyPatch, gate: bool, guard: bool, published: int
) -> None:
    """P51."""
    with statements_forgotten(sqlite_stage):
        if not gate:
            without_the_terminal_gate(monkeypatch)
        if not guard:
            without_the_publish_guard(sqlite_stage, monkeypatch)
        assert await triple_publish(sqlite_stage) == published


async def test_ten_passes_over_what_was_published_insert_nothing_and_a_late_run_is_skipped(stage: Stage) -> None:
    """SC19."""
    stage.approve("post-1", stage.clock.now())
    await stage.reconcile()
    await stage.app.tick()
    before = stage.rows()
    for _ in range(10):
        part = await stage.reconcile(after=A_MINUTE)
        assert (part.inserted, part.kept) == (0, {Kept.TERMINAL: 1})
    assert {**stage.rows(), "passes": []} == {**before, "passes": []}
    # then the target is deleted while another of its posts is due: its handler finds that it need not go out
    stage.answer = skipped
    stage.approve("post-2", stage.clock.now())
    await stage.reconcile()
    stage.unapprove("post-2", None)
    await stage.app.tick()
    for _ in range(3):
        await stage.reconcile(after=timedelta(hours=1))
        await stage.app.tick()
    (late,) = await stage.all_of("post-2")
    assert (late.status, late.reason, late.attempt_count) == (Status.CANCELLED, Reason.SKIPPED, 1)
    assert stage.ran == ["post-1"]


def skipped(_ctx: Context) -> object:
    raise Skipped("the target is gone")


def rejected(_ctx: Context) -> object:
    raise Rejected("no")


def unclear(_ctx: Context) -> object:
    raise ConnectionResetError


ENDINGS: dict[str, tuple[Callable[[Context], object], Status, Reason | None]] = {
    "published": (lambda _ctx: None, Status.PUBLISHED, None),
    "rejected": (rejected, Status.FAILED, Reason.REJECTED),
    "unconfirmed": (unclear, Status.FAILED, Reason.UNCONFIRMED),
    "skipped": (skipped, Status.CANCELLED, Reason.SKIPPED),
}


async def test_whatever_ended_under_a_key_bars_it_also_after_retention(stage: Stage) -> None:
    """P48, P49, P50: retention drops what was asked, and keeps what happened."""
    for ending in ENDINGS:
        stage.approve(ending, stage.clock.now())
    stage.answer = lambda ctx: ENDINGS[str(ctx.action.thing_id)][0](ctx)
    await stage.reconcile()
    await stage.app.tick()
    for ending, (_, status, reason) in ENDINGS.items():
        (ended,) = await stage.all_of(ending)
        assert (ended.status, ended.reason) == (status, reason)
        stage.approve(ending)
    part = await stage.reconcile(after=TWO_MINUTES)
    assert (part.inserted, part.clashed, part.kept) == (0, 0, {Kept.TERMINAL: len(ENDINGS)})
    with stage.app.kernel.transaction(None) as tx:
        tx.execute(delete(tx.tables.actions))
    part = await stage.reconcile(after=TWO_MINUTES)
    assert (part.inserted, part.clashed, part.kept) == (0, 0, {Kept.TERMINAL: len(ENDINGS)})
    assert await stage.app.list() == []


async def went_out_after_a_persons_cancel(stage: Stage) -> list[str]:
    """Let upstream go on, and change its mind about the time, after a person has cancelled."""
    stage.approve("post-1")
    await stage.reconcile()
    await stage.app.cancel((await stage.only("post-1")).id, actor="ana")
    for at in (LATER, LATER + A_MINUTE):
        stage.approve("post-1", at)
        await stage.reconcile(after=A_MINUTE)
    stage.clock.move_to(LATER + timedelta(hours=1))
    await stage.app.tick()
    return stage.ran


async def test_what_a_person_cancelled_stays_cancelled(stage: Stage) -> None:
    """P-i8: whatever upstream says afterwards, until a person schedules it."""
    assert await went_out_after_a_persons_cancel(stage) == []


async def test_without_the_gate_what_a_person_cancelled_goes_out(
    sqlite_stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_the_terminal_gate(monkeypatch)
    assert await went_out_after_a_persons_cancel(sqlite_stage) == ["post-1"]


async def test_what_a_person_schedules_after_cancelling_it_is_left_to_them(stage: Stage) -> None:
    """P52: what has ended is looked at first."""
    stage.approve("post-1")
    await stage.reconcile()
    await stage.app.cancel((await stage.only("post-1")).id)
    theirs = await stage.app.schedule(
        TYPE, {"thing_id": "post-1"}, at=LATER + A_MINUTE, workspace=stage.workspace, actor="ana"
    )
    assert (await stage.reconcile(after=TWO_MINUTES)).kept == {Kept.TERMINAL: 1}
    stage.unapprove("post-1")
    await stage.reconcile(after=TWO_MINUTES)
    assert (await stage.only("post-1")).id == theirs.id


# --- what is withdrawn, and what is not ----------------------------------------------------------------


async def withdrawn_after(stage: Stage, *ages: timedelta) -> list[int]:
    """Return how many were withdrawn in a pass at each of these ages of the one that nobody wants."""
    stage.approve("post-1")
    await stage.reconcile()
    stage.unapprove("post-1")
    began = stage.clock.now()
    return [(await stage.reconcile(after=began + age - stage.clock.now())).withdrawn for age in ages]


async def test_what_was_scheduled_less_than_two_minutes_ago_is_not_withdrawn(stage: Stage) -> None:
    """P53, P-T11."""
    assert await withdrawn_after(stage, timedelta(seconds=119), timedelta(seconds=121)) == [0, 1]
    (gone,) = await stage.all_of("post-1")
    assert (gone.status, gone.reason) == (Status.CANCELLED, Reason.ORPHANED)
    last = (await stage.app.history(gone.id))[-1]
    assert (last.cause, last.actor) == ("withdraw", f"reconciler:{SOURCE}")


async def test_without_the_gate_it_is_withdrawn_at_once(sqlite_stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain, "YOUNG", timedelta(0))
    assert await withdrawn_after(sqlite_stage, timedelta(seconds=119), timedelta(seconds=121)) == [1, 0]


async def statuses_under_a_finished_thing(stage: Stage) -> list[Status]:
    """Let a person retry one post and post another once more, when upstream is done with both; they have to wait."""
    stage.answer = lambda ctx: rejected(ctx) if ctx.action.thing_id == "failed" else None
    for thing in ("failed", "went out"):
        stage.approve(thing, stage.clock.now())
    await stage.reconcile()
    await stage.app.tick()
    for thing in ("failed", "went out"):
        stage.unapprove(thing, Parent.FINISHED)
    await stage.app.pause(workspace=stage.workspace)
    asked_for = [
        await stage.app.retry((await stage.all_of("failed"))[0].id, actor="ana"),
        await stage.app.post_now((await stage.all_of("went out"))[0].id, actor="ana"),
    ]
    await stage.reconcile(after=10 * A_MINUTE)
    return [(await stage.app.get(each.id)).status for each in asked_for]


async def test_what_a_person_asked_for_under_a_thing_that_is_done_stays(stage: Stage) -> None:
    """P54."""
    assert await statuses_under_a_finished_thing(stage) == [Status.QUEUED, Status.QUEUED]


async def test_without_the_gate_what_a_person_asked_for_is_withdrawn(
    sqlite_stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nobody_knows(_thing_ids: object) -> dict[str, Parent]:
        return {}

    monkeypatch.setattr(sqlite_stage.upstream, "parents", nobody_knows)
    assert await statuses_under_a_finished_thing(sqlite_stage) == [Status.CANCELLED, Status.CANCELLED]


async def test_what_was_posted_once_more_waits_while_the_rest_of_its_thing_is_open(stage: Stage) -> None:
    """Its other targets are still to come, so upstream does not call the post finished."""
    stage.approve("post-1", stage.clock.now(), target="instagram")
    await stage.reconcile()
    await stage.app.tick()
    (ended,) = await stage.all_of("post-1")
    await stage.app.pause(workspace=stage.workspace)
    again = await stage.app.post_now(ended.id)
    part = await stage.reconcile(after=10 * A_MINUTE)
    assert part.kept == {Kept.TERMINAL: 1, Kept.POSTED_AGAIN: 1}
    stage.unapprove("post-1", None)
    assert (await stage.reconcile(after=A_MINUTE)).withdrawn == 1, "but not once the post was deleted"
    assert (await stage.app.get(again.id)).reason is Reason.ORPHANED


async def test_parents_are_asked_for_where_something_would_go_and_nowhere_else(stage: Stage) -> None:
    for thing in ("stays", "goes", "young"):
        stage.approve(thing)
        await stage.reconcile(after=A_MINUTE)
    stage.unapprove("goes")
    stage.unapprove("young")
    await stage.reconcile(after=A_SECOND)
    assert stage.upstream.asked_about == []
    await stage.reconcile(after=A_MINUTE)
    assert stage.upstream.asked_about == ["goes"]


async def test_what_is_running_is_neither_moved_nor_withdrawn(stage: Stage) -> None:
    """It ends as its run does; what upstream says meanwhile comes too late."""
    kept: list[object] = []

    both, looked = asyncio.Event(), asyncio.Event()

    async def run(_ctx: Context) -> None:
        if not both.is_set():
            both.set()
            await looked.wait()
            return
        stage.approve("moved", LATER)
        stage.unapprove("gone")
        kept.append((await stage.reconcile()).kept)
        looked.set()

    stage.answer = run
    for thing in ("moved", "gone"):
        stage.approve(thing, stage.clock.now())
    await stage.reconcile()
    await stage.app.tick()
    assert sorted(stage.ran) == ["gone", "moved"]
    assert kept == [{Kept.CLAIMED: 2}]
    assert {each.status for each in await stage.app.list()} == {Status.PUBLISHED}
