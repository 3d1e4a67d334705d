"""Which nominal instants do a rule's occurrences have now that its zone has other rules?

An occurrence is known by its nominal instant: to the ledger, the guard and what was said of it alone. When that
instant shifts, it has to stay the same occurrence, or the expander would make it once more.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from postdate.domain.rule import nominal_instant, occurrence_name
from postdate.errors import Invalid
from postdate.store.intents import relink_line, rename_line
from postdate.store.occurrences import lines_of
from postdate.store.rules import save_rule

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from postdate.domain.action import Action, Request
    from postdate.domain.rule import RecurringRule
    from postdate.store.transaction import Transaction

_BAND = timedelta(days=1)
"""How far from now, and from the end of what was decided, an instant may have shifted over that border."""

_MOMENT = timedelta(microseconds=1)


def rename_occurrences(
    tx: Transaction, rule: RecurringRule, shifted: Iterable[timedelta], *, now: datetime
) -> dict[str, str]:
    """Let the ledger and the overrides of a rule know occurrences by the instants they have now; return the new names.

    `shifted` is by how much wall times of the rule have shifted. What was decided is looked at again near its end, so
    that no occurrence falls between. The rule must be held.
    """
    lines = lines_of(tx, rule.id, since=now - _BAND)
    names = {}
    for at, to in _shifted(rule, [line.nominal_at for line in lines], sorted(set(shifted))).items():
        rename_line(tx, rule.id, at, to)
        names[occurrence_name(at)] = occurrence_name(to)
    overrides = {names.get(name, name): said for name, said in rule.overrides.items()}
    upto = min(rule.last_materialized_at, max(now, rule.last_materialized_at - _BAND))
    save_rule(tx, replace(rule, overrides=overrides, last_materialized_at=upto, look_at=now))
    return names


def _shifted(
    rule: RecurringRule, nominal: Collection[datetime], shifted: Collection[timedelta]
) -> dict[datetime, datetime]:
    """Return the new instants of those that the rule does not have any more."""
    known = set(nominal)
    new: dict[datetime, datetime] = {}
    for at in nominal:
        if _has(rule, at):
            continue
        to = next((at + by for by in shifted if at + by not in known and _has(rule, at + by)), None)
        if to is not None:
            new[at] = to
    return new


def _has(rule: RecurringRule, at: datetime) -> bool:
    try:
        return next(rule.occurrences(at - _MOMENT, at), None) == at
    except Invalid:  # its zone is none any more, say
        return False


def relink_occurrence(tx: Transaction, old: Action, new: Request) -> None:
    """Let the ledger name the action that took the place of another. The rule must be held."""
    at = nominal_instant(new.occurrence)
    if at is not None:
        relink_line(tx, UUID(new.origin_id), at, old=old.id, new=new.id, publish_at=new.publish_at)
