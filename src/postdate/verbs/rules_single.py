"""How does a person decide about one occurrence of a rule alone?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from postdate.domain.rule import OccurrenceState, RuleStatus, SkipReason, occurrence_name
from postdate.domain.states import Cause, Reason, Status
from postdate.engine.look import look_at, request_of
from postdate.engine.withdraw import withdraw_window
from postdate.errors import InvalidPayload, MoveRefused, OccurrenceNotFound, RuleMoveRefused
from postdate.hooks import tell_settled
from postdate.store.actions import insert_actions
from postdate.store.holidays import days_off
from postdate.store.occurrences import find_line, write_line
from postdate.store.outcomes import withdraw_queued
from postdate.store.reading import find_action
from postdate.store.rule_actions import queued_of
from postdate.store.rules import save_rule
from postdate.verbs.arguments import DEFAULT_ACTOR
from postdate.verbs.intake import why_refused
from postdate.verbs.read import existing
from postdate.verbs.rules_asked import named_instant
from postdate.verbs.rules_held import Hand, changing_rules

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.action import Action, Request
    from postdate.domain.rule import RecurringRule, RuleOccurrence
    from postdate.kernel import Connectable, Kernel, Unbegun
    from postdate.store.transaction import Transaction

_MOST_OVERRIDES = 1000


class _Why(NamedTuple):
    """Why the action of an occurrence is taken out of the queue."""

    cause: Cause
    reason: Reason
    verb: str


_SKIP = _Why(cause=Cause.CANCEL, reason=Reason.USER, verb="skip")
_MOVE = _Why(cause=Cause.REPLACE, reason=Reason.RESCHEDULED, verb="move")
_OVERRIDE = _Why(cause=Cause.REPLACE, reason=Reason.RULE_CHANGED, verb="override")


def skip_occurrence(
    kernel: Kernel,
    rule: UUID | str,
    occurrence: datetime | str,
    *,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> RuleOccurrence:
    """Leave one occurrence out, named by its nominal instant, whether or not there is an action for it yet.

    Idempotent. Raises `RuleNotFound`, `RuleMoveRefused`, `OccurrenceNotFound`, or `MoveRefused` where it has begun.
    """
    with changing_rules(kernel, connection, actor=actor, note=note) as hand:
        held, tx, now = hand.hold(rule, verb="skip an occurrence of"), hand.tx, hand.now
        at, line = _occurrence(tx, held, occurrence)
        if line is not None and line.reason is SkipReason.USER:
            return line
        _take_out(hand, held, at, line, why=_SKIP)
        skipped = held.decided(at, OccurrenceState.SKIPPED, changed_at=now, reason=SkipReason.USER)
        write_line(tx, skipped)
        hand.tell(held, "occurrence_skipped", occurrence=occurrence_name(at))
        if held.overlap == "skip" and held.status is RuleStatus.ACTIVE:
            look_at(kernel, tx, [held], now=now)  # for the next one, which may take its place now
        return skipped


def move_occurrence(
    kernel: Kernel,
    rule: UUID | str,
    occurrence: datetime | str,
    *,
    to: datetime | str,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> Action:
    """Let one occurrence, named by its nominal instant, happen at another instant; return its action.

    It stays the same occurrence for the ledger and the guard, may have been skipped before, and is queued at once,
    however far ahead. A wall time is read in the rule's zone. Raises `RuleNotFound`, `RuleMoveRefused` (of a paused
    rule, too), `OccurrenceNotFound`, `MoveRefused` where it has begun, and what `schedule` raises.
    """
    with changing_rules(kernel, connection, actor=actor, note=note) as hand:
        held, tx, now = hand.hold(rule, verb="move an occurrence of"), hand.tx, hand.now
        if held.status is RuleStatus.PAUSED:
            raise RuleMoveRefused(held.id, verb="move an occurrence of", status=held.status)
        at, line = _occurrence(tx, held, occurrence)
        moved_to = named_instant(held, to, field="to")
        replaced = _take_out(hand, held, at, line, why=_MOVE)
        new = replace(request_of(kernel, held, at, now=now, at=moved_to), replaces_id=replaced)
        write_line(tx, held.decided(at, OccurrenceState.MOVED, changed_at=now, moved_to=moved_to, action_id=new.id))
        hand.tell(held, "occurrence_moved", occurrence=occurrence_name(at), to=moved_to.isoformat())
        return _insert(tx, new)


def override_occurrence(
    kernel: Kernel,
    rule: UUID | str,
    occurrence: datetime | str,
    payload: Mapping[str, object] | None,
    *,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> RecurringRule:
    """Give one occurrence something else in its payload, over the rule's template; None takes that back.

    Raises `RuleNotFound`, `RuleMoveRefused`, `OccurrenceNotFound`, `InvalidPayload`, or `MoveRefused` where it has run.
    """
    with changing_rules(kernel, connection, actor=actor, note=note) as hand:
        held, tx, now = hand.hold(rule, verb="override an occurrence of"), hand.tx, hand.now
        at, line = _occurrence(tx, held, occurrence)
        overrides = _overridden(kernel, held, occurrence_name(at), payload)
        changed = replace(held, overrides=overrides, version=held.version + 1)
        save_rule(tx, changed)
        hand.tell(changed, "occurrence_overridden", occurrence=occurrence_name(at))
        new = None if line is None or line.action_id is None else _anew(hand, changed, at, line)
        known = line or held.decided(at, OccurrenceState.WITHDRAWN, changed_at=now)  # nothing yet, as it were
        told = held.decided(at, known.state, changed_at=now, moved_to=known.moved_to, reason=known.reason)
        write_line(tx, replace(told, action_id=known.action_id if new is None else new.id))
        if new is not None:
            _insert(tx, new)
        return changed


def _overridden(
    kernel: Kernel, rule: RecurringRule, name: str, payload: Mapping[str, object] | None
) -> dict[str, Mapping[str, Any]]:
    """Return the overrides of a rule with those of one occurrence. Raises `InvalidPayload`."""
    kept = {each: said for each, said in rule.overrides.items() if each != name}
    if payload is not None:
        if not isinstance(payload, Mapping):
            raise InvalidPayload(field="payload", rule="must be a JSON object", value=payload)
        kernel.registry[rule.action_type].dump({**rule.payload_template, **payload}, target=rule.target_key)
        kept[name] = dict(payload)
    return dict(sorted(kept.items())[-_MOST_OVERRIDES:])


def _anew(hand: Hand, rule: RecurringRule, at: datetime, line: RuleOccurrence) -> Request | None:
    """Return what takes the place of the action of an occurrence, wherever that was moved; None for one cancelled."""
    replaced = _take_out(hand, rule, at, line, why=_OVERRIDE)
    if replaced is None:
        return None
    happens = existing(hand.tx, replaced).publish_at
    return replace(request_of(hand.kernel, rule, at, now=hand.now, at=happens), replaces_id=replaced)


def run_now(
    kernel: Kernel,
    rule: UUID | str,
    *,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> Action:
    """Fire what the rule would fire, now and beside its occurrences, and return the action.

    Where they must not overlap, it takes the place of the next one, and `OverlapTaken` is raised while one runs. Raises
    `RuleNotFound`, `RuleMoveRefused`, and what `schedule` raises.
    """
    with changing_rules(kernel, connection, actor=actor, note=note) as hand:
        held, tx, now = hand.hold(rule, verb="run"), hand.tx, hand.now
        if held.overlap == "skip":
            _make_way(hand, held)
        new = replace(request_of(kernel, held, now, now=now), occurrence=f"run {occurrence_name(now)}", intent=None)
        hand.tell(held, "run_now", action=str(new.id))
        return _insert(tx, new)


def _make_way(hand: Hand, rule: RecurringRule) -> None:
    """Withdraw the next occurrence, which comes back when what takes its place has ended."""
    withdraw_window(hand.kernel, hand.tx, rule, now=hand.now, actor=hand.actor, note=hand.note)
    save_rule(hand.tx, replace(rule, last_materialized_at=hand.now, look_at=hand.now))


def _occurrence(tx: Transaction, rule: RecurringRule, named: datetime | str) -> tuple[datetime, RuleOccurrence | None]:
    """Return which occurrence is meant, and its line in the ledger. Raises `OccurrenceNotFound`."""
    at = named_instant(rule, named, field="occurrence")
    line = find_line(tx, rule.id, at)
    if line is None and not rule.fires_at(at, holidays=days_off(tx, rule)):
        raise OccurrenceNotFound(rule.id, at)
    return at, line


def _take_out(hand: Hand, rule: RecurringRule, at: datetime, line: RuleOccurrence | None, *, why: _Why) -> UUID | None:
    """Withdraw the action of an occurrence where it is queued, and return it. Raises `MoveRefused` if it has begun."""
    tx, known = hand.tx, None if line is None else line.action_id
    queued = [
        each.action_id
        for each in queued_of(tx, rule.id)
        if each.occurrence == occurrence_name(at) or each.action_id == known
    ]
    gone = withdraw_queued(
        tx, queued, cause=why.cause, reason=why.reason, now=hand.now, actor=hand.actor, note=hand.note
    )
    if gone:
        tell_settled(tx, hand.kernel.registry, dict.fromkeys(gone, rule.action_type), now=hand.now)
        return max(gone)
    action = None if known is None else find_action(tx, known)
    if action is not None and action.status is not Status.CANCELLED:
        raise MoveRefused(action.id, verb=why.verb, status=action.status, reason=action.reason)
    return None


def _insert(tx: Transaction, new: Request) -> Action:
    admission = insert_actions(tx, [new])
    if new.id not in admission.admitted:
        raise admission.invalid.get(new.id) or why_refused(tx, [new])[new.id]
    return existing(tx, new.id)
