"""An upstream that a test edits, and the app whose queue follows it."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from postdate import Context, Desired, Parent, Postdate, Reconciled
from postdate.clock import ManualClock
from postdate.testing.factories import make_workspace
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from postdate import Action

SOURCE, TYPE = "posts", "publish_post"
AN_HOUR, A_MINUTE, A_SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
LATER = NOON + AN_HOUR


@dataclass
class Upstream:
    """What should be scheduled, by workspace; a source in Python."""

    wanted: dict[UUID | None, list[Desired]] = field(default_factory=dict)
    things: dict[str, Parent] = field(default_factory=dict)
    asked_about: list[str] = field(default_factory=list)
    """The things whose state was asked for."""
    breaks: Callable[[UUID | None, int], None] = lambda _workspace, _said: None
    """Called before each thing is said, with how many were."""

    async def desired(self, workspace: UUID | None, *, thing_id: str | None = None) -> AsyncIterator[Desired]:
        said = 0
        for each in list(self.wanted.get(workspace, ())):
            self.breaks(workspace, said)
            yield each
            said += 1
        self.breaks(workspace, said)

    async def parents(self, thing_ids: Sequence[str]) -> Mapping[str, Parent]:
        self.asked_about += thing_ids
        return {thing: self.things[thing] for thing in thing_ids if thing in self.things}


@dataclass(kw_only=True)
class Stage:
    """The app, its clock, and one workspace whose posts come and go."""

    app: Postdate
    clock: ManualClock
    upstream: Upstream
    workspace: UUID
    ran: list[str] = field(default_factory=list)
    """The things that went out."""
    answer: Callable[[Context], object] = lambda _ctx: "provider-1"

    @classmethod
    @asynccontextmanager
    async def on(cls, database_url: str) -> AsyncIterator[Stage]:
        clock = ManualClock(NOON)
        app = Postdate(database_url, clock=clock)
        stage = cls(app=app, clock=clock, upstream=Upstream(), workspace=make_workspace(app))
        app.action(TYPE)(stage._run)
        app.source(SOURCE, stage.upstream)
        yield stage
        await app.close()

    def approve(self, thing: str, at: datetime | str = LATER, *, workspace: UUID | None = None, **said: Any) -> Desired:
        """Let upstream want a thing, at another time than before where it wants it already."""
        wanted = Desired(action_type=TYPE, payload={"thing_id": thing}, at=at, **said)
        place = workspace or self.workspace
        others = [each for each in self.upstream.wanted.get(place, ()) if each.key != wanted.key]
        self.upstream.wanted[place] = [*others, wanted]
        self.upstream.things[thing] = Parent.OPEN
        return wanted

    def unapprove(self, thing: str, state: Parent | None = Parent.OPEN) -> None:
        """Let upstream want a thing no more; None: it is not there any more."""
        for place, wanted in self.upstream.wanted.items():
            self.upstream.wanted[place] = [each for each in wanted if each.payload["thing_id"] != thing]  # type: ignore[index]
        self.upstream.things.pop(thing, None)
        if state is not None:
            self.upstream.things[thing] = state

    async def reconcile(self, *, after: timedelta = timedelta(0)) -> Reconciled:
        """Do one pass and return what it came to in the one workspace."""
        self.clock.advance(after)
        report = await self.app.reconcile()
        (part,) = (part for part in report.parts if part.workspace_id == self.workspace)
        return part

    async def only(self, thing: str) -> Action:
        """Return the one active action of a thing."""
        (found,) = [each for each in await self.all_of(thing) if each.status.active]
        return found

    async def all_of(self, thing: str) -> list[Action]:
        """Return the actions of a thing, in the order in which they were made."""
        return sorted(await self.app.list(thing=thing), key=lambda action: action.id)

    def rows(self) -> dict[str, list[tuple[object, ...]]]:
        """Return everything that is written."""
        with self.app.kernel.transaction(None, read_only=True) as tx:
            t = tx.tables
            tables = (t.actions, t.queue, t.outcomes, t.action_events, t.passes)
            return {table.name: sorted(map(tuple, tx.execute(select(table))), key=str) for table in tables}

    async def _run(self, ctx: Context, _payload: dict[str, object]) -> object:
        answer = self.answer(ctx)
        if isinstance(answer, Awaitable):
            answer = await answer
        self.ran.append(str(ctx.action.thing_id))
        return answer
