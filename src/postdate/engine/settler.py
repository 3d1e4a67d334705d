"""How do runs that have ended reach the database?

In batches: whatever has ended while the last batch was being written makes the next one. What cannot be written now,
since another transaction has its row locked, joins a later one and holds nobody up.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import structlog
from sqlalchemy.exc import DataError, IntegrityError

from postdate.domain.settle import Settlement, settle
from postdate.engine.settle import EndingSet, ending_of, settle_set
from postdate.engine.waits import Waits
from postdate.errors import EngineBroken
from postdate.store.leases import lease_of
from postdate.store.passing import passes
from postdate.store.queue import still_leased

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from postdate.domain.action import Claimed
    from postdate.engine.dispatch import Ended
    from postdate.kernel import Kernel
    from postdate.registry import ActionType
    from postdate.store.leases import Lease
    from postdate.store.transaction import Transaction

_log = structlog.get_logger("postdate")

MOST_UNWRITTEN = 2_000
"""From how many outcomes on that wait to be written no more is claimed."""

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_LOCKED_PAUSE = 0.2
_REFUSED_PAUSE = 0.4
_REFUSALS = 12
"""How often an outcome is tried for which nobody knows why it is refused: about a minute."""


class Settler:
    """Writes what came of the runs. Keeps a batch until it is written, however long the database is away."""

    def __init__(self, kernel: Kernel, types: Mapping[str, ActionType], *, written: Callable[[], None]) -> None:
        self._kernel = kernel
        self._types = types
        self._written = written
        self._unwritten: set[Ended] = set()
        self._waiting: list[Ended] = []
        self._refusals: dict[Ended, Waits] = {}
        self._ended = asyncio.Event()
        self._all_written = asyncio.Event()
        self._all_written.set()
        self._failure: Exception | None = None

    @property
    def unwritten(self) -> Collection[Claimed]:
        """The claims whose outcomes are not written yet."""
        return [ended.claimed for ended in self._unwritten]

    @property
    def is_full(self) -> bool:
        """Whether the database does not keep up: what is claimed now would only wait to be written."""
        return len(self._unwritten) >= MOST_UNWRITTEN

    def add(self, ended: Ended) -> None:
        """Take over a run that has ended."""
        self._unwritten.add(ended)
        self._waiting.append(ended)
        self._all_written.clear()
        self._ended.set()

    async def drain(self) -> None:
        """Wait until everything taken over is written. Raises `EngineBroken` where nobody writes any more."""
        await self._all_written.wait()
        self.require_alive()

    def require_alive(self) -> None:
        """Raise `EngineBroken` where nobody writes any more."""
        if self._failure is not None:
            raise EngineBroken("settler") from self._failure

    async def run(self) -> None:
        """Write batches until cancelled."""
        try:
            while True:
                await self._ended.wait()
                self._ended.clear()
                batch, self._waiting = self._waiting, []
                await self._write_surely(batch)
                if not self._unwritten:
                    self._all_written.set()
                self._written()
        except Exception as error:
            self._failure = error  # whoever waits for what is never written must hear of it
            self._all_written.set()
            self._written()
            raise

    async def _write_surely(self, batch: Sequence[Ended]) -> None:
        waits = Waits(_FIRST_PAUSE, _LONGEST_PAUSE)
        left = list(batch)
        while left:
            try:
                await self._write(left)
            except Exception as error:  # noqa: BLE001 - logged, and tried until it is written
                pause = waits.next()
                _log.warning("settling failed, trying again", runs=len(left), error=str(error), pause=pause)
                await asyncio.sleep(pause)
            else:
                return

    async def _write(self, left: list[Ended]) -> None:
        """Write these, and take out of `left` what is written, given up or put off until later."""
        batch = list(left)
        try:
            locked = await self._settle(batch)
        except Exception as error:
            if passes(error):
                raise
            for ended in batch if len(batch) > 1 else ():
                await self._write([ended])
                left.remove(ended)
            if len(batch) == 1:
                self._refused(batch[0], error)
            return
        self._put_off(locked, _LOCKED_PAUSE)
        self._forget(set(batch) - set(locked))

    def _refused(self, ended: Ended, error: Exception) -> None:
        """Put it off, on its own; give up what no database would take, and what was refused too often."""
        action = str(ended.claimed.action.id)
        waits = self._refusals.setdefault(ended, Waits(_REFUSED_PAUSE, _LONGEST_PAUSE))
        pause, times = waits.next(), waits.count
        if times < _REFUSALS and not isinstance(error, DataError | IntegrityError):
            _log.warning("this outcome is refused, trying again", action=action, times=times, error=str(error))
            self._put_off([ended], pause)
        else:
            _log.error("this outcome is refused; its lease will run out", action=action, error=str(error))
            self._forget([ended])

    def _forget(self, ended: Collection[Ended]) -> None:
        self._unwritten.difference_update(ended)
        for each in ended if self._refusals else ():
            self._refusals.pop(each, None)

    def _put_off(self, again: Sequence[Ended], seconds: float) -> None:
        if again:
            asyncio.get_running_loop().call_later(seconds, self._take_up, again)

    def _take_up(self, again: Sequence[Ended]) -> None:
        self._waiting += again
        self._ended.set()

    async def _settle(self, batch: Sequence[Ended]) -> list[Ended]:
        """Settle these runs in one transaction, and return those whose rows are locked."""
        now = self._kernel.clock.now()
        endings = [ending_of(each.claimed, self._settlement(each, now)) for each in batch]
        ended = EndingSet.of(self._kernel.tables, endings)

        def write(tx: Transaction) -> tuple[set[Lease], set[Lease]]:
            won = settle_set(tx, self._types, ended, now=now)
            if len(won) == len(endings):
                return set(), set()
            lost = {(end.action_id, end.lease_token) for end in endings if end.action_id not in won}
            return lost, still_leased(tx, lost)

        lost, locked = await self._kernel.work(write)
        for action_id, _ in lost - locked:
            _log.warning("lost the lease before settling; nothing changed", action=str(action_id))
        return [each for each in batch if lease_of(each.claimed) in locked] if locked else []

    def _settlement(self, ended: Ended, now: datetime) -> Settlement:
        action = ended.claimed.action
        return settle(
            ended.outcome,
            attempt_count=action.attempt_count,
            policy=self._types[action.action_type].policy,
            now=now,
            jitter=random.random(),  # noqa: S311 - spreads retries, guards nothing
        )
