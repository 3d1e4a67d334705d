"""How is a claimed action run, and what came of it?"""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from threading import Thread
from traceback import format_exception
from typing import TYPE_CHECKING, Any

import structlog

from postdate.domain.endpoint import Endpoints, RememberedEndpoints
from postdate.domain.outcome import Deferred, NotSent, Outcome, Published, Unconfirmed, sound
from postdate.domain.text import cleaned
from postdate.errors import InvalidPayload
from postdate.registry import Context

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    import httpx2

    from postdate.clock import Clock
    from postdate.domain.action import Action, Claimed
    from postdate.registry import ActionType

LOOKUP_SECONDS = 20
"""How long a provider is asked about a doubtful run: less than the margin of the lease."""

_NOT_ITS_OWN = (KeyboardInterrupt, GeneratorExit)
"""What is raised in a handler, but meant for the process or the event loop."""


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
        endpoints: Callable[[Action], Endpoints] = lambda _: RememberedEndpoints(),
    ) -> None:
        self._clock = clock
        self._http = http
        self._endpoints = endpoints
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
        self._in_a_task(self._run(claimed, action_type, self._take_slot(action_type)), f"dispatch-{action_type.name}")

    def ask(self, claimed: Claimed, action_type: ActionType) -> None:
        """Ask the provider what became of a run whose worker is gone: nothing is sent."""
        self._in_a_task(self._ask(claimed, action_type, self._take_slot(action_type)), f"lookup-{action_type.name}")

    async def drain(self, grace: float | None = None) -> None:
        """Wait for what is running; after `grace` seconds cut it off, which leaves it unconfirmed."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=grace)
            for task in late:
                task.cancel("the engine is stopping")
            if late:
                await asyncio.wait(late)

    def _take_slot(self, action_type: ActionType) -> _Slot:
        self._running[action_type.name] = self._running.get(action_type.name, 0) + 1
        return _Slot(self._running, action_type.name, freed_late=self._freed_late)

    def _in_a_task(self, run: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(run, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, claimed: Claimed, action_type: ActionType, slot: _Slot) -> None:
        try:
            payload = action_type.load(claimed.action.payload)
        except InvalidPayload as error:
            outcome: Outcome = NotSent(error)
            slot.free()
        else:
            outcome = await self._called(claimed, action_type, payload, slot)
        self._ended(Ended(claimed=claimed, outcome=sound(outcome)))

    async def _called(self, claimed: Claimed, action_type: ActionType, payload: Any, slot: _Slot) -> Outcome:
        ctx = self._context(claimed, action_type)
        if ctx.now >= claimed.lease_until:  # this process stood still since the claim: others may have it by now
            slot.free()
            return Deferred(ctx.now, "the lease ran out before the run could start")
        call = _awaited if action_type.is_async else _threaded
        outcome = await _in_time(call(action_type, ctx, payload, slot), action_type)
        if isinstance(outcome, Unconfirmed) and not (slot.taken or _being_cancelled()):
            outcome = await _looked_up(action_type, ctx, payload, doubt=outcome)
        return outcome

    async def _ask(self, claimed: Claimed, action_type: ActionType, slot: _Slot) -> None:
        doubt = Unconfirmed(claimed.action.last_error or "the worker is gone")
        try:
            payload = action_type.load(claimed.action.payload)
            ctx = self._context(claimed, action_type)
            outcome = await _looked_up(action_type, ctx, payload, doubt=doubt)
        except InvalidPayload:
            outcome = doubt
        finally:
            slot.free()
        self._ended(Ended(claimed=claimed, outcome=sound(outcome)))

    def _context(self, claimed: Claimed, action_type: ActionType) -> Context:
        now = self._clock.now()
        action = claimed.action
        log = structlog.get_logger("postdate").bind(action=str(action.id), action_type=action.action_type)
        return Context(
            action=action,
            now=now,
            deadline=now + action_type.timeout,
            http=self._http,
            endpoints=self._endpoints(action),
            log=log,
        )


@dataclass
class _Slot:
    """One of the runs that a type may have at once."""

    running: dict[str, int]
    name: str
    freed_late: Callable[[], None]
    taken: bool = True

    def free(self) -> None:
        """Let another run take the place."""
        self.taken = False
        self.running[self.name] -= 1

    def free_late(self) -> None:
        """The same, after the run was settled: nobody else will say that there is room again."""
        self.free()
        self.freed_late()


async def _in_time(run: Awaitable[Outcome], action_type: ActionType) -> Outcome:
    """Wait for a run as long as its type allows. Being cut off leaves it unconfirmed: the call may be out already."""
    try:
        async with asyncio.timeout(action_type.timeout.total_seconds()):
            return await run
    except TimeoutError:
        return Unconfirmed(f"no answer within {action_type.timeout.total_seconds():g} s")
    except asyncio.CancelledError as error:
        return Unconfirmed(f"cut off: {error}")


async def _looked_up(action_type: ActionType, ctx: Context, payload: Any, *, doubt: Unconfirmed) -> Outcome:
    """Ask the provider about a doubtful run. Only a clear answer ends the doubt."""
    if action_type.lookup is None:
        return doubt
    try:
        async with asyncio.timeout(LOOKUP_SECONDS):
            answer: object = await action_type.lookup(ctx, payload)
    except _NOT_ITS_OWN:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it raises, it has told nothing
        answer = error
    if isinstance(answer, Published | NotSent):
        return answer
    ctx.log.warning("the provider could not be asked, or cannot tell", error=cleaned(answer))
    return doubt


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _awaited(action_type: ActionType, ctx: Context, payload: Any, slot: _Slot) -> Outcome:
    try:
        return _said(await action_type.handler(ctx, payload))
    except (*_NOT_ITS_OWN, asyncio.CancelledError):
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a handler raises is an outcome
        return _raised(ctx, error)
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

    try:
        Thread(target=work, name=f"dispatch-{action_type.name}", daemon=True).start()
    except RuntimeError as error:  # no more threads are to be had
        slot.free()
        return NotSent(error)
    return await answer


def _call(action_type: ActionType, ctx: Context, payload: Any) -> Outcome:
    try:
        return _said(action_type.handler(ctx, payload))
    except BaseException as error:  # noqa: BLE001 - whatever a handler raises is an outcome, and nobody else is told
        return _raised(ctx, error)


def _said(answer: object) -> Outcome:
    """Return what a handler's answer means: an outcome, the provider's id, or nothing to add."""
    if isinstance(answer, Outcome):
        return answer
    if inspect.iscoroutine(answer):
        answer.close()
        return NotSent("the handler returned a coroutine that nobody awaits: define it with `async def`")
    if inspect.isgenerator(answer) or inspect.isasyncgen(answer):
        return NotSent("the handler is a generator, which nobody runs: it must not `yield`")
    if inspect.isawaitable(answer):
        return Unconfirmed("the handler returned before its work was done: it must await what it starts")
    if isinstance(answer, type):
        return Unconfirmed(f"the handler returned the class {answer.__name__}")
    return Published(provider_id=None if answer is None else str(answer))


def _raised(ctx: Context, error: BaseException) -> Outcome:
    if isinstance(error, Outcome):
        return error
    with suppress(Exception):  # a log that cannot be written must not keep the run from its outcome
        told = "".join(format_exception(error))
        ctx.log.warning("the handler raised an exception that is no outcome", traceback=told)
    return Unconfirmed(f"{type(error).__name__}: {cleaned(error)}")
