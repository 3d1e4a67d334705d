"""What does the reconciler do where people, other sources and other processes are at it too?"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from sqlalchemy import insert

from postdate import (
    Desired,
    Kept,
    OverlapTaken,
    PassRunning,
    Postdate,
    Reason,
    Status,
)
from postdate.engine import fulfil
from postdate.engine.periodic import alone
from postdate.sources import Sources
from postdate.store.reconcile import terminal_keys
from tests.stories.upstream import A_MINUTE, LATER, SOURCE, TYPE, Stage, Upstream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from postdate.store.transaction import Transaction


@pytest.fixture
async def stage(database_url: str) -> AsyncIterator[Stage]:
    async with Stage.on(database_url) as stage:
        yield stage


async def test_a_clash_drops_only_its_row(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """P55: another hand schedules one of them between our look and our insert, and moves another one."""
    for thing in ("moved", "stays"):
        stage.approve(thing)
    await stage.reconcile()
    for thing in ("moved", "stays"):
        stage.approve(thing, LATER + A_MINUTE)
    for thing in ("new", "taken"):
        stage.approve(thing)
    moved, look = await stage.only("moved"), terminal_keys

    def meanwhile(tx: Transaction, keys: Any) -> set[str]:
        """Do it in this very transaction, which is how it looks from there once the other has committed."""
        found = look(tx, keys)
        monkeypatch.setattr(fulfil, "terminal_keys", look)
        verbs = stage.app.sync
        verbs.schedule(TYPE, {"thing_id": "taken"}, at=LATER, workspace=stage.workspace, connection=tx.connection)
        verbs.reschedule(moved.id, at=LATER + 2 * A_MINUTE, connection=tx.connection)
        return found

    monkeypatch.setattr(fulfil, "terminal_keys", meanwhile)
    part = await stage.reconcile()
    assert (part.inserted, part.replaced, part.clashed) == (1, 1, 2)
    found = {thing: (await stage.only(thing)) for thing in ("moved", "stays", "new", "taken")}
    assert [found[thing].origin for thing in ("new", "taken")] == ["reconciler", "api"]
    assert found["moved"].publish_at == LATER + 2 * A_MINUTE
    assert found["stays"].publish_at == LATER + A_MINUTE


async def test_what_a_person_cancels_between_two_looks_is_not_brought_back(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was scheduled by hand and cancelled after we looked: our insert gets in, sees what has ended, and goes."""
    stage.approve("a")
    stage.approve("b")
    look = terminal_keys

    def meanwhile(tx: Transaction, keys: Any) -> set[str]:
        found = look(tx, keys)
        monkeypatch.setattr(fulfil, "terminal_keys", look)
        verbs, ours = stage.app.sync, tx.connection
        made = verbs.schedule(TYPE, {"thing_id": "a"}, at=LATER, workspace=stage.workspace, connection=ours)
        verbs.cancel(made.id, connection=ours)
        return found

    monkeypatch.setattr(fulfil, "terminal_keys", meanwhile)
    part = await stage.reconcile()
    assert (part.inserted, part.clashed) == (1, 1)
    (cancelled,) = await stage.all_of("a")
    assert (cancelled.origin, cancelled.reason) == ("api", Reason.USER)


