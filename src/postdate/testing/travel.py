"""How does a test let weeks pass, as a running engine would have lived them?

The clock goes from the instant at which something falls due to the next: an action, a retry, or a lease that runs out.
At each of them one pass is done, as the engine's alarm and tick would: never early, and in the order of due times.
"""

from __future__ import annotations

from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from postdate.clock import ManualClock
from postdate.domain.instant import rfc3339, utc
from postdate.errors import InvalidInstant, Misconfigured, PostdateError
from postdate.registry import Registry
from postdate.store.reading import find_actions
from postdate.store.rules import next_look

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from postdate.app import Postdate
    from postdate.context import Context
    from postdate.domain.action import Action
    from postdate.domain.states import Status
    from postdate.registry import ActionType
    from postdate.store.transaction import Transaction

MOST_PASSES = 10_000
"""How many passes a journey may take, unless it says otherwise: an action that puts itself off for ever ends it."""


@dataclass(frozen=True, kw_only=True)
class Fired:
    """One run: when it began, which attempt it was, and how its action stood after the pass."""

    at: datetime
    attempt: int
    action: Action

    def __str__(self) -> str:
        """Return when what ran, and how that went, on one line."""
        known = {"thing ": self.action.thing_id, "target ": self.action.target_key, "": self.action.last_error}
        said = "".join(f", {name}{value}" for name, value in known.items() if value is not None)
        why = "" if self.action.reason is None else f" ({self.action.reason})"
        return f"{rfc3339(self.at)} {self.action.action_type} attempt {self.attempt}: {self.action.status}{why}{said}"


@dataclass(frozen=True, kw_only=True)
class Journey:
    """What happened on the way."""

    began: datetime
    now: datetime
    """Where the clock stands at the end."""
    passes: int
    due_count: int
    """How many actions were found due: runs, and what was settled without one because it had expired."""
    recovered: int
    """How many lost leases were ended."""
    fired: tuple[Fired, ...]
    """The runs, in the order in which they began."""

    @property
    def actions(self) -> tuple[Action, ...]:
        """The actions that were run, each once, as they stood after their last run."""
        return tuple({one.action.id: one.action for one in self.fired}.values())

    @property
    def counts(self) -> Counter[Status]:
        """How many of these actions stood in which status."""
        return Counter(action.status for action in self.actions)

    def __str__(self) -> str:
        """Return what fired when, a line each, and how much that was."""
        how_much = f"{len(self.fired)} fired from {rfc3339(self.began)} to {rfc3339(self.now)}"
        return "\n".join([*map(str, self.fired), how_much])


class JourneyTooLong(PostdateError):
    """More passes were needed than the journey was to take. `reached` says where the clock stands."""

    def __init__(self, *, passes: int, reached: datetime) -> None:
        """Keep the bound and the time."""
        self.passes = passes
        self.reached = reached
        super().__init__(
            f"{passes} passes brought the clock to {reached} only: does an action put itself off for ever?"
        )


async def travel(*apps: Postdate, to: datetime, most_passes: int = MOST_PASSES) -> Journey:
    """Move the clock of these apps to `to` (aware), and fire what falls due on the way, each at its instant.

    It works on connections of its own, so that in a plain function `asyncio.run(travel(app, to=...))` does the same.
    Raises `Misconfigured` where the apps do not share one `ManualClock`, `InvalidInstant` for a time that is past,
    `JourneyTooLong` after `most_passes` passes.
    """
    return await journey(apps, _shared_clock(apps), to=to, most_passes=most_passes)


