"""Who changes a rule, and how is it kept from changing otherwise meanwhile?"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from postdate.domain.rule import RuleStatus
from postdate.errors import RuleMoveRefused, RuleNotFound
from postdate.store.events import append_events, event_row
from postdate.store.rules import find_rule, hold_rule_behind_owners
from postdate.verbs.arguments import actor_name, note_text, rule_uuid

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.rule import RecurringRule
    from postdate.kernel import Connectable, Kernel, Unbegun
    from postdate.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class Hand:
    """Who changes a rule, why and when, and in which transaction."""

    kernel: Kernel
    tx: Transaction
    now: datetime
    actor: str
    note: str | None

    def hold(self, rule: UUID | str, *, verb: str, ended_too: bool = False) -> RecurringRule:
        """Return the rule, held until the transaction ends, and its owners with it.

        Raises `RuleNotFound`, or `RuleMoveRefused` unless ended ones will do.
        """
        rule_id = rule_uuid(rule)
        held = hold_rule_behind_owners(self.tx, rule_id)
        if held is None:
            raise RuleNotFound(rule_id)
        if held.status is RuleStatus.ENDED and not ended_too:
            raise RuleMoveRefused(held.id, verb=verb, status=held.status)
        return held

    def tell(self, rule: RecurringRule, cause: str, **detail: Any) -> None:
        """Leave a line in the history of the rule."""
        event = event_row(
            rule.id, rule.workspace_id, at=self.now, cause=cause, actor=self.actor, note=self.note, **detail
        )
        append_events(self.tx, [event])


@contextmanager
def changing_rules(
    kernel: Kernel, connection: Connectable | Unbegun | None, *, actor: str, note: str | None
) -> Iterator[Hand]:
    """Give what changes rules in one transaction. Raises `InvalidText`."""
    actor, note = actor_name(actor), note_text(note)
    with kernel.transaction(connection) as tx:
        yield Hand(kernel=kernel, tx=tx, now=kernel.now(tx), actor=actor, note=note)


def existing_rule(tx: Transaction, rule_id: UUID) -> RecurringRule:
    """Return the rule. Raises `RuleNotFound`."""
    found = find_rule(tx, rule_id)
    if found is None:
        raise RuleNotFound(rule_id)
    return found