async def test_what_cannot_be_replaced_after_all_stays_as_it_was(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import brings what went out under its key long ago, after we looked: the guard lets nothing new in."""
    for thing in ("imported", "drifts"):
        stage.approve(thing)
    await stage.reconcile()
    old = await stage.only("imported")
    for thing in ("imported", "drifts"):
        stage.approve(thing, LATER + A_MINUTE)
    look = terminal_keys

    def meanwhile(tx: Transaction, keys: Any) -> set[str]:
        found = look(tx, keys)
        owners = {"workspace_id": old.workspace_id, "user_id": old.user_id}
        ended = {"status": Status.PUBLISHED, "attempt_count": 1, "finished_at": old.created_at}
        tx.execute(insert(tx.tables.outcomes).values(action_id=uuid4(), key=old.key, **owners, **ended))
        return found

    monkeypatch.setattr(fulfil, "terminal_keys", meanwhile)
    part = await stage.reconcile()
    assert (part.replaced, part.clashed) == (1, 1)
    assert (await stage.only("imported")).id == old.id
    assert (await stage.only("drifts")).publish_at == LATER + A_MINUTE


async def test_what_was_scheduled_by_hand_is_taken_over_once_its_source_speaks_of_it(stage: Stage) -> None:
    """P56: a client that schedules by itself is faster, and not the truth."""
    hasty = await stage.app.schedule(TYPE, {"thing_id": "a"}, at=LATER, workspace=stage.workspace)
    apart = await stage.app.schedule(TYPE, {"thing_id": "b"}, at=LATER, workspace=stage.workspace)
    stage.approve("a", LATER + A_MINUTE)
    assert (await stage.reconcile()).replaced == 1
    found = await stage.only("a")
    assert (found.replaces_id, found.origin, found.publish_at) == (hasty.id, "reconciler", LATER + A_MINUTE)
    stage.unapprove("a")
    await stage.reconcile(after=10 * A_MINUTE)
    assert (await stage.app.get(found.id)).reason is Reason.ORPHANED
    assert (await stage.app.get(apart.id)).status is Status.QUEUED, "no source ever spoke of it"


async def test_what_is_taken_over_goes_on_keeping_others_from_overlapping_with_it(stage: Stage) -> None:
    await stage.app.schedule(TYPE, {"thing_id": "a"}, at=LATER, workspace=stage.workspace, overlap_key="one")
    stage.approve("a", LATER + A_MINUTE)
    assert (await stage.reconcile()).replaced == 1
    with pytest.raises(OverlapTaken):
        await stage.app.schedule(TYPE, {"thing_id": "b"}, at=LATER, workspace=stage.workspace, overlap_key="one")


async def test_two_sources_do_not_take_from_each_other(stage: Stage) -> None:
    drafts = Upstream()
    stage.app.source("drafts", drafts)
    stage.approve("a")
    drafts.wanted = {stage.workspace: [Desired(action_type=TYPE, payload={"thing_id": "a"}, at=LATER + A_MINUTE)]}
    first, second = (await stage.app.reconcile()).parts
    assert (first.inserted, second.kept) == (1, {Kept.ANOTHERS: 1})
    drafts.wanted = {}
    stage.clock.advance(10 * A_MINUTE)
    await stage.app.reconcile()
    assert (await stage.only("a")).origin_id == SOURCE


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody wait for a pass of another process to end."""
    monkeypatch.setattr("postdate.engine.periodic._TRIES", 1)


@pytest.mark.usefixtures("impatient")
async def test_of_two_passes_at_once_one_does_it(stage: Stage, database_url: str) -> None:
    async with another_process(stage, database_url) as other:
        for number in range(20):
            stage.approve(f"post-{number}")
        answers = await asyncio.gather(stage.app.reconcile(), other.reconcile(), return_exceptions=True)
        refused = [each for each in answers if isinstance(each, BaseException)]
        assert all(isinstance(each, PassRunning) for each in refused)
        assert len(refused) <= 1
        actions = await stage.app.list()
        assert sorted(each.thing_id or "" for each in actions) == sorted(f"post-{number}" for number in range(20))


@pytest.mark.usefixtures("impatient")
async def test_while_another_process_is_at_it_nobody_else_is(stage: Stage, database_url: str) -> None:
    stage.approve("a")
    async with another_process(stage, database_url) as other:
        async with alone(other.kernel) as theirs:
            assert theirs
            with pytest.raises(PassRunning):
                await stage.app.reconcile()
            await stage.app.tick()
            assert await stage.app.list() == []
            assert (await stage.app.reconcile(dry_run=True)).parts[0].inserted == 1, "looking is allowed"
        assert (await stage.reconcile()).inserted == 1


@pytest.mark.usefixtures("impatient")
async def test_a_slow_pass_does_not_undo_what_upstream_has_said_to_another_meanwhile(
    stage: Stage, database_url: str
) -> None:
    """It has heard the old time, and is about to write it: until then nobody else hears anything."""
    stage.approve("a")
    await stage.reconcile()
    stage.approve("a", LATER + A_MINUTE)
    heard, told = asyncio.Event(), asyncio.Event()

    async def says_slowly(workspace: UUID | None, *, thing_id: str | None = None) -> AsyncIterator[Desired]:
        for each in list(stage.upstream.wanted[workspace]):
            yield each
        heard.set()
        await told.wait()

    async with another_process(stage, database_url) as other:
        stage.app.kernel.sources = Sources()
        stage.app.source(SOURCE, SimpleNamespace(desired=says_slowly, parents=stage.upstream.parents))
        slow = asyncio.create_task(stage.app.reconcile())
        await heard.wait()
        stage.approve("a", LATER + 2 * A_MINUTE)
        with pytest.raises(PassRunning):
            await other.reconcile()
        told.set()
        await slow
        assert (await stage.only("a")).publish_at == LATER + A_MINUTE
        await other.reconcile()
        assert (await stage.only("a")).publish_at == LATER + 2 * A_MINUTE


@asynccontextmanager
async def another_process(stage: Stage, database_url: str) -> AsyncIterator[Postdate]:
    """Open an app as another process would, with the same action types and sources."""
    other = Postdate(database_url, clock=stage.clock)
    other.kernel.registry, other.kernel.sources = stage.app.kernel.registry, stage.app.kernel.sources
    yield other
    await other.close()
