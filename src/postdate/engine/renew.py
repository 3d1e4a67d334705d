"""How does a run keep its lease for longer than one lasts?"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import structlog

from postdate.store.leases import lease_of, renew_leases

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from postdate.domain.action import Claimed
    from postdate.engine.dispatch import Dispatcher
    from postdate.kernel import Kernel
    from postdate.store.leases import Lease

_log = structlog.get_logger("postdate")

_PAUSE_AFTER_ERROR = timedelta(seconds=1)


@dataclass(frozen=True, kw_only=True)
class RenewalReport:
    """How many leases that were about to run out last longer now, and how many runs were cut off without theirs."""

    renewed: int
    lost: int


class Renewal:
    """Renews the leases that would run out under what is running, or has ended and is not written yet.

    A run that surely ends within its lease costs nothing. One that has lost its lease is cut off, since another engine
    may have the action by now. While the database is away, or a row is locked, nobody can take a lease over: runs go
    on, and each pass tries again.
    """

    def __init__(self, kernel: Kernel, dispatcher: Dispatcher, unwritten: Callable[[], Collection[Claimed]]) -> None:
        self._kernel = kernel
        self._dispatcher = dispatcher
        self._unwritten = unwritten
        self._lasts = kernel.settings.lease + kernel.settings.lease_margin
        self._every = kernel.settings.lease / 3
        self._until: dict[Lease, datetime] = {}

    async def run(self) -> None:
        """Renew every third of a lease until cancelled, and sooner after an error."""
        pause = self._every
        while True:
            await asyncio.sleep(pause.total_seconds())
            try:
                await self.run_once(self._kernel.clock.now())
            except Exception as error:  # noqa: BLE001 - logged, and tried again
                pause = min(_PAUSE_AFTER_ERROR, self._every)
                _log.warning("leases could not be renewed, trying again", error=str(error), pause=pause.total_seconds())
            else:
                pause = self._every

    async def run_once(self, now: datetime) -> RenewalReport:
        """Renew what would run out before the pass after the next one."""
        ending = set(self._ending(now))
        if not ending:
            return RenewalReport(renewed=0, lost=0)
        until = now + self._lasts
        became = await self._kernel.work(lambda tx: renew_leases(tx, ending, lease_until=until))
        self._until.update(dict.fromkeys(became.renewed, until))
        lost = [run for run in self._dispatcher.running if lease_of(run.claimed) in ending - became.held]
        for run in lost:
            run.cut_off("its lease was lost")
        return RenewalReport(renewed=len(became.renewed), lost=len(lost))

    def _ending(self, now: datetime) -> Iterator[Lease]:
        """Yield the leases that would run out soon, and forget those that are no longer needed."""
        soon = now + 2 * self._every
        needed = {lease_of(run.claimed): (run.claimed, run.ends_by) for run in self._dispatcher.running}
        needed |= {lease_of(claimed): (claimed, None) for claimed in self._unwritten()}
        self._until = {lease: until for lease, until in self._until.items() if lease in needed}
        for lease, (claimed, ends_by) in needed.items():
            until = self._until.get(lease, claimed.lease_until)
            if until <= soon and (ends_by is None or ends_by > until):
                yield lease
