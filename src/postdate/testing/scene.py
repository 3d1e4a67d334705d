"""What does a test of an app have in hand?"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from postdate.app import Postdate
from postdate.clock import ManualClock
from postdate.domain.states import Status
from postdate.testing.factories import make_action, make_profile, make_workspace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from uuid import UUID

    from postdate.context import Context
    from postdate.domain.action import Action
    from postdate.domain.states import Reason
    from postdate.engine.loop import TickReport
    from postdate.settings import Settings

Answer = TypeVar("Answer")

NOON = datetime(2027, 3, 9, 12, tzinfo=UTC)
"""Where the clock of a scene stands at first."""

POST = "publish_post"
REMINDER = "reminder"


@dataclass(kw_only=True)
class Scene:
    """An app on a clock that the test moves, with owners and two action types whose handlers do as they are told.

    For synchronous tests: `tick` and `await_` run an event loop of their own.
    """

    app: Postdate
    clock: ManualClock
    workspace: UUID
    user: UUID
    runs: list[Context] = field(default_factory=list)
    """What the handlers were called with."""
    answer: Callable[[Context], object] = lambda _ctx: "provider-1"
    """What the handlers do: returns what they return, or raises what they raise."""
    _loop: asyncio.Runner = field(default_factory=asyncio.Runner)

    @classmethod
    @contextmanager
    def on(cls, database_url: str, *, settings: Settings | None = None, now: datetime = NOON) -> Iterator[Scene]:
        """Set the scene on a migrated database, and clear it away afterwards."""
        clock = ManualClock(now)
        app = Postdate(database_url, settings=settings, clock=clock)
        scene = cls(app=app, clock=clock, workspace=make_workspace(app), user=make_profile(app))
        for name in (POST, REMINDER):
            app.action(name)(scene._run)
        with scene._loop:
            yield scene
            scene.await_(app.close())

    def action(self, status: Status = Status.QUEUED, reason: Reason | None = None, **asked: Any) -> Action:
        """Make an action of the scene's owners in any state; `asked` is what `make_action` takes."""
        owners = {"workspace": self.workspace, "user": self.user}
        return make_action(self.app, status, reason, **{"action_type": POST, **owners, **asked})

    def get(self, action: Action) -> Action:
        """Return how the action stands by now."""
        return self.app.sync.get(action.id)

    def tick(self, *, after: timedelta = timedelta(0)) -> TickReport:
        """Let time pass, then do one pass of the engine."""
        self.clock.advance(after)
        return self.await_(self.app.tick())

    def await_(self, work: Awaitable[Answer]) -> Answer:
        """Wait for asynchronous work."""

        async def waiting() -> Answer:
            return await work

        return self._loop.run(waiting())

    async def _run(self, ctx: Context, _payload: dict[str, object]) -> object:
        self.runs.append(ctx)
        return self.answer(ctx)
