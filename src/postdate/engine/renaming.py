"""Which nominal instants do a rule's occurrences have now that its zone has other rules?

An occurrence is known by its nominal instant: to the ledger, the guard and what was said of it alone. When that
instant shifts, it has to stay the same occurrence, or the expander would make it once more. Of what is queued the
actions tell their wall times; of what people have decided, and nothing is queued for, the ledger does.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from postdate.domain.action import ENGINE
from postdate.domain.instant import MICROSECOND
from postdate.domain.rule import OccurrenceState, occurrence_name
from postdate.engine.withdraw import withdraw
from postdate.errors import Invalid
from postdate.store.decided import decided_lines, rename_lines
from postdate.store.occurrences import lines_of
from postdate.store.rules import save_rule

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.rule import RecurringRule, RuleOccurrence
    from postdate.kernel import Kernel
    from postdate.store.transaction import Transaction

BAND = timedelta(days=1)
"""How far from now, and from the end of what was decided, an instant may have shifted over that border."""


def rename_occurrences(
    kernel: Kernel, tx: Transaction, rule: RecurringRule, followed: Mapping[datetime, datetime], *, now: datetime
) -> dict[str, str]:
    """Let the ledger and the overrides of a rule know occurrences by the instants they have now; return the new names.

    `followed` tells which nominal instants are which now, by the actions of the rule that follow their wall times. What
    was decided is looked at again near its end, so that no occurrence falls between. The rule must be held.
    """
    lines = {line.nominal_at: line for line in lines_of(tx, rule.id, since=now - BAND)}
    lines |= {line.nominal_at: line for line in decided_lines(tx, rule.id, since=now - BAND)}
    shifted = _shifted(rule, lines, followed)
    there = {at: lines.get(line.nominal_at) for at, line in shifted.items() if line.nominal_at not in shifted}
    gone = _withdrawn(kernel, tx, rule, [line for line in there.values() if line is not None], now=now)
    shifted = {at: line for at, line in shifted.items() if _makes_way(there.get(at), gone)}
    rename_lines(tx, rule.id, shifted)
    names = {occurrence_name(at): occurrence_name(line.nominal_at) for at, line in shifted.items()}
    overrides = {names.get(name, name): said for name, said in rule.overrides.items()}
    decided = rule.last_materialized_at
    if followed:
        decided = min(decided, max(now, decided - BAND))
    decided = min([decided, *(at - MICROSECOND for at in gone.values())])
    save_rule(tx, replace(rule, overrides=overrides, last_materialized_at=decided, look_at=now))
    return names


def meant_now(rule: RecurringRule, line: RuleOccurrence) -> RuleOccurrence:
    """Return a line with the instants that its wall times mean now. Where there is an action, that tells its own."""
    if line.state is OccurrenceState.MATERIALISED:
        return line
    try:
        nominal_at = rule.means_now(line.nominal_at, line.wall_time)
        if line.moved_to is None or line.action_id is not None:
            return replace(line, nominal_at=nominal_at)
        return replace(line, nominal_at=nominal_at, moved_to=rule.means_now(line.moved_to, line.moved_wall))
    except Invalid:  # its zone is none any more, say: the expander tells of it
        return line


def _shifted(
    rule: RecurringRule, lines: Mapping[datetime, RuleOccurrence], followed: Mapping[datetime, datetime]
) -> dict[datetime, RuleOccurrence]:
    """Return the lines that are about other instants now, by those that they were about."""
    told = {at: _followed(rule, line, followed) for at, line in lines.items()}
    shifted = {at: line for at, line in told.items() if line != lines[at]}
    return shifted | _guessed(rule, lines, shifted, by={to - at for at, to in followed.items()})


def _followed(rule: RecurringRule, line: RuleOccurrence, followed: Mapping[datetime, datetime]) -> RuleOccurrence:
    to = followed.get(line.nominal_at) if line.state is OccurrenceState.MATERIALISED else None
    return meant_now(rule, line) if to is None else replace(line, nominal_at=to)


def _guessed(
    rule: RecurringRule,
    lines: Mapping[datetime, RuleOccurrence],
    shifted: Mapping[datetime, RuleOccurrence],
    *,
    by: Collection[timedelta],
) -> dict[datetime, RuleOccurrence]:
    """Return lines that no wall time tells of, and whose instants are none of the rule's any more, as others shifted.

    Their actions were rescheduled, or have run.
    """
    known = {
        line.nominal_at for at, line in {**lines, **shifted}.items() if line.state is not OccurrenceState.WITHDRAWN
    }
    new: dict[datetime, RuleOccurrence] = {}
    for at, line in lines.items():
        if at in shifted or line.wall_time is not None or line.state is OccurrenceState.WITHDRAWN or _has(rule, at):
            continue
        to = next((at + each for each in sorted(by) if at + each not in known and _has(rule, at + each)), None)
        if to is not None:
            new[at] = replace(line, nominal_at=to)
    return new


def _has(rule: RecurringRule, at: datetime) -> bool:
    try:
        return rule.fires_at(at)
    except Invalid:  # its zone is none any more, say
        return False


def _withdrawn(
    kernel: Kernel, tx: Transaction, rule: RecurringRule, lines: Sequence[RuleOccurrence], *, now: datetime
) -> dict[UUID, datetime]:
    """Withdraw what the expander has made of these occurrences, where that is queued; return the nominal instants.

    It came to them first, by the new rules, and knew no better.
    """
    made = {
        line.action_id: line.nominal_at
        for line in lines
        if line.state is OccurrenceState.MATERIALISED and line.wall_time is None and line.action_id is not None
    }
    if not made:
        return {}
    gone = withdraw(kernel, tx, rule, which=lambda each: each.action_id in made, now=now, actor=ENGINE, note=None)
    return {action_id: made[action_id] for action_id in gone}


def _makes_way(line: RuleOccurrence | None, gone: Collection[UUID]) -> bool:
    """Whether another line may be written over this one: nobody has decided about it, and nothing was made of it."""
    if line is None:
        return True
    return line.wall_time is None and (line.state is not OccurrenceState.MATERIALISED or line.action_id in gone)
