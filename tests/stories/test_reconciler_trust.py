"""How far is a source trusted that fails, hangs or says what makes no sense?"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import datetime, timezone
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any

import pytest
import structlog.testing
from pydantic import BaseModel, StringConstraints

from postdate import (
    Desired,
    Kept,
    Parent,
    Status,
)
from postdate.engine import hearing
from postdate.sources import Sources
from postdate.testing.factories import make_workspace
from tests.stories.upstream import A_MINUTE, A_SECOND, AN_HOUR, LATER, TYPE, Stage, Upstream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
    from uuid import UUID


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


def told_by_a_plain_generator(_workspace: UUID | None, *, thing_id: str | None = None) -> Iterator[Desired]:
    yield Desired(action_type=TYPE, payload={"thing_id": thing_id or "a"}, at=LATER)


async def told_at_once(_workspace: UUID | None, *, thing_id: str | None = None) -> list[Desired]:
    return [Desired(action_type=TYPE, payload={"thing_id": thing_id or "a"}, at=LATER)]


@pytest.mark.parametrize(
    ("desired", "kind"), [(told_by_a_plain_generator, "generator"), (told_at_once, "coroutine")], ids=["plain", "list"]
)
async def test_what_is_no_async_generator_is_told_by_that_name(sqlite_url: str, desired: Any, kind: str) -> None:
    async with Stage.on(sqlite_url) as stage:
        stage.upstream.desired = desired  # type: ignore[method-assign]
        assert (await stage.reconcile()).failed == f"TypeError: desired must be an async generator, and not a {kind}"


class OneByOne:
    """An async iterator that nobody can close."""

    def __init__(self, desired: Sequence[Desired]) -> None:
        self._left = iter(desired)

    def __aiter__(self) -> OneByOne:
        return self

    async def __anext__(self) -> Desired:
        for each in self._left:
            return each
        raise StopAsyncIteration


async def test_any_async_iterator_will_do(stage: Stage) -> None:
    wanted = stage.approve("a")
    stage.upstream.desired = lambda _workspace, **_: OneByOne([wanted])  # type: ignore[method-assign]
    part = await stage.reconcile()
    assert (part.failed, part.inserted) == (None, 1)


class Lowered(BaseModel):
    """A payload whose thing is another one once it was read."""

    thing_id: Annotated[str, StringConstraints(to_lower=True)]


async def test_a_type_that_makes_another_thing_of_what_is_wanted_is_told(stage: Stage) -> None:
    """Under its own key it would be missing for ever, and so scheduled every minute."""

    async def publish(_ctx: object, _post: Lowered) -> None:
        """Take a post."""

    stage.app.action("publish_lowered")(publish)
    wanted = Desired(action_type="publish_lowered", payload={"thing_id": "Post-1"}, at=LATER)
    stage.upstream.wanted[stage.workspace] = [wanted]
    part = await stage.reconcile()
    assert (part.inserted, part.refused) == (0, 1)
    assert "another thing" in part.refusals[0]
    assert await stage.app.list() == []


class Silent(Upstream):
    """Never answers."""

    async def desired(self, workspace: UUID | None, *, thing_id: str | None = None) -> AsyncIterator[Desired]:
        await asyncio.Event().wait()
        yield Desired(action_type=TYPE, payload={}, at=LATER)


async def test_a_source_has_so_much_time_and_no_more(stage: Stage) -> None:
    stage.app.source("silent", Silent(), workspaces=[None], timeout=0.05)
    stage.approve("a")
    report = await stage.app.reconcile()
    (failed,) = report.failed
    assert (failed.source, failed.failed) == ("silent", "took longer than 0.05 s")
    assert len(await stage.app.list()) == 1


async def test_what_a_source_takes_for_each_part_adds_up(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hearing, "BATCH", 1)
    readings = count(step=40)
    monkeypatch.setattr(hearing, "monotonic", lambda: next(readings))
    async with Stage.on(sqlite_url) as stage:
        for thing in ("a", "b", "c"):
            stage.approve(thing)
        part = await stage.reconcile()
        assert str(part.failed).startswith("took longer than 60 s")
        assert part.inserted == 2


async def test_of_a_source_that_blocks_the_event_loop_it_is_told_that_it_stood_still(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is claimed meanwhile either, and no time-out can end it."""
    async with Stage.on(sqlite_url) as stage:
        stage.app.kernel.sources = Sources()
        stage.app.source("blocking", Silent(), workspaces=[None], timeout=0.05)
        readings = iter([100.0])
        monkeypatch.setattr(hearing, "monotonic", lambda: next(readings, 114.05))
        (failed,) = (await stage.app.reconcile()).failed
        assert failed.failed == "took longer than 0.05 s, and the event loop stood still for 14 s"


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
