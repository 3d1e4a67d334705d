"""What does one pass of the reconciler do when its sources, other hands or other processes are in its way?"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import structlog.testing
from pydantic import BaseModel

from postdate import (
    Desired,
    Insert,
    Keep,
    Kept,
    OnHold,
    OverlapTaken,
    Parent,
    PassRunning,
    Postdate,
    Reason,
    Replace,
    SourceFailed,
    Status,
    UnknownSource,
    Withdraw,
)
from postdate.engine import fulfil, hearing
from postdate.engine.periodic import alone
from postdate.sources import Sources
from postdate.store.heartbeat import hold_all
from postdate.store.reconcile import terminal_keys
from postdate.testing.factories import make_workspace
from tests.stories.conftest import running, until
from tests.stories.upstream import A_MINUTE, A_SECOND, AN_HOUR, LATER, SOURCE, TYPE, Stage, Upstream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from uuid import UUID

    from postdate.store.transaction import Transaction


@pytest.fixture
async def stage(database_url: str) -> AsyncIterator[Stage]:
    async with Stage.on(database_url) as stage:
        yield stage


class Odd(BaseModel):
    """A payload that cannot be written down."""

    thing_id: str
    odd: object


class NoError(BaseException):
    """As what an extension in Rust raises when it panics."""


# --- how far a source is trusted -----------------------------------------------------------------------


async def test_a_source_that_fails_half_way_leads_to_no_withdrawal_of_what_it_did_not_get_to_say(stage: Stage) -> None:
    """What it did say is done all the same."""
    for thing in ("a", "b", "c"):
        stage.approve(thing)
    await stage.reconcile()
    stage.approve("new")
    stage.upstream.wanted[stage.workspace].reverse()

    def breaks(_workspace: UUID | None, said: int) -> None:
        if said == 2:
            raise ConnectionResetError("the upstream is gone")

    stage.upstream.breaks = breaks
    part = await stage.reconcile(after=10 * A_MINUTE)
    assert part.failed == "ConnectionResetError: the upstream is gone"
    assert (part.inserted, part.withdrawn) == (1, 0)
    assert {each.status for each in await stage.app.list()} == {Status.QUEUED}
    stage.upstream.breaks = lambda _workspace, _said: None
    part = await stage.reconcile(after=A_MINUTE)
    assert (part.failed, part.withdrawn, len(await stage.app.list())) == (None, 0, 4)


async def test_the_last_word_counts_too(stage: Stage) -> None:
    """A source that fails after its last row has not said that this was all."""
    stage.approve("a")
    await stage.reconcile()
    stage.unapprove("a")

    def breaks(_workspace: UUID | None, said: int) -> None:
        raise OSError(said)

    stage.upstream.breaks = breaks
    assert (await stage.reconcile(after=10 * A_MINUTE)).withdrawn == 0
    assert (await stage.only("a")).status is Status.QUEUED


async def test_something_without_a_key_lets_nothing_be_withdrawn_and_the_rest_be_scheduled(stage: Stage) -> None:
    """Nobody can tell which of the actions it was about."""
    stage.approve("a")
    await stage.reconcile()
    stage.unapprove("a")
    stage.approve("b")
    stage.upstream.wanted[stage.workspace].append(Desired(action_type=TYPE, payload={"thing_id": ""}, at=LATER))
    with structlog.testing.capture_logs() as logs:
        part = await stage.reconcile(after=10 * A_MINUTE)
    assert (part.inserted, part.withdrawn, part.refused) == (1, 0, 1)
    assert "has no key" in str(part.failed)
    assert part.refusals[0] in str(part.failed), "the shell and the log show this first"
    assert "payload.thing_id" in part.refusals[0]
    assert [log["event"] for log in logs] == ["a source was not reconciled to the end"]


async def test_where_one_workspace_fails_the_others_are_reconciled(stage: Stage) -> None:
    others = [make_workspace(stage.app) for _ in range(2)]
    for number, workspace in enumerate([stage.workspace, *others]):
        stage.approve(f"post-{number}", workspace=workspace)

    def breaks(workspace: UUID | None, _said: int) -> None:
        if workspace == stage.workspace:
            raise RuntimeError("no")

    stage.upstream.breaks = breaks
    report = await stage.app.reconcile()
    assert [(part.workspace_id, part.failed) for part in report.failed] == [(stage.workspace, "RuntimeError: no")]
    assert sum(part.inserted for part in report.parts) == 2
    assert {action.workspace_id for action in await stage.app.list()} == set(others)


async def test_a_zone_that_is_none_is_reported_for_its_workspace_and_others_are_reconciled(stage: Stage) -> None:
    """P-T16, P77."""
    other, bad = make_workspace(stage.app), make_workspace(stage.app, account_timezone="Not/AZone")
    stage.approve("theirs", "2027-03-14T09:00", workspace=bad)
    stage.approve("ours", "2027-03-14T09:00", workspace=other, tz="Europe/Lisbon")
    report = await stage.app.reconcile()
    parts = {part.workspace_id: part for part in report.parts}
    assert (parts[other].inserted, parts[bad].inserted, parts[bad].refused) == (1, 0, 1)
    assert "Not/AZone" in parts[bad].refusals[0]
    assert [each.thing_id for each in await stage.app.list()] == ["ours"]


@pytest.mark.parametrize(
    "said",
    [
        {"at": "tomorrow"},
        {"at": LATER, "action_type": "unheard_of"},
        {"at": LATER, "user": "nobody"},
        {"at": LATER, "user": "0193e000-0000-7000-8000-000000000000"},
        {"at": LATER, "expires_at": LATER - A_SECOND},
        {"at": LATER, "payload": {"thing_id": "a", "odd": object()}},
        {"at": LATER, "payload": Odd(thing_id="a", odd=object())},
        {"at": datetime.max.replace(tzinfo=timezone(-AN_HOUR))},
        {"at": LATER, "expires_at": datetime.max.replace(tzinfo=timezone(-AN_HOUR))},
    ],
    ids=["time", "action type", "user", "nobody's user", "expiry", "payload", "model", "last hour", "last expiry"],
)
async def test_what_cannot_be_scheduled_is_told_and_what_there_is_stays(sqlite_url: str, said: dict[str, Any]) -> None:
    async with Stage.on(sqlite_url) as stage:
        wanted = stage.approve("a")
        stage.approve("b")
        await stage.reconcile()
        values = {name: getattr(wanted, name) for name in wanted.__dataclass_fields__}
        odd = Desired(**{**values, **said})
        stage.upstream.wanted[stage.workspace].append(odd)
        stage.upstream.wanted[stage.workspace].remove(wanted)
        part = await stage.reconcile()
        assert (part.refused, part.inserted, part.replaced) == (1, 0, 0)
        assert (await stage.only("a")).publish_at == LATER


async def test_a_source_has_so_much_time_and_no_more(stage: Stage, database_url: str) -> None:
    class Silent(Upstream):
        async def desired(self, workspace: UUID | None, *, thing_id: str | None = None) -> AsyncIterator[Desired]:
            await asyncio.Event().wait()
            yield Desired(action_type=TYPE, payload={}, at=LATER)

    stage.app.source("silent", Silent(), workspaces=[None], timeout=0.05)
    stage.approve("a")
    report = await stage.app.reconcile()
    (failed,) = report.failed
    assert (failed.source, failed.failed) == ("silent", "took longer than 0.05 s")
    assert len(await stage.app.list()) == 1


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (asyncio.CancelledError(), "it was cancelled from within"),
        (NoError("panic"), "it raised NoError: panic"),
        (TimeoutError("theirs"), "TimeoutError: theirs"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("by_parents", [False, True], ids=["desired", "parents"])
async def test_whatever_a_source_raises_is_its_own_failure(
    sqlite_url: str, raised: BaseException, told: str, *, by_parents: bool
) -> None:
    """A pass that took it for its own cancellation would end the engine's loop, and nobody would be told."""

    async def parents(_thing_ids: Sequence[str]) -> Mapping[str, Parent]:
        raise raised

    def breaks(_workspace: UUID | None, _said: int) -> None:
        raise raised

    async with Stage.on(sqlite_url) as stage:
        stage.approve("a")
        await stage.reconcile()
        stage.unapprove("a")
        if by_parents:
            stage.upstream.parents = parents  # type: ignore[method-assign,assignment]
        else:
            stage.upstream.breaks = breaks
        part = await stage.reconcile(after=10 * A_MINUTE)
        assert told in str(part.failed)
        assert (await stage.only("a")).status is Status.QUEUED


