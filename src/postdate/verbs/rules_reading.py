"""Which rules are there, when do they fire next, and what was missed?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from postdate.domain.instant import instant, utc
from postdate.domain.recurrence.rule import MAX_PREVIEW
from postdate.domain.rule import OccurrenceState, RecurringRule, RuleStatus
from postdate.errors import Invalid
from postdate.store import rules
from postdate.store.events import events_of
from postdate.store.occurrences import lines_of, missed_lines
from postdate.store.schema import SYSTEM_PROFILE
from postdate.verbs.arguments import owner_id, page_limit, rule_uuid
from postdate.verbs.intake import default_zone
from postdate.verbs.rules import existing_rule
from postdate.verbs.rules_asked import Asked, calendar_name, new_recurrence

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from postdate.domain.action import Event
    from postdate.domain.rule import RuleOccurrence
    from postdate.domain.walltime import Fold, Gap
    from postdate.kernel import Connectable, Kernel, Unbegun
    from postdate.store.transaction import Transaction

_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, kw_only=True)
class Upcoming:
    """One occurrence that is still to come."""

    nominal_at: datetime
    """By the rule (UTC): what names the occurrence."""
    publish_at: datetime | None
    """When it happens (UTC); None where a person has left it out."""
    state: OccurrenceState | None = None
    """What the ledger says; None where nothing was decided yet."""


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


def preview_rule(
    kernel: Kernel,
    rule: UUID | str | None = None,
    *,
    n: int = 10,
    after: datetime | None = None,
    rrule: str | None = None,
    cron: str | None = None,
    every: timedelta | float | None = None,
    start: datetime | date | str | None = None,
    tz: str | None = None,
    gap: Gap = "forward",
    fold: Fold = "first",
    ends_at: datetime | str | None = None,
    exdates: Iterable[datetime | date | str] | None = None,
    rdates: Iterable[datetime | date | str] | None = None,
    holidays: str | None = None,
    workspace: UUID | str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> list[Upcoming]:
    """Return the next `n` occurrences of a rule, or of what would be one: by the function that the engine uses.

    They are those after `after` (aware), else after now. Of a rule that there is, single occurrences that were skipped
    or moved are told as such. Raises `RuleNotFound`, or what `create_rule` raises.
    """
    if type(n) is not int or not 1 <= n <= MAX_PREVIEW:
        raise Invalid(field="n", rule=f"must be a whole number from 1 to {MAX_PREVIEW}", value=n)
    with kernel.transaction(connection, read_only=True) as tx:
        now = kernel.now(tx)
        since = now if after is None else utc(after, field="after")
        if rule is not None:
            return _upcoming(tx, existing_rule(tx, rule_uuid(rule)), n, since)
        workspace_id = owner_id(workspace, field="workspace")
        asked = Asked(
            rrule=rrule,
            cron=cron,
            every=every,
            start=start,
            tz=tz,
            gap=gap,
            fold=fold,
            exdates=exdates,
            rdates=rdates,
            ends_at=ends_at,
        )
        when = new_recurrence(
            asked, now=now, default_zone=lambda: default_zone(kernel, tx, workspace=workspace_id, user=SYSTEM_PROFILE)
        )
        return _upcoming(tx, _imagined(kernel, when, holidays, now=now), n, since)


def _imagined(kernel: Kernel, when: Mapping[str, object], holidays: str | None, *, now: datetime) -> RecurringRule:
    return RecurringRule(
        id=kernel.new_id(now),
        workspace_id=None,
        user_id=SYSTEM_PROFILE,
        action_type="preview",
        target_key=None,
        payload_template={},
        holidays=calendar_name(holidays),
        misfire="once",
        grace=timedelta(hours=1),
        overlap="allow",
        last_materialized_at=now,
        look_at=now,
        created_at=now,
        **when,  # type: ignore[arg-type] # the fields that say when
    )


def _upcoming(tx: Transaction, rule: RecurringRule, n: int, since: datetime) -> list[Upcoming]:
    days = rules.holidays(tx, [rule.holidays])[rule.holidays] if rule.holidays is not None else ()
    nominal = list(islice(rule.occurrences(since, holidays=days), n))
    decided = {line.nominal_at: line for line in lines_of(tx, rule.id, since=since + _MOMENT)} if nominal else {}
    last = nominal[-1] if nominal else datetime.max.replace(tzinfo=UTC)
    extra = [at for at, line in decided.items() if line.moved_to is not None and at <= last]
    return [_told(at, decided.get(at)) for at in sorted({*nominal, *extra})[:n]]


def _told(at: datetime, line: RuleOccurrence | None) -> Upcoming:
    if line is None or line.state is OccurrenceState.WITHDRAWN:
        return Upcoming(nominal_at=at, publish_at=at)
    left_out = line.state is OccurrenceState.SKIPPED
    return Upcoming(nominal_at=at, publish_at=None if left_out else line.moved_to or at, state=line.state)
