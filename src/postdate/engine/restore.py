"""Does this process go on, or does the database wait for a person's release?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from postdate.domain.restore import why_hold
from postdate.store.heartbeat import beat, database_identity, heartbeat, hold_all

if TYPE_CHECKING:
    from datetime import datetime

    from postdate.kernel import Kernel
    from postdate.store.transaction import Transaction

_log = structlog.get_logger("postdate")


class RestoreWatch:
    """Leaves the time of each tick in the database, and puts everything on hold where an old one was put back."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.seen: datetime | None = None
        """The last tick that this process has written."""

    async def run_once(self, now: datetime) -> str | None:
        """Return why nothing may be claimed or recovered, and log it as an error; None where all is well."""
        because = await self._kernel.work(lambda tx: self._beat(tx, now))
        if because is not None:
            _log.error("on hold: nothing fires until `postdate release`", because=because)
        elif not self._kernel.clock.leaps:
            self.seen = now
        return because

    def _beat(self, tx: Transaction, now: datetime) -> str | None:
        found = heartbeat(tx, for_update=True)
        if found.held_because is not None or self._kernel.clock.leaps:
            return found.held_because
        identity = database_identity(tx)
        because = why_hold(
            now=now,
            last_tick_at=found.last_tick_at,
            last_identity=found.identity,
            identity=identity,
            seen=self.seen,
            restore_hold=self._kernel.settings.restore_hold,
        )
        if because is not None:
            hold_all(tx, now=now, because=because)
        else:
            beat(tx, now=now, identity=identity)
        return because
