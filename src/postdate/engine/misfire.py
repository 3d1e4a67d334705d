"""Which repetitions of a claim were missed, and are not run late?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from postdate.domain.action import RECURRING
from postdate.domain.misfire import runs_late
from postdate.domain.outcome import Skipped
from postdate.domain.rule import RuleStatus, SkipReason
from postdate.domain.settle import settle
from postdate.engine.settle import ending_of
from postdate.errors import Invalid
from postdate.store.holidays import days_off
from postdate.store.late import late_occurrences
from postdate.store.occurrences import skip_lines
from postdate.store.rules import find_rule

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from postdate.domain.action import Action, Claimed
    from postdate.domain.settle import Policy
    from postdate.engine.settle import Ending
    from postdate.store.late import LateOccurrence
    from postdate.store.transaction import Transaction

_PROMPT = timedelta(seconds=1)
"""What begins within this is not late: no grace is shorter."""


def missed(tx: Transaction, claimed: Sequence[Claimed], policy: Policy, *, now: datetime) -> list[Ending]:
    """Return the ending of what its rule does not run late, and note it in the rule's ledger.

    Only the first attempt counts, and what no quiet hours have put off: later ones are late on purpose.
    """
    late = [one.action.id for one in claimed if _is_late(one.action, now=now)]
    if not late:
        return []
    left_out = {found.action_id for found in late_occurrences(tx, late, now=now) if not _runs(tx, found, now=now)}
    skip_lines(tx, left_out, reason=SkipReason.MISSED, now=now)
    said = Skipped("missed: its rule does not run it so late")
    return [
        ending_of(one, settle(said, attempt_count=one.action.attempt_count, policy=policy, now=now, jitter=0.0))
        for one in claimed
        if one.action.id in left_out
    ]


def _is_late(action: Action, *, now: datetime) -> bool:
    """Whether this is a repetition that begins late, and for the first time."""
    first = action.attempt_count == 1 and action.last_error is None
    return action.origin == RECURRING and first and now - action.publish_at > _PROMPT


def _runs(tx: Transaction, found: LateOccurrence, *, now: datetime) -> bool:
    superseded = found.superseded or (found.misfire == "once" and _has_more(tx, found, now=now))
    return runs_late(found.misfire, late=now - found.nominal_at, grace=found.grace, superseded=superseded)


def _has_more(tx: Transaction, found: LateOccurrence, *, now: datetime) -> bool:
    """Whether the rule has a later occurrence that is due, but that the expander has not come to yet."""
    if found.decided_upto >= now:
        return False
    try:
        rule = find_rule(tx, found.rule_id)
        if rule is None or rule.status is not RuleStatus.ACTIVE:
            return False
        days = days_off(tx, rule)
        return next(rule.occurrences(found.decided_upto, now, holidays=days), None) is not None
    except (Invalid, TypeError, ValueError):  # a row that makes no sense stops no claim: the expander tells of it
        return False
