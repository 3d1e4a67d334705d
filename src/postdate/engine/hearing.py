"""How is a source heard: a batch at a time, within its time, and to the end or not at all?"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from postdate.clock import monotonic
from postdate.domain.reconcile import thing_of
from postdate.domain.text import cleaned
from postdate.errors import Invalid, SourceFailed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
    from datetime import timedelta
    from typing import TypeVar
    from uuid import UUID

    from postdate.domain.reconcile import Parent
    from postdate.sources import Desired, Source

    Answer = TypeVar("Answer")

BATCH = 500
"""How much of what a source says is in memory, and in one transaction, at once."""

_ENDING_SECONDS = 5.0
_NOTABLY_LATE_SECONDS = 2.0
"""By which its time-out comes only where something blocks the event loop, and most likely the source does."""


@dataclass(frozen=True, kw_only=True)
class Heard:
    """A part of what a source says."""

    desired: Mapping[str, Desired]
    """By key, in the order in which it was said."""
    repeated: Sequence[str] = ()
    """Keys that were said more than once in this part."""
    unreadable: Sequence[Invalid] = ()
    """What is wrong with what has no key: nobody can tell which action it is about."""


class Hearing:
    """One source, heard for one workspace. Raises `SourceFailed` for whatever goes wrong on its side."""

    def __init__(self, name: str, source: Source, workspace: UUID | None, *, timeout: timedelta) -> None:
        self._name = name
        self._source = source
        self._workspace = workspace
        self._seconds = timeout.total_seconds()
        """What is left of its time."""
        self._allowed = self._seconds

    async def desired(self, *, thing_id: str | None = None) -> AsyncGenerator[Heard]:
        """Yield all that the source says, of one thing where that is asked for."""
        parts: asyncio.Queue[list[Desired] | None] = asyncio.Queue(1)
        listening = asyncio.create_task(self._listen(parts, thing_id), name="postdate-source")
        try:
            while (part := await self._within(_next(parts, listening))) is not None:
                yield _heard(part, thing_id)
        finally:
            await _ended(listening)

    async def parents(self, thing_ids: Sequence[str]) -> Mapping[str, Parent]:
        """Return how these things stand upstream."""
        answering = asyncio.create_task(self._answer(thing_ids), name="postdate-source")
        try:
            return await self._within(_result(answering))
        finally:
            await _ended(answering)

    async def _answer(self, thing_ids: Sequence[str]) -> Mapping[str, Parent]:
        return await self._source.parents(thing_ids)

    async def _listen(self, parts: asyncio.Queue[list[Desired] | None], thing_id: str | None) -> None:
        """Run the source's own code in one task from its beginning to its end, as its time-outs may expect."""
        part: list[Desired] = []
        try:
            async with _iterated(self._source.desired(self._workspace, thing_id=thing_id)) as said:
                async for each in said:
                    part.append(each)
                    if len(part) == BATCH:
                        await parts.put(part)
                        part = []
        except Exception:
            task = asyncio.current_task()
            if task is not None and not task.cancelling():  # else nobody listens any more
                await parts.put(part)
            raise
        await parts.put(part)
        await parts.put(None)

    async def _within(self, answer: Awaitable[Answer]) -> Answer:
        """Wait for the source, as long as it has time left."""
        began = monotonic()
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                return await answer
        except Exception as error:
            why = f"{type(error).__name__}: {cleaned(error, limit=500)}"
            if limit.expired():
                why = f"took longer than {self._allowed:g} s"
                late = monotonic() - began - self._seconds
                if late > _NOTABLY_LATE_SECONDS:
                    why = f"{why}, and the event loop stood still for {late:.0f} s"
            raise SourceFailed(self._name, self._workspace, why=why) from error
        finally:
            self._seconds = max(self._seconds - (monotonic() - began), 0.0)


@asynccontextmanager
async def _iterated(said: object) -> AsyncIterator[AsyncIterable[Desired]]:
    """Close it afterwards, where it can be closed. Raises `TypeError` for a plain generator, and for a coroutine."""
    if not isinstance(said, AsyncIterable):
        if isinstance(said, Coroutine):
            said.close()
        raise TypeError(f"desired must be an async generator, and not a {type(said).__name__}")
    try:
        yield said
    finally:
        if isinstance(said, AsyncGenerator):
            await said.aclose()


async def _next(parts: asyncio.Queue[list[Desired] | None], listening: asyncio.Task[None]) -> list[Desired] | None:
    """Return the next part, or raise what the source has failed with."""
    taking = asyncio.ensure_future(parts.get())
    try:
        await asyncio.wait({taking, listening}, return_when=asyncio.FIRST_COMPLETED)
        if not taking.done() and parts.empty():
            await _result(listening)  # it has failed: one that went well leaves something to take
        return await taking
    finally:
        taking.cancel()


async def _result(running: asyncio.Task[Answer]) -> Answer:
    """Wait for the source's task. Whatever it raises is its own failure, short of what ends the process."""
    await asyncio.wait({running})
    if running.cancelled():
        raise asyncio.InvalidStateError("it was cancelled from within")
    error = running.exception()
    if error is None or isinstance(error, Exception | KeyboardInterrupt | SystemExit):
        return running.result()
    raise asyncio.InvalidStateError(f"it raised {type(error).__name__}: {cleaned(error, limit=500)}")


async def _ended(listening: asyncio.Task[Any]) -> None:
    """End the source's task, but do not wait for ever for one that does not obey."""
    listening.cancel()
    await asyncio.wait({listening}, timeout=_ENDING_SECONDS)
    listening.add_done_callback(lambda late: late.cancelled() or late.exception())  # heard, lest asyncio complain


def _heard(part: Sequence[Desired], thing_id: str | None) -> Heard:
    """Return what the part says, of one thing where that is asked for, and what it says again or without a key."""
    keyed, unreadable = _by_key(part)
    asked = [(key, each) for key, each in keyed if thing_id is None or thing_of(key) == thing_id]
    desired: dict[str, Desired] = {}
    for key, each in asked:
        desired.setdefault(key, each)
    repeated = Counter(key for key, _ in asked) - Counter(desired.keys())
    return Heard(desired=desired, repeated=list(repeated.elements()), unreadable=unreadable)


def _by_key(part: Sequence[Desired]) -> tuple[list[tuple[str, Desired]], list[Invalid]]:
    """Return what has a key beside it, and what is wrong with the rest."""
    keyed: list[tuple[str, Desired]] = []
    unreadable: list[Invalid] = []
    for each in part:
        try:
            keyed.append((each.key, each))
        except Invalid as error:
            unreadable.append(error)
    return keyed, unreadable
