"""How does a person say that something is to happen again and again, and change that?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack, get_args

from postdate.domain.instant import BEGINNING, MICROSECOND
from postdate.domain.rule import Kind, RecurringRule, RuleStatus, occurrence_name
from postdate.domain.walltime import resolve
from postdate.engine.look import look_at, restore_moved
from postdate.engine.withdraw import withdraw_moved, withdraw_window
from postdate.errors import Invalid
from postdate.store.decided import hand_over_lines
from postdate.store.owners import hold_owners
from postdate.store.rules import insert_rule, save_rule
from postdate.verbs.arguments import DEFAULT_ACTOR, owner_id, user_id
from postdate.verbs.rule_terms import Recurrence, RuleTerms, by_name, terms
from postdate.verbs.rules_asked import changed_recurrence, named_instant, new_recurrence
from postdate.verbs.rules_held import Hand, changing_rules, existing_rule

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from pydantic import BaseModel

    from postdate.kernel import Connectable, Kernel, Unbegun


@by_name(RuleTerms)
def create_rule(
    kernel: Kernel,
    action_type: str,
    payload: BaseModel | Mapping[str, object],
    *,
    workspace: UUID | str | None = None,
    user: UUID | str | None = None,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
    **asked: Unpack[RuleTerms],
) -> RecurringRule:
    """Let an action happen again and again, from `start` on (else from now), and return the rule (P78, P82).

    `rrule` (RFC 5545) and `cron` go by the clocks of `tz`, else of the owner's zone; `every` (seconds) counts from
    `start`; `RuleTerms` tells the others. What falls within the setting `rule_window` becomes actions in this
    transaction, each one of its own for the publish guard; the expander goes on from there. Nothing that is past fires.

    Raises `Invalid` (naming the argument), `InvalidRule`, `InvalidZone`, `UnknownActionType` or `OwnerNotFound`.
    """
    known, said = kernel.registry[action_type], terms(asked)
    template = known.dump(payload, target=said["target_key"])
    workspace_id, owner = owner_id(workspace, field="workspace"), user_id(user)
    with changing_rules(kernel, connection, actor=actor, note=note) as hand:
        said |= {"action_type": known.name, "payload_template": template}
        return _made(hand, asked, workspace_id=workspace_id, user_id=owner, **said)


def _made(hand: Hand, asked: Recurrence, *, workspace_id: UUID | None, user_id: UUID, **said: Any) -> RecurringRule:
    """Write a new rule, and make actions of its window."""
    kernel, tx, now = hand.kernel, hand.tx, hand.now
    hold_owners(tx, workspaces=[workspace_id], users=[user_id])
    rule = RecurringRule(
        id=kernel.new_id(now),
        workspace_id=workspace_id,
        user_id=user_id,
        last_materialized_at=now,
        look_at=now,
        created_at=now,
        **said,
        **new_recurrence(
            asked, now=now, default_zone=lambda: kernel.default_zone(tx, workspace=workspace_id, user=user_id)
        ),
    )
    insert_rule(tx, rule)
    hand.tell(rule, "rule_created")
    look_at(kernel, tx, [rule], now=now)
    return existing_rule(tx, rule.id)


@by_name(RuleTerms)
def update_rule(
    kernel: Kernel,
    rule: UUID | str,
    *,
    following: datetime | str | None = None,
    payload: BaseModel | Mapping[str, object] | None = None,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
    **asked: Unpack[RuleTerms],
) -> RecurringRule:
    """Change a rule, for all that is still to come or for an occurrence and those `following` it.

    It takes what `create_rule` takes, and what is not given stays. What is queued is withdrawn and made anew as the
    rule then says; single occurrences that were skipped or moved stay so, and nothing fires for instants that are past
    (SC30). With `following`, the rule ends before that occurrence and a new one, which is returned, goes on from there
    (`split_from`). Raises `RuleNotFound`, `RuleMoveRefused`, and what `create_rule` raises.
    """
    with changing_rules(kernel, connection, actor=actor, note=note) as hand:
        old = hand.hold(rule, verb="update")
        changes = terms(asked, old=old)
        if payload is not None or changes["target_key"] != old.target_key:
            template = old.payload_template if payload is None else payload
            known = kernel.registry[old.action_type]
            changes["payload_template"] = known.dump(template, target=changes["target_key"])
        if following is not None:
            return _split(hand, old, following, asked=asked, changes=changes)
        return _changed(hand, old, replace(old, **changes, **changed_recurrence(old, asked, now=hand.now)))


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
    hand: Hand, old: RecurringRule, following: datetime | str, *, asked: Recurrence, changes: Mapping[str, Any]
) -> RecurringRule:
    """End the rule before an occurrence, and let a new one go on with what is asked for."""
    kernel, tx, now = hand.kernel, hand.tx, hand.now
    first = _first_of(old, following, now=now)
    if next(old.occurrences(BEGINNING, first - MICROSECOND), None) is None:  # all that it has follows
        return _changed(hand, old, replace(old, **changes, **changed_recurrence(old, asked, now=now)))
    withdraw_window(kernel, tx, old, now=now, actor=hand.actor, note=hand.note, since=first)
    withdraw_moved(kernel, tx, old, now=now, actor=hand.actor, note=hand.note, since=first)
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
    ended = replace(old, ends_at=first - MICROSECOND, version=old.version + 1, last_materialized_at=now, look_at=now)
    save_rule(tx, ended)
    insert_rule(tx, new)
    hand_over_lines(tx, old.id, new.id, since=first)
    hand.tell(old, "rule_split", into=str(new.id), following=occurrence_name(first))
    hand.tell(new, "rule_created", split_from=str(old.id))
    if old.status is RuleStatus.ACTIVE:
        look_at(kernel, tx, [ended, new], now=now)
        restore_moved(kernel, tx, new, now=now)
    return existing_rule(tx, new.id)


def _first_of(old: RecurringRule, following: datetime | str, *, now: datetime) -> datetime:
    """Return the first occurrence from an instant on that is still to come. Raises `Invalid`."""
    since = named_instant(old, following, field="following")
    first = next(old.occurrences(since - MICROSECOND if since > now else now), None)
    if first is None:
        raise Invalid(field="following", rule="must be an occurrence that is still to come, or before one", value=since)
    return first


def _going_on(old: RecurringRule, asked: Recurrence, first: datetime, *, now: datetime) -> dict[str, Any]:
    """Return the recurrence of a rule that takes over at `first`: the same steps, unless others are asked for."""
    if asked.get("start") is None and any(asked.get(form) is not None for form in get_args(Kind)):
        asked = {**asked, "start": first}
    when = changed_recurrence(old, asked, now=now)
    if asked.get("start") is None:
        intent, tz = old.intent(first), when.get("tz", old.tz)
        when["starts_at"] = first if intent is None or tz is None else resolve(intent.wall_time, tz, fold=intent.fold)
    return when


def _differences(old: RecurringRule, new: RecurringRule) -> list[str]:
    """Return what a person has changed, by the names that `update_rule` has for it."""
    own = {"version", "last_materialized_at", "look_at", "last_error", "reroll_from"}
    own.add("starts_at" if old.kind == new.kind == "rrule" else "starts_wall")  # one of them follows from the other
    called = {
        "payload_template": "payload",
        "target_key": "target",
        "starts_at": "start",
        "starts_wall": "start",
        "kind": new.kind,
        "rrule": new.kind,
    }
    mine, theirs = vars(old), vars(new)
    changed = {name for name in old.__dataclass_fields__ if name not in own and mine[name] != theirs[name]}
    return sorted({called.get(name, name) for name in changed})
