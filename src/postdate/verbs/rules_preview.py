"""When does a rule fire next, or what would be one?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Unpack

from postdate.domain.instant import utc
from postdate.domain.recurrence.rule import MAX_PREVIEW
from postdate.domain.rule import OccurrenceState, RecurringRule, RuleStatus, SkipReason
from postdate.domain.states import Reason, Status
from postdate.engine.withdraw import nominal_of
from postdate.errors import Invalid
from postdate.store.decided import moved_lines
from postdate.store.holidays import days_off
from postdate.store.occurrences import lines_of
from postdate.store.reading import find_actions
from postdate.store.rule_actions import queued_of
from postdate.store.schema import SYSTEM_PROFILE
from postdate.verbs.arguments import owner_id, rule_uuid
from postdate.verbs.rule_terms import UNCHANGED, Recurrence, by_name, terms
from postdate.verbs.rules_asked import new_recurrence
from postdate.verbs.rules_held import existing_rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.action import Action
    from postdate.domain.rule import RuleOccurrence
    from postdate.kernel import Connectable, Kernel, Unbegun
    from postdate.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class Upcoming:
    """One occurrence that is still to come."""

    nominal_at: datetime
    """By the rule (UTC): what names the occurrence."""
    publish_at: datetime | None
    """When it happens (UTC): at another instant where it was moved; None where it is left out."""
    state: OccurrenceState | None = None
    """What the ledger says; None where nothing was decided yet."""
    reason: SkipReason | None = None
    """Why it is left out."""


@by_name(Recurrence)
def preview_rule(
    kernel: Kernel,
    rule: UUID | str | None = None,
    *,
    n: int = 10,
    after: datetime | None = None,
    workspace: UUID | str | None = None,
    connection: Connectable | Unbegun | None = None,
    **asked: Unpack[Recurrence],
) -> list[Upcoming]:
    """Return the next `n` occurrences of a rule, or of what would be one: by the function that the engine uses.

    They are those after `after` (aware), else after now, in the order in which they happen. Of a rule that there is,
    those that were moved stand where they happen now, and those that were skipped or cancelled are told as left out. A
    paused rule shows what resuming it would bring; one that has ended, no more than what is queued of it still. Raises
    `RuleNotFound`, or what `create_rule` raises.
    """
    if type(n) is not int or not 1 <= n <= MAX_PREVIEW:
        raise Invalid(field="n", rule=f"must be a whole number from 1 to {MAX_PREVIEW}", value=n)
    with kernel.transaction(connection, read_only=True) as tx:
        now = kernel.now(tx)
        since = now if after is None else utc(after, field="after")
        if rule is None:
            workspace_id = owner_id(workspace, field="workspace")
            return _upcoming(tx, _imagined(kernel, tx, asked, workspace_id, now=now), n, since)
        for name, value in asked.items():
            if value is not None and value is not UNCHANGED:
                raise Invalid(field=name, rule="must not be given with a rule, which says that itself")
        return _upcoming(tx, existing_rule(tx, rule_uuid(rule)), n, since)


def _imagined(
    kernel: Kernel, tx: Transaction, asked: Recurrence, workspace_id: UUID | None, *, now: datetime
) -> RecurringRule:
    return RecurringRule(
        id=kernel.new_id(now),
        workspace_id=workspace_id,
        user_id=SYSTEM_PROFILE,
        action_type="preview",
        payload_template={},
        last_materialized_at=now,
        look_at=now,
        created_at=now,
        **terms({"holidays": asked.get("holidays", UNCHANGED)}),
        **new_recurrence(
            asked, now=now, default_zone=lambda: kernel.default_zone(tx, workspace=workspace_id, user=SYSTEM_PROFILE)
        ),
    )


def _upcoming(tx: Transaction, rule: RecurringRule, n: int, since: datetime) -> list[Upcoming]:
    decided = _decided(tx, rule, since)
    elsewhere = sum(decided.told(at).publish_at != at for at in decided.instants)  # as many others take their places
    nominal: Iterable[datetime] = ()
    if rule.status is not RuleStatus.ENDED:
        days = days_off(tx, rule)
        nominal = islice(rule.occurrences(since, holidays=days), n + elsewhere)
    told = [decided.told(at) for at in {*nominal, *decided.coming}]
    coming = (each for each in told if _happens_at(each) > since)
    return sorted(coming, key=lambda each: (_happens_at(each), each.nominal_at))[:n]


def _happens_at(each: Upcoming) -> datetime:
    return each.publish_at or each.nominal_at


@dataclass(frozen=True, kw_only=True)
class _Decided:
    """What has been decided about occurrences, by nominal instant."""

    lines: Mapping[datetime, RuleOccurrence]
    coming: Mapping[datetime, datetime]
    """When what is queued happens, and what was moved and waits for its rule to be resumed."""
    begun: Mapping[UUID, Action]
    """The actions of the others."""

    @property
    def instants(self) -> set[datetime]:
        return {*self.lines, *self.coming}

    def told(self, at: datetime) -> Upcoming:
        """Return the occurrence as it stands."""
        line = self.lines.get(at)
        state = None if line is None or line.state is OccurrenceState.WITHDRAWN else line.state
        if at in self.coming:
            return Upcoming(nominal_at=at, publish_at=self.coming[at], state=state)
        if line is None or state is None:
            return Upcoming(nominal_at=at, publish_at=at)
        if state is OccurrenceState.SKIPPED:
            return Upcoming(nominal_at=at, publish_at=None, state=state, reason=line.reason)
        if line.action_id is None and line.moved_to is not None:  # withdrawn, and moved to before what is looked at
            return Upcoming(nominal_at=at, publish_at=line.moved_to, state=state)
        action = None if line.action_id is None else self.begun.get(line.action_id)
        if action is not None and action.status is Status.CANCELLED:
            by_a_person = SkipReason.USER if action.reason is Reason.USER else None
            return Upcoming(nominal_at=at, publish_at=None, state=OccurrenceState.SKIPPED, reason=by_a_person)
        return Upcoming(nominal_at=at, publish_at=at if action is None else action.publish_at, state=state)


def _decided(tx: Transaction, rule: RecurringRule, since: datetime) -> _Decided:
    lines = {line.nominal_at: line for line in lines_of(tx, rule.id, since=since)}
    named = {line.action_id: at for at, line in lines.items() if line.action_id is not None}
    queued = {
        at: each.publish_at
        for each in queued_of(tx, rule.id)
        if (at := named.get(each.action_id) or nominal_of(each)) is not None
    }
    waiting = {} if rule.status is RuleStatus.ENDED else _waiting(tx, rule, since)
    others = [line.action_id for at, line in lines.items() if line.action_id is not None and at not in queued]
    return _Decided(lines=lines, coming=waiting | queued, begun=find_actions(tx, others))


def _waiting(tx: Transaction, rule: RecurringRule, since: datetime) -> dict[datetime, datetime]:
    moved = moved_lines(tx, rule.id, after=since)
    return {line.nominal_at: line.moved_to for line in moved if line.moved_to is not None}
