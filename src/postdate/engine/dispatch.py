"""How is a claimed action run, and what came of it?"""

from __future__ import annotations

import asyncio
import inspect
from contextvars import copy_context
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Any

import structlog

from postdate.domain.outcome import Deferred, NotSent, Outcome, Published, Rejected, Skipped, Unconfirmed
from postdate.errors import InvalidPayload
from postdate.registry import Context

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx2

    from postdate.clock import Clock
    from postdate.domain.action import Claimed
    from postdate.registry import ActionType

_SAID = (Published, NotSent, Rejected, Unconfirmed, Skipped, Deferred)


@dataclass(frozen=True, kw_only=True)
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
        freed_late: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._http = http
        self._ended = ended
        self._freed_late = freed_late
        self._tasks: set[asyncio.Task[None]] = set()
        self._running: dict[str, int] = {}

    def free_slots(self, action_type: ActionType) -> int:
        """Return how many more runs of this type may start now."""
        return action_type.concurrency - self._running.get(action_type.name, 0)

    @property
    def idle(self) -> bool:
        """Whether nothing is running."""
        return not self._tasks

    def start(self, claimed: Claimed, action_type: ActionType) -> None:
        """Start a run."""
        self._running[action_type.name] = self._running.get(action_type.name, 0) + 1
        task = asyncio.create_task(self._run(claimed, action_type), name=f"dispatch-{action_type.name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self, grace: float | None = None) -> None:
        """Wait for what is running; after `grace` seconds cut it off, which leaves it unconfirmed."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=grace)
            for task in late:
                task.cancel("the engine is stopping")
            if late:
                await asyncio.wait(late)

    async def _run(self, claimed: Claimed, action_type: ActionType) -> None:
        slot = _Slot(self._running, action_type.name, freed_late=self._freed_late)
        try:
            payload = action_type.load(claimed.action.payload)
        except InvalidPayload as error:
            outcome: Outcome = NotSent(error)
            slot.free()
        else:
            call = _awaited if action_type.is_async else _threaded
            run = call(action_type, self._context(claimed, action_type), payload, slot)
            outcome = await _in_time(run, action_type)
        self._ended(Ended(claimed=claimed, outcome=outcome))

    def _context(self, claimed: Claimed, action_type: ActionType) -> Context:
        now = self._clock.now()
        action = claimed.action
        log = structlog.get_logger("postdate").bind(action=str(action.id), action_type=action.action_type)
        return Context(action=action, now=now, deadline=now + action_type.timeout, http=self._http, log=log)


@dataclass(frozen=True)
class _Slot:
    """One of the runs that a type may have at once."""

    running: dict[str, int]
    name: str
    freed_late: Callable[[], None]

    def free(self) -> None:
        """Let another run take the place."""
        self.running[self.name] -= 1

    def free_late(self) -> None:
        """The same, after the run was settled: nobody else will say that there is room again."""
        self.free()
        self.freed_late()


async def _in_time(run: Any, action_type: ActionType) -> Outcome:
    """Wait for a run as long as its type allows. Being cut off leaves it unconfirmed: the call may be out already."""
    try:
        async with asyncio.timeout(action_type.timeout.total_seconds()):
            outcome: Outcome = await run
            return outcome
    except TimeoutError:
        return Unconfirmed(f"no answer within {action_type.timeout.total_seconds():g} s")
    except asyncio.CancelledError as error:
        return Unconfirmed(f"cut off: {error}")


async def _awaited(action_type: ActionType, ctx: Context, payload: Any, slot: _Slot) -> Outcome:
    try:
        return _said(await action_type.handler(ctx, payload))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a handler raises is an outcome
        return _raised(error)
    finally:
        slot.free()


async def _threaded(action_type: ActionType, ctx: Context, payload: Any, slot: _Slot) -> Outcome:
    """Run a synchronous handler in a daemon thread: one that hangs keeps its slot, but not the process, alive."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Outcome] = loop.create_future()
    inherited = copy_context()

    def deliver(outcome: Outcome) -> None:
        if answer.done():  # cut off long ago
            slot.free_late()
        else:
            slot.free()
            answer.set_result(outcome)

    def work() -> None:
        outcome = inherited.run(_call, action_type, ctx, payload)
        if not loop.is_closed():
            loop.call_soon_threadsafe(deliver, outcome)

    Thread(target=work, name=f"dispatch-{action_type.name}", daemon=True).start()
    return await answer


def _call(action_type: ActionType, ctx: Context, payload: Any) -> Outcome:
    try:
        return _said(action_type.handler(ctx, payload))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a handler raises is an outcome
        return _raised(error)


def _said(answer: object) -> Outcome:
    """Return what a handler's answer means: an outcome, the provider's id, or nothing to add."""
    if isinstance(answer, _SAID):
        return answer
    if inspect.iscoroutine(answer):
        answer.close()
        return NotSent("the handler returned a coroutine that nobody awaits: define it with `async def`")
    return Published(provider_id=None if answer is None else str(answer))


def _raised(error: BaseException) -> Outcome:
    if isinstance(error, _SAID):
        return error
    return Unconfirmed(f"{type(error).__name__}: {error}")
