"""When is a pass of the reconciler done, by whom is it seen beforehand, and who is told what came of it?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from postdate import (
    Desired,
    Insert,
    Keep,
    Kept,
    OnHold,
    Postdate,
    Reason,
    Replace,
    SourceFailed,
    Status,
    UnknownSource,
    Withdraw,
)
from postdate.store.heartbeat import hold_all
from tests.stories.conftest import running, until
from tests.stories.upstream import A_MINUTE, A_SECOND, LATER, SOURCE, TYPE, Stage, Upstream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID


@pytest.fixture
async def stage(database_url: str) -> AsyncIterator[Stage]:
    async with Stage.on(database_url) as stage:
        yield stage


async def test_a_dry_run_says_what_it_would_do_and_writes_nothing(stage: Stage) -> None:
    for thing in ("stays", "drifts", "goes"):
        stage.approve(thing)
    await stage.reconcile()
    stage.clock.advance(10 * A_MINUTE)
    stage.approve("drifts", LATER + A_MINUTE)
    stage.approve("new")
    stage.unapprove("goes")
    before = stage.rows()
    (dry,) = (await stage.app.reconcile(dry_run=True)).parts
    assert stage.rows() == before
    real = await stage.reconcile()
    assert (real.inserted, real.replaced, real.withdrawn, real.kept) == (1, 1, 1, {Kept.UNCHANGED: 1})
    assert dry == real


async def test_the_plan_for_one_thing_is_what_a_pass_would_do(stage: Stage) -> None:
    """P56: it is shown to people, and nobody acts on it."""
    for thing in ("stays", "drifts", "goes"):
        stage.approve(thing)
    await stage.reconcile()
    stage.clock.advance(10 * A_MINUTE)
    stage.approve("drifts", LATER + A_MINUTE)
    stage.approve("new")
    stage.unapprove("goes")
    before = stage.rows()
    steps = {}
    for thing in ("stays", "drifts", "goes", "new", "unheard of"):
        steps[thing] = list(await stage.app.plan_for(thing, source=SOURCE, workspace=stage.workspace))
    assert stage.rows() == before
    assert steps.pop("unheard of") == []
    assert {thing: type(planned.step) for thing, (planned,) in steps.items()} == {
        "stays": Keep,
        "drifts": Replace,
        "goes": Withdraw,
        "new": Insert,
    }
    assert steps["drifts"][0].publish_at == LATER + A_MINUTE
    with pytest.raises(UnknownSource):
        await stage.app.plan_for("a", source="drafts")
    stage.upstream.breaks = broken
    with pytest.raises(SourceFailed, match="ZeroDivisionError"):
        await stage.app.plan_for("a", source=SOURCE, workspace=stage.workspace)


def broken(_workspace: UUID | None, _said: int) -> None:
    raise ZeroDivisionError


async def test_while_everything_is_on_hold_nothing_is_scheduled(stage: Stage) -> None:
    """A restored database has forgotten what went out since: a person looks first."""
    stage.approve("a")
    with stage.app.kernel.transaction(None) as tx:
        hold_all(tx, now=stage.clock.now(), because="restored")
    with pytest.raises(OnHold, match="restored"):
        await stage.app.reconcile()
    assert (await stage.app.reconcile(dry_run=True)).parts[0].inserted == 1
    await stage.app.tick()
    assert await stage.app.list() == []


async def test_the_engines_tick_reconciles_once_a_minute_and_fires_what_came_of_it(stage: Stage) -> None:
    """P44: nobody asks for it."""
    stage.approve("a", stage.clock.now())
    await stage.app.tick()
    assert stage.ran == ["a"]
    stage.approve("b", stage.clock.now())
    stage.clock.advance(timedelta(seconds=59))
    await stage.app.tick()
    assert stage.ran == ["a"]
    stage.clock.advance(A_SECOND)
    await stage.app.tick()
    assert stage.ran == ["a", "b"]


async def test_a_running_engine_schedules_what_a_source_wants_and_fires_it(live: Postdate) -> None:
    ran: list[str] = []
    upstream = Upstream()

    @live.action(TYPE)
    async def publish(_ctx: object, payload: dict[str, str]) -> None:
        ran.append(payload["thing_id"])

    now = await live.kernel.read_clock()
    upstream.wanted = {None: [Desired(action_type=TYPE, payload={"thing_id": "a"}, at=now)]}
    live.source(SOURCE, upstream, workspaces=[None])
    async with running(live):
        await until(lambda: ran == ["a"])


async def test_what_is_withdrawn_or_replaced_is_told_to_the_types_hook(sqlite_url: str) -> None:
    async with Stage.on(sqlite_url) as stage:
        told: list[tuple[str | None, Reason | None]] = []

        def settled(_connection: object, actions: Any) -> None:
            told.extend((each.thing_id, each.reason) for each in actions)

        stage.app.action("other", settled=settled)(lambda _ctx, _payload: None)

        def wanted(thing: str, minutes: int) -> Desired:
            return Desired(action_type="other", payload={"thing_id": thing}, at=LATER + minutes * A_MINUTE)

        stage.upstream.wanted[stage.workspace] = [wanted("drifts", 0), wanted("goes", 0)]
        await stage.reconcile()
        stage.upstream.wanted[stage.workspace] = [wanted("drifts", 1)]
        await stage.reconcile(after=10 * A_MINUTE)
        assert sorted(told, key=str) == [("drifts", Reason.DRIFTED), ("goes", Reason.ORPHANED)]


async def test_a_thousand_and_one_actions_are_looked_through_page_by_page(sqlite_url: str) -> None:
    async with Stage.on(sqlite_url) as stage:
        for number in range(1_001):
            stage.upstream.wanted.setdefault(stage.workspace, []).append(
                Desired(action_type=TYPE, payload={"thing_id": f"post-{number}"}, at=LATER)
            )
        assert (await stage.reconcile()).inserted == 1_001
        stage.upstream.wanted[stage.workspace] = stage.upstream.wanted[stage.workspace][:2]
        assert (await stage.reconcile(after=10 * A_MINUTE)).withdrawn == 999
        assert len(await stage.app.list(status=Status.QUEUED)) == 2