async def journey(
    apps: Sequence[Postdate], clock: ManualClock, *, to: datetime, most_passes: int = MOST_PASSES
) -> Journey:
    """Do the same by a clock that is not the apps' own."""
    began, end = clock.now(), utc(to, field="to")
    if end < began:
        raise InvalidInstant(field="to", rule=f"is past: the clock stands at {began}", value=to)
    async with AsyncExitStack() as stack:
        fired: list[Fired] = []
        travellers = [_Traveller(app, clock, fired) for app in apps]
        for one in travellers:
            stack.push_async_callback(one.app.close)
        passes = 0
        while True:
            if passes == most_passes:
                raise JourneyTooLong(passes=passes, reached=clock.now())
            passes += 1
            at = clock.now()
            found = sum([await one.pass_once() for one in travellers])
            if found and len(travellers) > 1:
                continue  # one may have scheduled something for another, due at once
            if clock.now() >= end:
                break
            if clock.now() > at:
                continue  # a handler took its time, in which something may have fallen due
            stops = [await one.next_stop(clock.now()) for one in travellers]
            clock.move_to(min([end, *(stop for stop in stops if stop is not None)]))
    return Journey(
        began=began,
        now=clock.now(),
        passes=passes,
        due_count=sum(one.due_count for one in travellers),
        recovered=sum(one.recovered for one in travellers),
        fired=tuple(fired),
    )


class _Traveller:
    """A twin of an app whose runs are written down."""

    def __init__(self, app: Postdate, clock: ManualClock, fired: list[Fired]) -> None:
        self.app = app.on(app.settings.database_url, clock=clock)
        self.app.kernel.registry = Registry()
        self.due_count = 0
        self.recovered = 0
        self._fired = fired
        self._running: list[Context] = []
        for action_type in app.kernel.registry:
            self.app.include(_watched(action_type, self._running))

    async def pass_once(self) -> int:
        """Do one tick, look what became of what it ran, and return how many actions it found due."""
        report = await self.app.tick()
        self.due_count += report.due_count
        self.recovered += report.recovered
        ran = {ctx.action.id: ctx.action for ctx in self._running}
        ran |= await self.app.kernel.work(lambda tx: find_actions(tx, list(ran)), read_only=True)
        self._fired += [Fired(at=ctx.now, attempt=ctx.attempt, action=ran[ctx.action.id]) for ctx in self._running]
        self._running.clear()
        return report.due_count

    async def next_stop(self, now: datetime) -> datetime | None:
        """Return when something is due after `now`: an action of these types, or the end of a lease."""
        names = [action_type.name for action_type in self.app.kernel.registry]
        return await self.app.kernel.work(partial(_next_stop, types=names, now=now), read_only=True)


def _next_stop(tx: Transaction, *, types: Sequence[str], now: datetime) -> datetime | None:
    q = tx.tables.queue
    waiting = (q.c.lease_token.is_(None), q.c.due_at > now)
    held = (q.c.lease_token.is_not(None), q.c.lease_until > now)
    stops = [
        tx.execute(select(func.min(column)).where(q.c.action_type.in_(types), *condition)).scalar()
        for column, condition in ((q.c.due_at, waiting), (q.c.lease_until, held))
    ]
    look = next_look(tx)  # at a recurring rule, whose next occurrences become actions then
    if look is not None and look > now:
        stops.append(look)
    return min((stop for stop in stops if stop is not None), default=None)


def _watched(action_type: ActionType, running: list[Context]) -> ActionType:
    """Return the type with a handler that writes down what it is called with."""

    async def awaited(ctx: Context, payload: Any) -> Any:
        running.append(ctx)
        return await action_type.handler(ctx, payload)

    def called(ctx: Context, payload: Any) -> Any:
        running.append(ctx)
        return action_type.handler(ctx, payload)

    return replace(action_type, handler=awaited if action_type.is_async else called)


def _shared_clock(apps: Sequence[Postdate]) -> ManualClock:
    clocks = {id(app.kernel.clock): app.kernel.clock for app in apps}
    if len(clocks) != 1:
        raise Misconfigured("a journey needs an app, and one clock for all that it is given")
    (clock,) = clocks.values()
    if not isinstance(clock, ManualClock):
        raise Misconfigured("only a ManualClock can be moved: Postdate(url, clock=ManualClock(now))")
    return clock
