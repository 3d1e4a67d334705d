"""How do recurring rules become actions?

A look at a rule decides what its occurrences come to, up to the end of the window; the ledger keeps what was decided,
so that looking twice, or from two processes at once, comes to the same. The verbs look in their own transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import structlog

from postdate.domain.action import ENGINE, RECURRING, Request
from postdate.domain.expand import expand
from postdate.domain.rule import RuleStatus, SkipReason, occurrence_name
from postdate.domain.text import cleaned
from postdate.engine.withdraw import withdraw_window
from postdate.store.actions import insert_actions
from postdate.store.decided import last_moves, moved_lines, take_up_moved
from postdate.store.occurrences import claim_lines, skip_lines
from postdate.store.owners import hold_existing_owners
from postdate.store.rule_actions import last_runs, turns
from postdate.store.rules import calendars_in_change, hold_rules_to_look_at, holidays, note_looks, rules_to_look_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.expand import Expansion, Turn
    from postdate.domain.rule import RecurringRule
    from postdate.kernel import Kernel
    from postdate.store.transaction import Transaction

_log = structlog.get_logger("postdate")

BATCH = 500
"""How many rules one transaction looks at, at most."""

MOST_ACTIONS = 5_000
"""After how many new actions it leaves the rest of them to the next."""

LOOK_AGAIN = timedelta(hours=1)
"""When a rule is looked at again that could not be read."""

LOOK_ANEW = timedelta(minutes=1)
"""When a rule is looked at again whose calendar of holidays somebody was changing."""


@dataclass(frozen=True, kw_only=True)
class ExpandReport:
    """What one pass came to."""

    looked: int = 0
    """At how many rules was looked."""
    materialised: int = 0
    missed: int = 0
    ended: int = 0
    """How many rules have nothing more to come."""
    failed: Mapping[UUID, str] = field(default_factory=dict)
    """The rules that could not be read, and why."""

    def __add__(self, other: ExpandReport) -> ExpandReport:
        """Return what both came to together."""
        return ExpandReport(
            looked=self.looked + other.looked,
            materialised=self.materialised + other.materialised,
            missed=self.missed + other.missed,
            ended=self.ended + other.ended,
            failed={**self.failed, **other.failed},
        )


class Expander:
    """The pass that looks at the rules whose look has come: each about once a day, in batches."""

    name = "expand"
    interval = timedelta(minutes=1)

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    async def run_once(self, now: datetime) -> ExpandReport:
        """Look at each rule whose look has come by `now`, a batch in each transaction, and report."""
        total = ExpandReport()
        while (batch := await self._kernel.work(partial(look_at_batch, self._kernel, now=now))).looked:
            total += batch
        for rule_id, error in total.failed.items():
            _log.warning("a recurring rule cannot be read", rule=str(rule_id), error=error)
        return total


def look_at_batch(kernel: Kernel, tx: Transaction, *, now: datetime) -> ExpandReport:
    """Look at the rules that have been waiting longest for it, at most `BATCH`; those in others' hands are left out."""
    found = rules_to_look_at(tx, now=now, limit=BATCH)
    if not found:
        return ExpandReport()
    hold_existing_owners(
        tx, workspaces={each for each, _ in found.values()}, users={each for _, each in found.values()}
    )
    return look_at(kernel, tx, hold_rules_to_look_at(tx, list(found), now=now), now=now)


def look_at(kernel: Kernel, tx: Transaction, rules: Sequence[RecurringRule], *, now: datetime) -> ExpandReport:
    """Look at rules that this transaction holds, as it does their owners."""
    rules = [_anew(kernel, tx, rule, now=now) for rule in rules]
    kept = {rule.holidays for rule in rules if rule.holidays is not None}
    in_change = calendars_in_change(tx, kept)
    calendars = holidays(tx, kept)
    taken = _turns(tx, rules)
    window = kernel.settings.rule_window
    seen: dict[UUID, Expansion] = {}
    failed: dict[UUID, str] = {}
    requests: list[tuple[UUID, datetime, Request]] = []
    for rule in rules:
        if len(requests) > MOST_ACTIONS:
            break
        days = calendars[rule.holidays] if rule.holidays is not None else ()
        try:
            expansion = expand(rule, now=now, window=window, holidays=days, turn=taken.get(rule.id))
            requests += [(rule.id, at, request_of(kernel, rule, at, now=now)) for at in expansion.wanted]
        except Exception as error:  # noqa: BLE001 - told, and one rule that cannot be read stops no other
            failed[rule.id] = cleaned(f"{type(error).__name__}: {error}")
        else:
            seen[rule.id] = expansion
    seen |= _outlived(tx, seen, now=now)
    rules = [rule for rule in rules if rule.id in seen or rule.id in failed]
    materialised = _materialise(tx, requests, seen, now=now)
    looked = [_looked(rule, seen.get(rule.id), failed.get(rule.id), now=now) for rule in rules]
    unsure = {rule.id for rule in rules if rule.holidays in in_change}
    note_looks(tx, [_anew_soon(each, now=now) if each["id"] in unsure else each for each in looked])
    return ExpandReport(
        looked=len(rules),
        materialised=materialised,
        missed=sum(len(each.missed) for each in seen.values()),
        ended=sum(each.ends for each in seen.values()),
        failed=failed,
    )


