"""How does a person stop a rule, let it go on, and end it for good?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from postdate.domain.rule import RecurringRule, RuleStatus
from postdate.engine.expand import look_at, restore_moved
from postdate.engine.withdraw import withdraw_all
from postdate.store.rules import save_rule
from postdate.verbs.arguments import DEFAULT_ACTOR, actor_name, note_text
from postdate.verbs.rules import Hand, existing_rule, held_rule

if TYPE_CHECKING:
    from uuid import UUID

    from postdate.kernel import Connectable, Kernel, Unbegun


def pause_rule(
    kernel: Kernel,
    rule: UUID | str,
    *,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> RecurringRule:
    """Let nothing more start of a rule until it is resumed: what is queued is withdrawn, what runs goes on.

    Idempotent. Raises `RuleNotFound`, or `RuleMoveRefused`.
    """
    actor, note = actor_name(actor), note_text(note)
    with kernel.transaction(connection) as tx:
        now = kernel.now(tx)
        old = held_rule(tx, rule, verb="pause")
        if old.status is RuleStatus.PAUSED:
            return old
        withdraw_all(kernel, tx, old, now=now, actor=actor, note=note)
        paused = replace(old, status=RuleStatus.PAUSED, version=old.version + 1)
        save_rule(tx, paused)
        Hand(kernel=kernel, tx=tx, now=now, actor=actor, note=note).tell(paused, "rule_paused")
        return paused


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
    actor, note = actor_name(actor), note_text(note)
    with kernel.transaction(connection) as tx:
        now = kernel.now(tx)
        old = held_rule(tx, rule, verb="resume")
        if old.status is RuleStatus.ACTIVE:
            return old
        active = replace(old, status=RuleStatus.ACTIVE, version=old.version + 1, last_materialized_at=now, look_at=now)
        save_rule(tx, active)
        Hand(kernel=kernel, tx=tx, now=now, actor=actor, note=note).tell(active, "rule_resumed")
        look_at(kernel, tx, [active], now=now)
        restore_moved(kernel, tx, active, now=now)
        return existing_rule(tx, active.id)


def end_rule(
    kernel: Kernel,
    rule: UUID | str,
    *,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> RecurringRule:
    """End a rule for good: what is queued is withdrawn; what runs goes on and is recorded (SC32).

    Idempotent. Raises `RuleNotFound`.
    """
    actor, note = actor_name(actor), note_text(note)
    with kernel.transaction(connection) as tx:
        now = kernel.now(tx)
        old = held_rule(tx, rule, verb="end", ended_too=True)
        withdraw_all(kernel, tx, old, now=now, actor=actor, note=note)
        if old.status is RuleStatus.ENDED:
            return old
        ended = replace(old, status=RuleStatus.ENDED, version=old.version + 1)
        save_rule(tx, ended)
        Hand(kernel=kernel, tx=tx, now=now, actor=actor, note=note).tell(ended, "rule_ended")
        return ended
