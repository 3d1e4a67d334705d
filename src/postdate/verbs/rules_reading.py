"""Which rules are there, what was done to them, and what was missed?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postdate.domain.instant import instant
from postdate.domain.rule import RecurringRule, RuleStatus
from postdate.errors import Invalid
from postdate.store import rules
from postdate.store.events import events_of
from postdate.store.occurrences import missed_lines
from postdate.verbs.arguments import owner_id, page_limit, rule_uuid
from postdate.verbs.rules_held import existing_rule

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.action import Event
    from postdate.domain.rule import RuleOccurrence
    from postdate.kernel import Connectable, Kernel, Unbegun


def get_rule(kernel: Kernel, rule: UUID | str, *, connection: Connectable | Unbegun | None = None) -> RecurringRule:
    """Return the rule. Raises `RuleNotFound`."""
    with kernel.transaction(connection, read_only=True) as tx:
        return existing_rule(tx, rule_uuid(rule))


def list_rules(
    kernel: Kernel,
    *,
    workspace: UUID | str | None = None,
    user: UUID | str | None = None,
    status: RuleStatus | str | None = None,
    limit: int = 100,
    after: UUID | str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> list[RecurringRule]:
    """Return rules in the order in which they were made, at most `limit`, behind the rule `after`. Raises `Invalid`."""
    of_status = None if status is None else _status(status)
    with kernel.transaction(connection, read_only=True) as tx:
        return rules.page_of_rules(
            tx,
            workspace_id=owner_id(workspace, field="workspace"),
            user_id=owner_id(user, field="user"),
            status=of_status,
            limit=page_limit(limit),
            after=None if after is None else rule_uuid(after, field="after"),
        )


def _status(value: object) -> RuleStatus:
    if not isinstance(value, str) or value not in set(RuleStatus):
        raise Invalid(field="status", rule=f"must be one of {', '.join(RuleStatus)}", value=value)
    return RuleStatus(value)


def rule_history(kernel: Kernel, rule: UUID | str, *, connection: Connectable | Unbegun | None = None) -> list[Event]:
    """Return what people did to the rule, oldest first. Raises `RuleNotFound`."""
    with kernel.transaction(connection, read_only=True) as tx:
        return events_of(tx, existing_rule(tx, rule_uuid(rule)).id)


def missed(
    kernel: Kernel,
    *,
    rule: UUID | str | None = None,
    since: datetime | str | None = None,
    limit: int = 100,
    connection: Connectable | Unbegun | None = None,
) -> list[RuleOccurrence]:
    """Return the occurrences that did not run in their time and were not run late, of a rule or of all; latest first.

    Raises `RuleNotFound`, or `Invalid`.
    """
    first = None if since is None else instant(since, field="since")
    with kernel.transaction(connection, read_only=True) as tx:
        rule_id = None if rule is None else existing_rule(tx, rule_uuid(rule)).id
        return missed_lines(tx, rule_id=rule_id, since=first, limit=page_limit(limit))