def _turns(tx: Transaction, rules: Sequence[RecurringRule]) -> dict[UUID, Turn]:
    """Return how the last actions stand of those of the rules whose occurrences must not overlap."""
    taken = turns(tx, [rule.id for rule in rules if rule.overlap == "skip"])
    for rule in rules:
        turn = taken.get(rule.id)
        if turn is not None and rule.misfire == "all" and not turn.active:
            taken[rule.id] = replace(turn, runs=last_runs(tx, rule.id, since=rule.last_materialized_at))
    return taken


def _anew(kernel: Kernel, tx: Transaction, rule: RecurringRule, *, now: datetime) -> RecurringRule:
    """Return the rule with its window emptied where something that it depends on has changed."""
    if rule.reroll_from is None:
        return rule
    withdraw_window(kernel, tx, rule, now=now, actor=ENGINE, note=None)
    return replace(rule, last_materialized_at=min(rule.last_materialized_at, max(rule.reroll_from, now)))


def _materialise(
    tx: Transaction,
    requests: Sequence[tuple[UUID, datetime, Request]],
    seen: Mapping[UUID, Expansion],
    *,
    now: datetime,
) -> int:
    """Write the ledger, then the actions of the lines that it took; return how many actions there are more."""
    made = [(rule_id, at, request.id) for rule_id, at, request in requests]
    written = claim_lines(tx, made=made, left_out=list(_left_out(seen)), now=now)
    new = [request for _, _, request in requests if request.id in written]
    admitted = insert_actions(tx, new).admitted
    refused = [request.id for request in new if request.id not in admitted]
    skip_lines(tx, refused, reason=SkipReason.REFUSED, now=now)
    return len(admitted)


def _outlived(tx: Transaction, seen: Mapping[UUID, Expansion], *, now: datetime) -> dict[UUID, Expansion]:
    """Return the looks at rules that would end, though a person has moved an occurrence to later: they end then."""
    last = last_moves(tx, [rule_id for rule_id, expansion in seen.items() if expansion.ends], after=now)
    return {rule_id: replace(seen[rule_id], ends=False, look_at=at) for rule_id, at in last.items()}


def restore_moved(kernel: Kernel, tx: Transaction, rule: RecurringRule, *, now: datetime) -> None:
    """Queue again what was moved and then withdrawn, where its instant is still to come. The rule must be held."""
    requests = {
        line.nominal_at: request_of(kernel, rule, line.nominal_at, now=now, at=line.moved_to)
        for line in moved_lines(tx, rule.id, after=now)
    }
    admitted = insert_actions(tx, list(requests.values())).admitted
    take_up_moved(tx, rule.id, {at: each.id for at, each in requests.items() if each.id in admitted}, now=now)


def _left_out(seen: Mapping[UUID, Expansion]) -> Iterable[tuple[UUID, datetime, SkipReason]]:
    for rule_id, expansion in seen.items():
        for reason, instants in ((SkipReason.MISSED, expansion.missed), (SkipReason.OVERLAP, expansion.overlapped)):
            yield from ((rule_id, at, reason) for at in instants)


def request_of(
    kernel: Kernel, rule: RecurringRule, nominal_at: datetime, *, now: datetime, at: datetime | None = None
) -> Request:
    """Return the action of an occurrence: each is one of its own for the guard. `at` is where it was moved to."""
    return Request(
        id=kernel.new_id(now),
        workspace_id=rule.workspace_id,
        user_id=rule.user_id,
        action_type=rule.action_type,
        target_key=rule.target_key,
        payload=rule.payload(nominal_at),
        occurrence=occurrence_name(nominal_at),
        publish_at=at or nominal_at,
        intent=rule.intent(at or nominal_at),
        origin=RECURRING,
        origin_id=str(rule.id),
        overlap_key=rule.overlap_key if at is None else None,
        created_at=now,
    )


def _looked(rule: RecurringRule, expansion: Expansion | None, error: str | None, *, now: datetime) -> dict[str, object]:
    if expansion is None:
        return {
            "id": rule.id,
            "status": str(rule.status),
            "last_materialized_at": rule.last_materialized_at,
            "look_at": now + LOOK_AGAIN,
            "reroll_from": None,
            "last_error": error,
        }
    return {
        "id": rule.id,
        "status": str(RuleStatus.ENDED if expansion.ends else rule.status),
        "last_materialized_at": expansion.upto,
        "look_at": expansion.look_at,
        "reroll_from": None,
        "last_error": None,
    }


def _anew_soon(looked: Mapping[str, object], *, now: datetime) -> Mapping[str, object]:
    """Return what a look came to, such that it is soon decided anew: the days that it went by were being changed."""
    return {**looked, "status": str(RuleStatus.ACTIVE), "look_at": now + LOOK_ANEW, "reroll_from": now}
