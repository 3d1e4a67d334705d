"""How does a person stop a rule, let it go on, and end it for good?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from postdate.domain.rule import RecurringRule, RuleStatus
from postdate.engine.look import look_at, restore_moved
from postdate.engine.withdraw import nominal_of, withdraw
from postdate.store.rules import save_rule
from postdate.verbs.arguments import DEFAULT_ACTOR
from postdate.verbs.rules_held import Hand, changing_rules, existing_rule

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from postdate.kernel import Connectable, Kernel, Unbegun
    from postdate.store.rule_actions import QueuedOccurrence


def pause_rule(
    kernel: Kernel,
    rule: UUID | str,
    *,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> RecurringRule:
    """Let no occurrence of a rule start until it is resumed: those that are queued are withdrawn, what runs goes on.

    What a person asked for beside them, by `run_now` or `post_now`, stays queued. Idempotent. Raises `RuleNotFound`, or
    `RuleMoveRefused`.
    """
    with changing_rules(kernel, connection, actor=actor, note=note) as hand:
        held = hand.hold(rule, verb="pause")
        if held.status is RuleStatus.PAUSED:
            return held
        _withdraw(hand, held, lambda each: nominal_of(each) is not None)
        return _now(hand, replace(held, status=RuleStatus.PAUSED))


def resume_rule(
    kernel: Kernel,
    rule: UUID | str,
    *,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> RecurringRule:
    """Let a paused rule go on: what of its window is still to come is brought back, what passed meanwhile is not.

    Idempotent. Raises `RuleNotFound`, or `RuleMoveRefused`.
    """
    with changing_rules(kernel, connection, actor=actor, note=note) as hand:
        held, now = hand.hold(rule, verb="resume"), hand.now
        if held.status is RuleStatus.ACTIVE:
            return held
        active = _now(hand, replace(held, status=RuleStatus.ACTIVE, last_materialized_at=now, look_at=now))
        look_at(kernel, hand.tx, [active], now=now)
        restore_moved(kernel, hand.tx, active, now=now)
        return existing_rule(hand.tx, active.id)


def end_rule(
    kernel: Kernel,
    rule: UUID | str,
    *,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> RecurringRule:
    """End a rule for good: all that is queued of it is withdrawn; what runs goes on and is recorded (SC32).

    Idempotent. Raises `RuleNotFound`.
    """
    with changing_rules(kernel, connection, actor=actor, note=note) as hand:
        held = hand.hold(rule, verb="end", ended_too=True)
        _withdraw(hand, held, lambda _: True)
        return held if held.status is RuleStatus.ENDED else _now(hand, replace(held, status=RuleStatus.ENDED))


_CAUSES = {
    RuleStatus.PAUSED: "rule_paused",
    RuleStatus.ACTIVE: "rule_resumed",
    RuleStatus.ENDED: "rule_ended",
}


def _withdraw(hand: Hand, rule: RecurringRule, which: Callable[[QueuedOccurrence], bool]) -> None:
    withdraw(hand.kernel, hand.tx, rule, which=which, now=hand.now, actor=hand.actor, note=hand.note)


def _now(hand: Hand, rule: RecurringRule) -> RecurringRule:
    """Let the rule stand so from now on, and its history say so."""
    standing = replace(rule, version=rule.version + 1)
    save_rule(hand.tx, standing)
    hand.tell(standing, _CAUSES[standing.status])
    return standing
