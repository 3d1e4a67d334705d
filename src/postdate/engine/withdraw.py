"""How does what a rule has in the queue leave it, such that it can come back?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postdate.domain.rule import OccurrenceState, nominal_instant, occurrence_name
from postdate.domain.states import Cause, Reason
from postdate.hooks import tell_settled
from postdate.store.occurrences import lines_of, queued_of, withdraw_lines
from postdate.store.outcomes import withdraw_queued

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.rule import RecurringRule
    from postdate.kernel import Kernel
    from postdate.store.occurrences import QueuedOccurrence
    from postdate.store.transaction import Transaction


def withdraw_window(
    kernel: Kernel,
    tx: Transaction,
    rule: RecurringRule,
    *,
    now: datetime,
    actor: str,
    note: str | None = None,
    since: datetime | None = None,
) -> frozenset[UUID]:
    """Withdraw what the rule has materialised for later than now and is queued; return these actions.

    `since` bounds the nominal instants. What a person has moved stays where it is. The ledger then says `withdrawn`, so
    that the next look may bring an occurrence back.
    """
    lines = {
        line.action_id: line
        for line in lines_of(tx, rule.id, since=since or now)
        if line.state is OccurrenceState.MATERIALISED
    }
    wanted = {
        each.action_id: each for each in queued_of(tx, rule.id) if each.action_id in lines and each.publish_at > now
    }
    return _withdraw(kernel, tx, wanted, now=now, actor=actor, note=note)


def withdraw_moved(
    kernel: Kernel, tx: Transaction, rule: RecurringRule, *, now: datetime, actor: str, since: datetime
) -> frozenset[UUID]:
    """Withdraw what a person has moved of the occurrences from `since` on and is queued; return these actions."""
    moved = {line.action_id for line in lines_of(tx, rule.id, since=since) if line.state is OccurrenceState.MOVED}
    wanted = {each.action_id: each for each in queued_of(tx, rule.id) if each.action_id in moved}
    return _withdraw(kernel, tx, wanted, now=now, actor=actor, note=None)


def withdraw_occurrences(
    kernel: Kernel, tx: Transaction, rule: RecurringRule, *, now: datetime, actor: str, note: str | None = None
) -> frozenset[UUID]:
    """Withdraw every occurrence of the rule that is queued, moved and overdue ones too; return these actions.

    What a person has asked for beside them stays: nothing would bring it back.
    """
    queued = {each.action_id: each for each in queued_of(tx, rule.id) if nominal_of(each) is not None}
    return _withdraw(kernel, tx, queued, now=now, actor=actor, note=note)


def withdraw_actions(
    kernel: Kernel, tx: Transaction, rule: RecurringRule, action_ids: Collection[UUID], *, now: datetime, actor: str
) -> frozenset[UUID]:
    """Withdraw those of these actions of the rule that are queued, and return them."""
    queued = {each.action_id: each for each in queued_of(tx, rule.id) if each.action_id in action_ids}
    return _withdraw(kernel, tx, queued, now=now, actor=actor, note=None)


def nominal_of(queued: QueuedOccurrence) -> datetime | None:
    """Return the nominal instant (UTC) of a queued action; None for what a person asked for beside the occurrences."""
    at = nominal_instant(queued.occurrence)
    return at if at is not None and occurrence_name(at) == queued.occurrence else None


def withdraw_all(
    kernel: Kernel, tx: Transaction, rule: RecurringRule, *, now: datetime, actor: str, note: str | None = None
) -> frozenset[UUID]:
    """Withdraw everything of the rule that is queued, whoever asked for it; return these actions."""
    queued = {each.action_id: each for each in queued_of(tx, rule.id)}
    return _withdraw(kernel, tx, queued, now=now, actor=actor, note=note)


def _withdraw(
    kernel: Kernel,
    tx: Transaction,
    queued: Mapping[UUID, QueuedOccurrence],
    *,
    now: datetime,
    actor: str,
    note: str | None,
) -> frozenset[UUID]:
    gone = withdraw_queued(
        tx, list(queued), cause=Cause.WITHDRAW, reason=Reason.RULE_CHANGED, now=now, actor=actor, note=note
    )
    withdraw_lines(tx, {action_id: queued[action_id].publish_at for action_id in gone}, now=now)
    tell_settled(tx, kernel.registry, {action_id: queued[action_id].action_type for action_id in gone}, now=now)
    return gone
