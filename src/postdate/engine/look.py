"""What does a look at recurring rules come to?

It decides what becomes of their occurrences, up to the end of the window; the ledger keeps what was decided, so that
looking twice, or from two processes at once, comes to the same. The verbs look in their own transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from postdate.domain.action import ENGINE, RECURRING, Request
from postdate.domain.expand import Expansion, Noted, expand
from postdate.domain.rule import RuleStatus, SkipReason, occurrence_name
from postdate.domain.text import cleaned
from postdate.engine.withdraw import withdraw_window
from postdate.store.actions import insert_actions
from postdate.store.decided import last_moves, moved_lines, take_up_moved
from postdate.store.holidays import calendars_in_change, holidays
from postdate.store.occurrences import claim_lines, skip_lines
from postdate.store.rule_actions import last_runs, turns
from postdate.store.rules import note_looks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.expand import Turn
    from postdate.domain.rule import RecurringRule
    from postdate.kernel import Kernel
    from postdate.store.transaction import Transaction

MOST_ACTIONS = 5_000
"""After how many new actions it leaves the rest of them to the next."""

LOOK_AGAIN = timedelta(hours=1)
"""When a rule is looked at again that could not be read."""

LOOK_ANEW = timedelta(minutes=1)
"""When a rule is looked at again whose calendar of holidays somebody was changing."""


@dataclass(frozen=True, kw_only=True)
class LookReport:
    """What a look came to, or a pass of them."""

    looked: int = 0
    """At how many rules was looked."""
    materialised: int = 0
    missed: int = 0
    ended: int = 0
    """How many rules have nothing more to come."""
    failed: Mapping[UUID, str] = field(default_factory=dict)
    """The rules that could not be read, and why."""

    def __add__(self, other: LookReport) -> LookReport:
        """Return what both came to together."""
        return LookReport(
            looked=self.looked + other.looked,
            materialised=self.materialised + other.materialised,
            missed=self.missed + other.missed,
            ended=self.ended + other.ended,
            failed={**self.failed, **other.failed},
        )


def look_at(kernel: Kernel, tx: Transaction, rules: Sequence[RecurringRule], *, now: datetime) -> LookReport:
    """Look at rules that this transaction holds, as it does their owners."""
    rules = [_anew(kernel, tx, rule, now=now) for rule in rules]
    given = _given(tx, rules, window=kernel.settings.rule_window)
    looks = _outlived(tx, list(_looks(kernel, rules, given, now=now)), now=now)
    materialised = _materialise(tx, looks, now=now)
    note_looks(tx, [look.noted() for look in looks])
    return LookReport(
        looked=len(looks),
        materialised=materialised,
        missed=sum(len(look.expansion.missed) for look in looks),
        ended=sum(look.expansion.ends for look in looks),
        failed={look.rule.id: look.error for look in looks if look.error is not None},
    )


def _anew(kernel: Kernel, tx: Transaction, rule: RecurringRule, *, now: datetime) -> RecurringRule:
    """Return the rule with its window emptied where something that it depends on has changed."""
    if rule.reroll_from is None:
        return rule
    withdraw_window(kernel, tx, rule, now=now, actor=ENGINE, note=None)
    return replace(rule, last_materialized_at=min(rule.last_materialized_at, max(rule.reroll_from, now)))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Given:
    """What looks at some rules go by, the rules themselves apart."""

    window: timedelta
    calendars: Mapping[str, Collection[str]]
    """The holidays of each calendar that one of the rules keeps."""
    in_change: Collection[str]
    """The calendars that somebody is changing."""
    turns: Mapping[UUID, Turn]
    """How the last actions stand of those whose occurrences must not overlap."""


def _given(tx: Transaction, rules: Sequence[RecurringRule], *, window: timedelta) -> _Given:
    kept = {rule.holidays for rule in rules if rule.holidays is not None}
    in_change = calendars_in_change(tx, kept)  # before they are read: what is changed after that waits for us
    return _Given(window=window, calendars=holidays(tx, kept), in_change=in_change, turns=_turns(tx, rules))


def _turns(tx: Transaction, rules: Sequence[RecurringRule]) -> dict[UUID, Turn]:
    taken = turns(tx, [rule.id for rule in rules if rule.overlap == "skip"])
    for rule in rules:
        turn = taken.get(rule.id)
        if turn is not None and rule.misfire == "all" and not turn.active:
            taken[rule.id] = replace(turn, runs=last_runs(tx, rule.id, since=rule.last_materialized_at))
    return taken


@dataclass(frozen=True, kw_only=True, slots=True)
class _Look:
    """A look at one rule."""

    rule: RecurringRule
    expansion: Expansion
    requests: Sequence[Request] = ()
    """The actions of what is wanted, in its order."""
    reroll_from: datetime | None = None
    """From when on all is decided anew at the next look."""
    error: str | None = None
    """Why the rule could not be read."""

    def noted(self) -> Noted:
        """Return what it leaves in the rule."""
        return Noted(
            id=self.rule.id,
            status=RuleStatus.ENDED if self.expansion.ends else self.rule.status,
            last_materialized_at=self.expansion.upto,
            look_at=self.expansion.look_at,
            reroll_from=self.reroll_from,
            last_error=self.error,
        )

    def going_on(self, look_at: datetime, *, reroll_from: datetime | None = None) -> _Look:
        """Return it such that the rule does not end, and is looked at again then."""
        return replace(self, expansion=replace(self.expansion, look_at=look_at, ends=False), reroll_from=reroll_from)


def _looks(kernel: Kernel, rules: Iterable[RecurringRule], given: _Given, *, now: datetime) -> Iterator[_Look]:
    """Look at one rule after the other, as long as there is room for what they come to."""
    wanted = 0
    for rule in rules:
        look = _look(kernel, rule, given, now=now)
        yield look.going_on(now + LOOK_ANEW, reroll_from=now) if rule.holidays in given.in_change else look
        wanted += len(look.requests)
        if wanted > MOST_ACTIONS:
            return


def _look(kernel: Kernel, rule: RecurringRule, given: _Given, *, now: datetime) -> _Look:
    days = () if rule.holidays is None else given.calendars[rule.holidays]
    try:
        expansion = expand(rule, now=now, window=given.window, holidays=days, turn=given.turns.get(rule.id))
        requests = [request_of(kernel, rule, at, now=now) for at in expansion.wanted]
    except Exception as error:  # noqa: BLE001 - told, and one rule that cannot be read stops no other
        unread = Expansion(upto=rule.last_materialized_at, look_at=now + LOOK_AGAIN)
        return _Look(rule=rule, expansion=unread, error=cleaned(f"{type(error).__name__}: {error}"))
    return _Look(rule=rule, expansion=expansion, requests=requests)


def _outlived(tx: Transaction, looks: list[_Look], *, now: datetime) -> list[_Look]:
    """Return the looks; rules that would end go on until what a person has moved to later is past."""
    last = last_moves(tx, [look.rule.id for look in looks if look.expansion.ends], after=now)
    return [look.going_on(last[look.rule.id]) if look.rule.id in last else look for look in looks] if last else looks


def _materialise(tx: Transaction, looks: Sequence[_Look], *, now: datetime) -> int:
    """Write the ledger, then the actions of the lines that it took; return how many actions there are more."""
    made = [
        (look.rule.id, at, request.id)
        for look in looks
        for at, request in zip(look.expansion.wanted, look.requests, strict=True)
    ]
    written = claim_lines(tx, made=made, left_out=list(_left_out(looks)), now=now)
    new = [request for look in looks for request in look.requests if request.id in written]
    admitted = insert_actions(tx, new).admitted
    refused = [request.id for request in new if request.id not in admitted]
    skip_lines(tx, refused, reason=SkipReason.REFUSED, now=now)
    return len(admitted)


def _left_out(looks: Iterable[_Look]) -> Iterator[tuple[UUID, datetime, SkipReason]]:
    for look in looks:
        yield from ((look.rule.id, at, SkipReason.MISSED) for at in look.expansion.missed)
        yield from ((look.rule.id, at, SkipReason.OVERLAP) for at in look.expansion.overlapped)


def restore_moved(kernel: Kernel, tx: Transaction, rule: RecurringRule, *, now: datetime) -> None:
    """Queue again what was moved and then withdrawn, where its instant is still to come. The rule must be held."""
    requests = {
        line.nominal_at: request_of(kernel, rule, line.nominal_at, now=now, at=line.moved_to)
        for line in moved_lines(tx, rule.id, after=now)
    }
    admitted = insert_actions(tx, list(requests.values())).admitted
    take_up_moved(tx, rule.id, {at: each.id for at, each in requests.items() if each.id in admitted}, now=now)


def request_of(
    kernel: Kernel, rule: RecurringRule, nominal_at: datetime, *, now: datetime, at: datetime | None = None
) -> Request:
    """Return the action of an occurrence: each is one of its own for the guard. `at` is where it was moved to."""
    return Request.read(
        {
            "id": kernel.new_id(now),
            "workspace_id": rule.workspace_id,
            "user_id": rule.user_id,
            "action_type": rule.action_type,
            "target_key": rule.target_key,
            "payload": rule.payload(nominal_at),
            "occurrence": occurrence_name(nominal_at),
            "publish_at": at or nominal_at,
            "intent": rule.intent(at or nominal_at),
            "origin": RECURRING,
            "origin_id": str(rule.id),
            "overlap_key": rule.overlap_key if at is None else None,
            "created_at": now,
        }
    )
