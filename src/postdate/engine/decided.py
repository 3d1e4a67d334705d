"""Which occurrences did people decide about, now that the rules of a zone are others?

Whoever skips the one of Tuesday at nine means Tuesday at nine, whatever instant that is. Nothing is queued for what was
skipped, for a rule that is paused, and beyond the window, so that no action tells of the shift.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from postdate.domain.rule import RuleStatus
from postdate.engine.renaming import BAND, meant_now, rename_occurrences
from postdate.store.decided import decided_page
from postdate.store.rules import find_rules, hold_rule_behind_owners

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.rule import RuleOccurrence
    from postdate.kernel import Kernel
    from postdate.store.transaction import Transaction

_READ = 2000
"""How many decisions are looked at in one go."""


async def rename_decided(kernel: Kernel, *, now: datetime) -> int:
    """Let what people decided about occurrences to come be about those at the same wall times, and return how many.

    Each rule is written in a transaction of its own.
    """
    renamed, after = 0, None
    while page := await kernel.work(partial(decided_page, since=now - BAND, limit=_READ, after=after), read_only=True):
        for rule_id in await kernel.work(partial(_shifted_rules, lines=page), read_only=True):
            renamed += await kernel.work(partial(_rename_of, kernel, rule_id=rule_id, now=now))
        after = page[-1]
    return renamed


def _shifted_rules(tx: Transaction, *, lines: Sequence[RuleOccurrence]) -> list[UUID]:
    rules = find_rules(tx, {line.rule_id for line in lines})
    live = {rule_id: rule for rule_id, rule in rules.items() if rule.status is not RuleStatus.ENDED}
    return sorted(
        {line.rule_id for line in lines if line.rule_id in live and meant_now(live[line.rule_id], line) != line}
    )


def _rename_of(kernel: Kernel, tx: Transaction, *, rule_id: UUID, now: datetime) -> int:
    rule = hold_rule_behind_owners(tx, rule_id)
    if rule is None or rule.status is RuleStatus.ENDED:
        return 0
    return len(rename_occurrences(kernel, tx, rule, {}, now=now))