async def test_parents_that_never_answer_and_cannot_be_cancelled_hold_up_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "_ENDING_SECONDS", 0.05)
    released = asyncio.Event()

    class Deaf(Upstream):
        async def parents(self, thing_ids: Sequence[str]) -> Mapping[str, Parent]:
            while not released.is_set():
                with suppress(asyncio.CancelledError):
                    await released.wait()
            return {}

    deaf = Deaf(wanted={None: [Desired(action_type=TYPE, payload={"thing_id": "deaf"}, at=LATER)]})
    stage.app.source("deaf", deaf, workspaces=[None], timeout=0.2)
    await stage.reconcile()
    deaf.wanted.clear()
    stage.clock.advance(10 * A_MINUTE)
    (failed,) = (await stage.app.reconcile()).failed
    released.set()
    assert (failed.source, failed.failed, failed.withdrawn) == ("deaf", "took longer than 0.2 s", 0)


async def test_what_is_said_twice_is_scheduled_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within one part of what is heard, and across parts."""
    monkeypatch.setattr(hearing, "BATCH", 2)
    stage.approve("a")
    wanted = stage.upstream.wanted[stage.workspace]
    wanted += [wanted[0], wanted[0]]
    part = await stage.reconcile()
    assert (part.inserted, part.kept) == (1, {Kept.REPEATED: 2})


# --- other hands ---------------------------------------------------------------------------------------


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


# --- dry runs, plans, holds, and the engine ------------------------------------------------------------


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
