"""How does a person say that something is to happen again and again, change that, and end it?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from postdate.domain import text
from postdate.domain.rule import RecurringRule, RuleStatus, occurrence_name
from postdate.domain.walltime import resolve
from postdate.engine.expand import look_at, restore_moved
from postdate.engine.withdraw import withdraw_moved, withdraw_window
from postdate.errors import Invalid, RuleMoveRefused, RuleNotFound
from postdate.store.events import append_events, event_row
from postdate.store.occurrences import hand_over_lines
from postdate.store.owners import hold_owners
from postdate.store.rules import find_rule, hold_rule, insert_rule, save_rule
from postdate.verbs.arguments import DEFAULT_ACTOR, actor_name, note_text, owner_id, rule_uuid, user_id
from postdate.verbs.intake import default_zone
from postdate.verbs.rules_asked import (
    UNCHANGED,
    Asked,
    Unchanged,
    calendar_name,
    changed_recurrence,
    named_instant,
    new_recurrence,
    policies,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import date
    from uuid import UUID

    from pydantic import BaseModel

    from postdate.domain.misfire import Misfire
    from postdate.domain.rule import Overlap
    from postdate.domain.walltime import Fold, Gap
    from postdate.kernel import Connectable, Kernel, Unbegun
    from postdate.store.transaction import Transaction

_MOMENT = timedelta(microseconds=1)
_BEGINNING = datetime.min.replace(tzinfo=UTC)


def create_rule(
    kernel: Kernel,
    action_type: str,
    payload: BaseModel | Mapping[str, object],
    *,
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
    target: str | None = None,
    workspace: UUID | str | None = None,
    user: UUID | str | None = None,
    misfire: Misfire = "once",
    grace: timedelta | int = timedelta(hours=1),
    overlap: Overlap = "allow",
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> RecurringRule:
    """Let an action happen again and again, from `start` on (else from now), and return the rule (P78, P82).

    `rrule` (RFC 5545) and `cron` go by the clocks of `tz`, else of the owner's zone; `every` (seconds) counts from
    `start`. What falls within the setting `rule_window` becomes actions in this transaction, each one of its own for
    the publish guard; the expander goes on from there. Nothing that is past fires.

    Raises `Invalid` (naming the argument), `InvalidRule`, `InvalidZone`, `UnknownActionType` or `OwnerNotFound`.
    """
    known = kernel.registry[action_type]
    target = text.optional_name(target, field="target")
    template = known.dump(payload, target=target)
    workspace_id, owner, actor, note = (
        owner_id(workspace, field="workspace"),
        user_id(user),
        actor_name(actor),
        note_text(note),
    )
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
    chosen = policies(misfire=misfire, grace=grace, overlap=overlap)
    with kernel.transaction(connection) as tx:
        now = kernel.now(tx)
        hold_owners(tx, workspaces=[workspace_id], users=[owner])
        when = new_recurrence(
            asked, now=now, default_zone=lambda: default_zone(kernel, tx, workspace=workspace_id, user=owner)
        )
        rule = RecurringRule(
            id=kernel.new_id(now),
            workspace_id=workspace_id,
            user_id=owner,
            action_type=known.name,
            target_key=target,
            payload_template=template,
            holidays=calendar_name(holidays),
            last_materialized_at=now,
            look_at=now,
            created_at=now,
            **chosen,
            **when,
        )
        insert_rule(tx, rule)
        Hand(kernel=kernel, tx=tx, now=now, actor=actor, note=note).tell(rule, "rule_created")
        look_at(kernel, tx, [rule], now=now)
        return existing_rule(tx, rule.id)


def update_rule(
    kernel: Kernel,
    rule: UUID | str,
    *,
    following: datetime | str | None = None,
    payload: BaseModel | Mapping[str, object] | None = None,
    rrule: str | None = None,
    cron: str | None = None,
    every: timedelta | float | None = None,
    start: datetime | date | str | None = None,
    tz: str | None = None,
    gap: Gap | None = None,
    fold: Fold | None = None,
    ends_at: datetime | str | Unchanged | None = UNCHANGED,
    exdates: Iterable[datetime | date | str] | None = None,
    rdates: Iterable[datetime | date | str] | None = None,
    holidays: str | Unchanged | None = UNCHANGED,
    target: str | Unchanged | None = UNCHANGED,
    misfire: Misfire | None = None,
    grace: timedelta | int | None = None,
    overlap: Overlap | None = None,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> RecurringRule:
    """Change a rule, for all that is still to come or for an occurrence and those `following` it.

    What is queued is withdrawn and made anew as the rule then says; single occurrences that were skipped or moved
    stay so, and nothing fires for instants that are past (SC30). With `following`, the rule ends before that occurrence
    and a new one, which is returned, goes on from there (`split_from`). Raises `RuleNotFound`, `RuleMoveRefused`, and
    what `create_rule` raises.
    """
    actor, note = actor_name(actor), note_text(note)
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
    with kernel.transaction(connection) as tx:
        now = kernel.now(tx)
        old = held_rule(tx, rule, verb="update")
        hand = Hand(kernel=kernel, tx=tx, now=now, actor=actor, note=note)
        changes: dict[str, Any] = policies(
            misfire=old.misfire if misfire is None else misfire,
            grace=old.grace if grace is None else grace,
            overlap=old.overlap if overlap is None else overlap,
        )
        if holidays is not UNCHANGED:
            changes["holidays"] = calendar_name(holidays)
        if target is not UNCHANGED:
            changes["target_key"] = text.optional_name(target, field="target")
        known = kernel.registry.get(old.action_type)
        if payload is not None:
            known = kernel.registry[old.action_type]
            changes["payload_template"] = known.dump(payload, target=changes.get("target_key", old.target_key))
        if following is not None:
            return _split(hand, old, following, asked=asked, changes=changes)
        return _changed(hand, old, replace(old, **changes, **changed_recurrence(old, asked, now=now)))


@dataclass(frozen=True, kw_only=True)
class Hand:
    """Who changes a rule, why and when, and in which transaction."""

    kernel: Kernel
    tx: Transaction
    now: datetime
    actor: str
    note: str | None

    def tell(self, rule: RecurringRule, cause: str, **detail: Any) -> None:
        """Leave a line in the history of the rule."""
        event = event_row(
            rule.id, rule.workspace_id, at=self.now, cause=cause, actor=self.actor, note=self.note, **detail
        )
        append_events(self.tx, [event])


def _changed(hand: Hand, old: RecurringRule, new: RecurringRule) -> RecurringRule:
    tx, now = hand.tx, hand.now
    withdraw_window(hand.kernel, tx, old, now=now, actor=hand.actor, note=hand.note)
    new = replace(new, version=old.version + 1, last_materialized_at=now, look_at=now, last_error=None)
    save_rule(tx, new)
    hand.tell(new, "rule_changed", changed=_differences(old, new))
    if new.status is RuleStatus.ACTIVE:
        look_at(hand.kernel, tx, [new], now=now)
    return existing_rule(tx, new.id)


def _split(
    hand: Hand, old: RecurringRule, following: datetime | str, *, asked: Asked, changes: Mapping[str, Any]
) -> RecurringRule:
    """End the rule before an occurrence, and let a new one go on with what is asked for."""
    kernel, tx, now = hand.kernel, hand.tx, hand.now
    since = named_instant(old, following, field="following")
    first = next(old.occurrences(since - _MOMENT if since > now else now), None)
    if first is None:
        raise Invalid(field="following", rule="must be an occurrence that is still to come, or before one", value=since)
    if next(old.occurrences(_BEGINNING, first - _MOMENT), None) is None:
        return _changed(hand, old, replace(old, **changes, **changed_recurrence(old, asked, now=now)))
    withdraw_window(kernel, tx, old, now=now, actor=hand.actor, note=hand.note, since=first)
    withdraw_moved(kernel, tx, old, now=now, actor=hand.actor, since=first)
    new = replace(
        old,
        **changes,
        **_going_on(old, asked, first, now=now),
        id=kernel.new_id(now),
        split_from=old.id,
        version=1,
        last_materialized_at=now,
        look_at=now,
        last_error=None,
        created_at=now,
    )
    ended = replace(old, ends_at=first - _MOMENT, version=old.version + 1, last_materialized_at=now, look_at=now)
    save_rule(tx, ended)
    insert_rule(tx, new)
    hand_over_lines(tx, old.id, new.id, since=first)
    hand.tell(old, "rule_split", into=str(new.id), following=occurrence_name(first))
    hand.tell(new, "rule_created", split_from=str(old.id))
    if old.status is RuleStatus.ACTIVE:
        look_at(kernel, tx, [ended, new], now=now)
        restore_moved(kernel, tx, new, now=now)
    return existing_rule(tx, new.id)


def _going_on(old: RecurringRule, asked: Asked, first: datetime, *, now: datetime) -> dict[str, Any]:
    """Return the recurrence of a rule that takes over at `first`: the same steps, unless others are asked for."""
    if asked.start is None and (asked.rrule, asked.cron, asked.every) != (None, None, None):
        asked = replace(asked, start=first)
    when = changed_recurrence(old, asked, now=now)
    if asked.start is None:
        intent, tz = old.intent(first), when.get("tz", old.tz)
        when["starts_at"] = first if intent is None or tz is None else resolve(intent.wall_time, tz, fold=intent.fold)
    return when


def held_rule(tx: Transaction, rule: UUID | str, *, verb: str, ended_too: bool = False) -> RecurringRule:
    """Return the rule, held until the transaction ends, and its owners with it.

    Raises `RuleNotFound`, or `RuleMoveRefused` unless ended ones will do.
    """
    seen = existing_rule(tx, rule_uuid(rule))
    # Before the rule: whoever deletes an owner takes the owner first, and what it owns afterwards.
    hold_owners(tx, workspaces=[seen.workspace_id], users=[seen.user_id])
    held = hold_rule(tx, seen.id)
    if held is None:
        raise RuleNotFound(seen.id)
    if held.status is RuleStatus.ENDED and not ended_too:
        raise RuleMoveRefused(held.id, verb=verb, status=held.status)
    return held


def existing_rule(tx: Transaction, rule_id: UUID) -> RecurringRule:
    """Return the rule. Raises `RuleNotFound`."""
    found = find_rule(tx, rule_id)
    if found is None:
        raise RuleNotFound(rule_id)
    return found


def _differences(old: RecurringRule, new: RecurringRule) -> list[str]:
    """Return the names of what a person has changed."""
    own = {"version", "last_materialized_at", "look_at", "last_error", "reroll_from"}
    mine, theirs = vars(old), vars(new)
    return sorted(name for name in old.__dataclass_fields__ if name not in own and mine[name] != theirs[name])
