"""How does what a rule has in the queue leave it, such that it can come back?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postdate.domain.rule import OccurrenceState, nominal_instant, occurrence_name
from postdate.domain.states import Cause, Reason
from postdate.hooks import tell_settled
from postdate.store.occurrences import lines_of, withdraw_lines
from postdate.store.outcomes import withdraw_queued
from postdate.store.rule_actions import queued_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.rule import RecurringRule
    from postdate.kernel import Kernel
    from postdate.store.rule_actions import QueuedOccurrence
    from postdate.store.transaction import Transaction


def withdraw(
    kernel: Kernel,
    tx: Transaction,
    rule: RecurringRule,
    *,
    which: Callable[[QueuedOccurrence], bool],
    now: datetime,
    actor: str,
    note: str | None,
) -> frozenset[UUID]:
    """Withdraw what the rule has in the queue, as far as `which` says so; return these actions.

    The ledger then says `withdrawn`, so that the next look may bring an occurrence back.
    """
    queued = {each.action_id: each for each in queued_of(tx, rule.id) if which(each)}
    gone = withdraw_queued(
        tx, list(queued), cause=Cause.WITHDRAW, reason=Reason.RULE_CHANGED, now=now, actor=actor, note=note
    )
    withdraw_lines(tx, {action_id: queued[action_id].publish_at for action_id in gone}, now=now)
    tell_settled(tx, kernel.registry, {action_id: queued[action_id].action_type for action_id in gone}, now=now)
    return gone


def withdraw_window(
    kernel: Kernel,
    tx: Transaction,
    rule: RecurringRule,
    *,
    now: datetime,
    actor: str,
    note: str | None,
    since: datetime | None = None,
) -> frozenset[UUID]:
    """Withdraw what the rule has materialised for later than now and is queued; return these actions.

    `since` bounds the nominal instants. What a person has moved stays where it is.
    """
    made = _actions_in(tx, rule, OccurrenceState.MATERIALISED, since=since or now)
    return withdraw(
        kernel,
        tx,
        rule,
        which=lambda each: each.action_id in made and each.publish_at > now,
        now=now,
        actor=actor,
        note=note,
    )


def withdraw_moved(
    kernel: Kernel,
    tx: Transaction,
    rule: RecurringRule,
    *,
    now: datetime,
    actor: str,
    note: str | None,
    since: datetime,
) -> frozenset[UUID]:
    """Withdraw what a person has moved of the occurrences from `since` on and is queued; return these actions."""
    moved = _actions_in(tx, rule, OccurrenceState.MOVED, since=since)
    return withdraw(kernel, tx, rule, which=lambda each: each.action_id in moved, now=now, actor=actor, note=note)


def _actions_in(tx: Transaction, rule: RecurringRule, state: OccurrenceState, *, since: datetime) -> set[UUID | None]:
    return {line.action_id for line in lines_of(tx, rule.id, since=since) if line.state is state}


def nominal_of(queued: QueuedOccurrence) -> datetime | None:
    """Return the nominal instant (UTC) of a queued action; None for what a person asked for beside the occurrences."""
    at = nominal_instant(queued.occurrence)
    return at if at is not None and occurrence_name(at) == queued.occurrence else None
