"""When are recurring rules looked at, so that their occurrences become actions in time?"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import structlog

from postdate.clock import monotonic
from postdate.engine.look import LookReport, look_at
from postdate.store.owners import hold_existing_owners
from postdate.store.rules import hold_rules_to_look_at, rules_to_look_at

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from postdate.kernel import Kernel
    from postdate.store.rules import DueRule
    from postdate.store.transaction import Transaction

_log = structlog.get_logger("postdate")

BATCH = 500
"""How many rules one transaction looks at, at most."""

AT_ONCE = 2
"""How many transactions do so at once: while the database works for one, the other is computed."""

PAGE = 20
"""How many batches are found at once."""

LONGEST = timedelta(seconds=60)
"""How long one run goes on."""


class Expander:
    """The pass that looks at the rules whose look has come: each about once a day, in batches."""

    name = "expand"
    interval = timedelta(minutes=1)

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    async def run_once(self, now: datetime) -> LookReport:
        """Look at each rule whose look has come by `now`, a batch in each transaction, and report.

        What it does not come to in its time the next run does, since other passes wait for it.
        """
        until = monotonic() + LONGEST.total_seconds()
        total = LookReport()
        while due := await self._kernel.work(partial(rules_to_look_at, now=now, limit=PAGE * BATCH), read_only=True):
            report = await self._look_at(due, now, until=until)
            total += report
            if not report.looked or monotonic() >= until:
                break
        for rule_id, error in total.failed.items():
            _log.warning("a recurring rule cannot be read", rule=str(rule_id), error=error)
        return total

    async def _look_at(self, due: Sequence[DueRule], now: datetime, *, until: float) -> LookReport:
        batches = iter([due[first : first + BATCH] for first in range(0, len(due), BATCH)])

        async def one_after_the_other() -> LookReport:
            total = LookReport()
            for batch in batches:
                total += await self._kernel.work(partial(look_at_batch, self._kernel, due=batch, now=now))
                if monotonic() >= until:
                    break
            return total

        total = LookReport()
        for report in await asyncio.gather(*[one_after_the_other() for _ in range(AT_ONCE)], return_exceptions=True):
            if isinstance(report, BaseException):  # none of them is left to itself
                raise report
            total += report
        return total


def look_at_batch(kernel: Kernel, tx: Transaction, *, due: Sequence[DueRule], now: datetime) -> LookReport:
    """Look at those of the rules whose look has still to come; those in others' hands are left out."""
    hold_existing_owners(tx, workspaces={rule.workspace_id for rule in due}, users={rule.user_id for rule in due})
    return look_at(kernel, tx, hold_rules_to_look_at(tx, [rule.id for rule in due], now=now), now=now)
