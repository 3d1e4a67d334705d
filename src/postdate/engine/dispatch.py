"""How many claimed actions run at once, and how do they all come to an end?"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from postdate.context import Context
from postdate.domain.endpoint import Endpoints, RememberedEndpoints
from postdate.engine.run import Run
from postdate.engine.time_limit import TimeLimit
from postdate.stopping import Stopping

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import httpx2

    from postdate.clock import Clock
    from postdate.domain.action import Action, Claimed
    from postdate.domain.outcome import Outcome
    from postdate.registry import ActionType


@dataclass(eq=False, slots=True)
class Ended:
    """A run that has ended, and how."""

    claimed: Claimed
    outcome: Outcome


class Dispatcher:
    """Runs claimed actions, each in a task of its own, and hands what came of them to `ended` (P42, P43)."""

    def __init__(
        self,
        *,
        clock: Clock,
        http: httpx2.AsyncClient,
        ended: Callable[[Ended], None],
        has_room: Callable[[], None],
        endpoints: Callable[[Action], Endpoints] = lambda _: RememberedEndpoints(),
    ) -> None:
        self._clock = clock
        self._http = http
        self._endpoints = endpoints
        self._ended = ended
        self._has_room = has_room
        self._runs: set[Run] = set()
        self._limits: dict[str, TimeLimit] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._taken: dict[str, int] = {}
        self._filled: set[str] = set()
        """The types that have had no free slot since all of theirs were free."""
        self.stopping = Stopping()
        """What handlers look at to end in time. Once it has begun, no run begins any more."""

    def free_slots(self, action_type: ActionType) -> int:
        """Return how many more runs of this type may start now."""
        return action_type.concurrency - self._taken.get(action_type.name, 0)

    @property
    def idle(self) -> bool:
        """Whether nothing is running."""
        return not self._runs

    @property
    def running(self) -> Collection[Run]:
        """What has not ended yet."""
        return self._runs

    async def drain(self, grace: float | None = None) -> None:
        """Wait for what is running; after `grace` seconds cut it off, which leaves it unconfirmed."""
        try:
            await asyncio.wait_for(self._idle.wait(), grace)
        except TimeoutError:
            for run in list(self._runs):
                run.cut_off("the engine is stopping")
            await self._idle.wait()

    def take_up(self, claimed: Claimed, action_type: ActionType) -> Run:
        """Give a claimed action a slot, and return its run, which the caller begins."""
        run = Run(claimed, action_type, limit=self._limit_of(action_type), dispatcher=self)
        self._runs.add(run)
        self._idle.clear()
        self._taken[action_type.name] = self._taken.get(action_type.name, 0) + 1
        if not self.free_slots(action_type):
            self._filled.add(action_type.name)
        return run

    def _limit_of(self, action_type: ActionType) -> TimeLimit:
        limit = self._limits.get(action_type.name)
        if limit is None:
            limit = self._limits[action_type.name] = TimeLimit(action_type.timeout.total_seconds())
        return limit

    def ended(self, run: Run, outcome: Outcome) -> None:
        """Hand on how a run has ended."""
        self._runs.discard(run)
        if not self._runs:
            self._idle.set()
        self._ended(Ended(run.claimed, outcome))

    def freed(self, run: Run) -> None:
        """Take a run's slot back, and say so where somebody may wait for it."""
        name = run.action_type.name
        self._taken[name] -= 1
        if run.over:  # settled without its handler: nobody else will say that there is room again
            self._has_room()
        elif not self._taken[name] and name in self._filled:  # the next can be claimed while these are being written
            self._filled.discard(name)
            self._has_room()

    def context(self, run: Run) -> Context:
        """Return what a run's handler knows that is called now."""
        now = self._clock.now()
        action = run.claimed.action
        return Context(
            action=action,
            now=now,
            deadline=now + run.action_type.timeout,
            http=self._http,
            endpoints=self._endpoints(action),
            stopping=self.stopping,
        )
