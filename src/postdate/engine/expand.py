"""When are recurring rules looked at, so that their occurrences become actions in time?"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import structlog

from postdate.clock import monotonic
from postdate.engine.look import LookReport, look_at
from postdate.store.owners import hold_existing_owners
from postdate.store.rules import hold_rules_to_look_at, rules_to_look_at

if TYPE_CHECKING:
    from datetime import datetime

    from postdate.kernel import Kernel
    from postdate.store.transaction import Transaction

_log = structlog.get_logger("postdate")

BATCH = 500
"""How many rules one transaction looks at, at most."""

LONGEST = timedelta(seconds=30)
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
        while (batch := await self._kernel.work(partial(look_at_batch, self._kernel, now=now))).looked:
            total += batch
            if monotonic() >= until:
                break
        for rule_id, error in total.failed.items():
            _log.warning("a recurring rule cannot be read", rule=str(rule_id), error=error)
        return total


def look_at_batch(kernel: Kernel, tx: Transaction, *, now: datetime) -> LookReport:
    """Look at the rules that have been waiting longest for it, at most `BATCH`; those in others' hands are left out."""
    found = rules_to_look_at(tx, now=now, limit=BATCH)
    if not found:
        return LookReport()
    hold_existing_owners(
        tx, workspaces={each for each, _ in found.values()}, users={each for _, each in found.values()}
    )
    return look_at(kernel, tx, hold_rules_to_look_at(tx, list(found), now=now), now=now)
