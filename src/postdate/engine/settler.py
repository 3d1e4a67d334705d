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
from postdate.engine.settle import ending_of, settle_set
from postdate.store.queue import still_leased

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from postdate.engine.dispatch import Ended
    from postdate.kernel import Kernel
    from postdate.registry import ActionType
    from postdate.store.transaction import Transaction

_log = structlog.get_logger("postdate")

_LONGEST_PAUSE = 5.0
_LOCKED_PAUSE = 0.2


class Settler:
    """Writes what came of the runs. Keeps a batch until it is written, however long the database is away."""

    def __init__(self, kernel: Kernel, types: Mapping[str, ActionType], *, written: Callable[[], None]) -> None:
        self._kernel = kernel
        self._types = types
        self._written = written
        self._waiting: list[Ended] = []
        self._ended = asyncio.Event()
        self._all_written = asyncio.Event()
        self._all_written.set()

    def add(self, ended: Ended) -> None:
        """Take over a run that has ended."""
        self._waiting.append(ended)
        self._all_written.clear()
        self._ended.set()

    async def drain(self) -> None:
        """Wait until everything taken over is written."""
        await self._all_written.wait()

    async def run(self) -> None:
        """Write batches until cancelled."""
        while True:
            await self._ended.wait()
            self._ended.clear()
            batch, self._waiting = self._waiting, []
            locked = await self._write_surely(batch)
            self._waiting += locked
            if locked:
                asyncio.get_running_loop().call_later(_LOCKED_PAUSE, self._ended.set)
            if not self._waiting:
                self._all_written.set()
            self._written()

    async def _write_surely(self, batch: Sequence[Ended]) -> list[Ended]:
        """Write the batch and return those of it whose rows are locked."""
        pause = 0.1
        while True:
            try:
                return await self._write(batch)
            except Exception as error:  # noqa: BLE001 - logged, and tried until it is written
                _log.warning("settling failed, trying again", runs=len(batch), error=str(error), pause=pause)
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def _write(self, batch: Sequence[Ended]) -> list[Ended]:
        try:
            return await self._settle(batch)
        except (DataError, IntegrityError) as error:
            if len(batch) == 1:
                refused = str(batch[0].claimed.action.id)
                _log.warning("this outcome is refused; its lease will run out", action=refused, error=str(error))
                return []
            return [locked for ended in batch for locked in await self._write([ended])]

    async def _settle(self, batch: Sequence[Ended]) -> list[Ended]:
        now = self._kernel.clock.now()
        endings = [ending_of(ended.claimed, self._settlement(ended, now)) for ended in batch]

        def write(tx: Transaction) -> tuple[frozenset[UUID], set[UUID]]:
            won = settle_set(tx, self._types, endings, now=now)
            return won, still_leased(
                tx, {end.action_id: end.lease_token for end in endings if end.action_id not in won}
            )

        won, locked = await self._kernel.work(write)
        for ending in endings:
            if ending.action_id not in won | locked:
                _log.warning("lost the lease before settling; nothing changed", action=str(ending.action_id))
        return [ended for ended in batch if ended.claimed.action.id in locked]

    def _settlement(self, ended: Ended, now: datetime) -> Settlement:
        action = ended.claimed.action
        return settle(
            ended.outcome,
            attempt_count=action.attempt_count,
            policy=self._types[action.action_type].policy,
            now=now,
            jitter=random.random(),  # noqa: S311 - spreads retries, guards nothing
        )
