"""How does one run go: the call, its time limit, and the provider's word on a doubtful one?"""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from datetime import timedelta
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any

import structlog

from postdate.domain.outcome import Deferred, NotSent, Outcome, Published, Unconfirmed, sound
from postdate.domain.text import cleaned
from postdate.engine.answers import called, cut_off, raised, said, told_by
from postdate.errors import InvalidPayload

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from datetime import datetime

    from postdate.context import Context
    from postdate.domain.action import Claimed
    from postdate.engine.dispatch import Dispatcher
    from postdate.engine.time_limit import TimeLimit
    from postdate.registry import ActionType

_log = structlog.get_logger("postdate")

LOOKUP_SECONDS = 20
"""How long a provider is asked about a doubtful run."""

CUT_OFF_SECONDS = 5.0
"""How long a run may take to end once it is cut off. After that the engine goes on without it."""

_A_MOMENT = timedelta(seconds=1)
"""What was claimed ahead is due within this; what is not, a step of the clock has put out of reach."""

_NOT_ITS_OWN = (KeyboardInterrupt, GeneratorExit)
"""What is raised in a handler, but meant for the process or the event loop."""


class Run:
    """A claimed action that is being run, or asked about, in a task of its own.

    It ends exactly once, whatever its handler does, of which the dispatcher hears. It gives its slot back exactly once,
    when its handler is over, which may be later.
    """

    # how each run begins; the class holds it, since a run is made for each action
    over = False
    """Whether it has ended; a handler that does not obey may still be at it."""
    _holds_slot = True
    _in_thread = False
    _limit_at: datetime | None = None
    _cut_off_for: str | None = None
    _for_good = False
    _timer: asyncio.TimerHandle | None = None
    _task: asyncio.Task[None] | None = None

    def __init__(self, claimed: Claimed, action_type: ActionType, *, limit: TimeLimit, dispatcher: Dispatcher) -> None:
        self.claimed = claimed
        self.action_type = action_type
        self._limit = limit
        self._dispatcher = dispatcher
        self._loop = asyncio.get_running_loop()

    @property
    def ends_by(self) -> datetime | None:
        """When it will have ended at the latest (UTC); None before it has begun."""
        if self._limit_at is None:
            return None
        asking = 0 if self.action_type.lookup is None else LOOKUP_SECONDS + CUT_OFF_SECONDS
        return self._limit_at + timedelta(seconds=CUT_OFF_SECONDS + asking)

    def call(self) -> None:
        """Begin to run the handler."""
        self._begin(self._called, "dispatch")

    def ask(self) -> None:
        """Begin to ask the provider what became of a run whose worker is gone: nothing is sent."""
        self._begin(self._asked, "lookup")

    def cut_off(self, why: str) -> None:
        """End it now, without asking the provider. One that does not obey is abandoned after a while."""
        if not self.over:
            self._for_good = True
            self._cancel(f"cut off: {why}")

    def _begin(self, steps: Callable[[], Coroutine[Any, Any, Outcome]], name: str) -> None:
        self._task = task = self._loop.create_task(self._ended_by(steps), name=f"{name}-{self.action_type.name}")
        task.add_done_callback(self._broken_off)

    async def _ended_by(self, steps: Callable[[], Coroutine[Any, Any, Outcome]]) -> None:
        """Take the steps to their end, at which nobody need be called back: that costs as much as a step."""
        outcome = await steps()
        if self._task is not None:
            self._task.remove_done_callback(self._broken_off)
        self._end_with_handler(outcome)

    def _broken_off(self, task: asyncio.Task[None]) -> None:
        """End a run whose task did not come to its end: it was cancelled, perhaps before its first step, or broke."""
        if task.cancelled():
            told = Unconfirmed(self._cut_off_for or "cut off")
            self._end_with_handler(self._unbegun() if self._limit_at is None else told)
        elif (error := task.exception()) is not None:
            self._end_with_handler(Unconfirmed(f"{type(error).__name__}: {cleaned(error)}"))

    def _end_with_handler(self, outcome: Outcome) -> None:
        if self._holds_slot and not self._in_thread:
            self._free_slot()
        self._end(outcome)

    def _end(self, outcome: Outcome) -> None:
        self._stop_timer()
        if not self.over:
            self.over = True
            self._dispatcher.ended(self, sound(outcome))

    def _free_slot(self) -> None:
        self._holds_slot = False
        self._dispatcher.freed(self)

    async def _called(self) -> Outcome:
        ctx = self._dispatcher.context(self)
        if ctx.now < self.claimed.due_at:
            ctx = await self._in_due_time()
        # where this process stood still since the claim, others may have the action by now
        if ctx.stopping or self._for_good or not self.claimed.due_at <= ctx.now < self.claimed.lease_until:
            return self._unbegun()
        try:
            payload = self.action_type.load(self.claimed.action.payload)
        except InvalidPayload as error:
            return NotSent(error)
        self._limit_at = ctx.deadline
        outcome = await self._in_time(ctx, payload)
        if isinstance(outcome, Unconfirmed) and not (self._holds_slot or self._for_good):
            return await self._looked_up(ctx, payload, doubt=outcome)
        return outcome

    async def _in_due_time(self) -> Context:
        """Wait for what the claim was ahead of; not for what a step of the clock has put out of reach."""
        while True:
            ctx = self._dispatcher.context(self)
            left = self.claimed.due_at - ctx.now
            if ctx.stopping or self._for_good or not timedelta(0) < left <= _A_MOMENT:
                return ctx
            await asyncio.sleep(left.total_seconds())

    async def _asked(self) -> Outcome:
        doubt = Unconfirmed(self.claimed.action.last_error or "the worker is gone")
        ctx = self._dispatcher.context(self)
        self._limit_at = ctx.now
        try:
            payload = self.action_type.load(self.claimed.action.payload)
        except InvalidPayload:
            return doubt
        return await self._looked_up(ctx, payload, doubt=doubt)

    def _unbegun(self) -> Outcome:
        now = self._dispatcher.context(self).now
        why = "the engine stopped, the lease ran out, or the clock was set back, before the run could begin"
        return Deferred(max(now, self.claimed.due_at), why)

    async def _in_time(self, ctx: Context, payload: Any) -> Outcome:
        """Call the handler, for as long as its type allows. Being cut off leaves doubt: the request may be out."""
        self._limit.begin(self, self._out_of_time)
        call = self._awaited if self.action_type.is_async else self._threaded
        try:
            return await call(ctx, payload)
        except asyncio.CancelledError as error:
            self._note_who_cancelled()
            return cut_off(ctx, self._cut_off_for or f"cut off: {error}")
        finally:
            self._limit.end(self)
            self._stop_timer()

    async def _looked_up(self, ctx: Context, payload: Any, *, doubt: Unconfirmed) -> Outcome:
        """Ask the provider about a doubtful run. Only a clear answer ends the doubt; any other is added to it."""
        if self.action_type.lookup is None:
            return doubt
        self._start_timer(LOOKUP_SECONDS, partial(self._cancel, f"no answer within {LOOKUP_SECONDS} s"))
        try:
            answer: object = await self.action_type.lookup(ctx, payload)
        except _NOT_ITS_OWN:
            raise
        except asyncio.CancelledError as error:
            self._note_who_cancelled()
            answer = self._cut_off_for or f"cut off: {error}"
        except BaseException as error:  # noqa: BLE001 - whatever it raises, it has told nothing
            answer = error
        finally:
            self._stop_timer()
        if isinstance(answer, Published | NotSent):
            return answer
        told = told_by(answer)
        ctx.log.warning("the provider could not be asked, or cannot tell", error=told)
        return Unconfirmed(f"{doubt.error}; asked: {told}")

    def _out_of_time(self) -> None:
        self._cancel(f"no answer within {self._limit.seconds:g} s")

    def _cancel(self, why: str) -> None:
        self._cut_off_for = why
        if self._task is not None and self._limit_at is not None:  # what has not begun sees it when it would
            self._task.cancel(why)
            self._start_timer(CUT_OFF_SECONDS, self._abandon)

    def _abandon(self) -> None:
        action = self.claimed.action
        _log.error(
            "a handler goes on although it was cut off: its run is settled without it",
            action=str(action.id),
            action_type=action.action_type,
            why=self._cut_off_for,
        )
        self._end(Unconfirmed(f"{self._cut_off_for}; the handler did not end"))

    def _note_who_cancelled(self) -> None:
        """Take our own request back, so that what follows runs on; another's ends the run."""
        if self._task is None:
            return
        if self._cut_off_for is not None:
            self._task.uncancel()
        elif self._task.cancelling():
            self._for_good = True

    def _start_timer(self, seconds: float, then: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(seconds, then)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _awaited(self, ctx: Context, payload: Any) -> Outcome:
        try:
            return said(await self.action_type.handler(ctx, payload))
        except (*_NOT_ITS_OWN, asyncio.CancelledError):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is an outcome
            return raised(ctx, error)
        finally:
            self._free_slot()

    async def _threaded(self, ctx: Context, payload: Any) -> Outcome:
        """Run a synchronous handler in a daemon thread: one that hangs keeps its slot, but not the process, alive."""
        answer: asyncio.Future[Outcome] = self._loop.create_future()
        inherited = copy_context()

        def deliver(outcome: Outcome) -> None:
            self._in_thread = False
            self._free_slot()
            if not answer.done():
                answer.set_result(outcome)

        def work() -> None:
            outcome = inherited.run(called, self.action_type, ctx, payload)
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(deliver, outcome)

        try:
            Thread(target=work, name=f"dispatch-{self.action_type.name}", daemon=True).start()
        except RuntimeError as error:  # no more threads are to be had
            return NotSent(error)
        self._in_thread = True
        return await answer
