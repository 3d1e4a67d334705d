"""Has anything been due for long because no engine here runs its type?"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import structlog

from postdate.store.diagnosis import overdue_of_other_types

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from postdate.kernel import Kernel

_log = structlog.get_logger("postdate")

LONG_DUE = timedelta(hours=1)
"""How long other processes have to run what this one does not know, before it is told. It is told as often."""


class UnhandledReport:
    """Logs, once an hour, how many actions of each type that is unknown here have been due for an hour."""

    def __init__(self, kernel: Kernel, types: Collection[str]) -> None:
        self._kernel = kernel
        self._types = list(types)
        self._looked_at: datetime | None = None

    async def run_once(self, now: datetime) -> Mapping[str, int]:
        """Return what was told: how many actions of each type. Looks at the database once an hour."""
        if self._looked_at is not None and timedelta(0) <= now - self._looked_at < LONG_DUE:
            return {}
        found = await self._kernel.work(
            lambda tx: overdue_of_other_types(tx, self._types, due_before=now - LONG_DUE), read_only=True
        )
        self._looked_at = now
        for action_type, count in found.items():
            _log.warning("due for over an hour, and nobody runs it here", action_type=action_type, actions=count)
        return found
