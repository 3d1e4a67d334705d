"""On which days does nothing fire of the rules that keep a calendar?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Text, delete, func, insert, literal, select

from postdate.store.rules import decide_anew
from postdate.store.sets import one_of, rowset

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from sqlalchemy import ColumnElement

    from postdate.domain.rule import RecurringRule
    from postdate.store.transaction import Transaction


def set_holidays(tx: Transaction, calendar: str, days: Mapping[str, str | None], *, now: datetime) -> None:
    """Let these be the days of a calendar, with their names, and its rules be decided anew at the next look.

    It waits for whoever decides by the calendar as it was (`calendars_in_change`): what they wrote is decided anew.
    """
    h = tx.tables.holiday_calendars
    if not tx.is_sqlite:
        tx.execute(select(func.pg_advisory_xact_lock(_calendar_lock(tx, literal(calendar, Text)))))
    tx.execute(delete(h).where(h.c.calendar == calendar))
    if days:
        tx.execute(insert(h), [{"calendar": calendar, "day": day, "name": name} for day, name in days.items()])
    decide_anew(tx, calendar, now=now)


def calendars_in_change(tx: Transaction, calendars: Collection[str]) -> set[str]:
    """Return those of the calendars that another transaction is changing; keep the others as they are until this ends.

    Who decides by one that is in change sees its old days, and is not seen by who changes it: it has to decide anew
    later. It does not wait, since it holds rules that the other is to write. SQLite has one writer, and so none.
    """
    if tx.is_sqlite or not calendars:
        return set()
    named = rowset(tx, "asked", {"name": Text()}, {"name": sorted(calendars)})
    kept = func.pg_try_advisory_xact_lock_shared(_calendar_lock(tx, named.c.name))
    return {row.name for row in tx.execute(select(named.c.name, kept.label("kept"))) if not row.kept}


def _calendar_lock(tx: Transaction, calendar: ColumnElement[str]) -> ColumnElement[int]:
    """Return the number of a calendar's advisory lock, which is of the transaction: it works behind a pooler too."""
    place = literal(f"{tx.tables.names.qualifier('postgresql')}holidays ", Text)
    return func.hashtextextended(place.concat(calendar), 0)


def holidays(tx: Transaction, calendars: Collection[str]) -> dict[str, dict[str, str | None]]:
    """Return the days of each of these calendars, with their names; none for one that nobody has made."""
    found: dict[str, dict[str, str | None]] = {calendar: {} for calendar in calendars}
    if not found:
        return found
    h = tx.tables.holiday_calendars
    wanted = select(h).where(one_of(tx, h.c.calendar, list(found))).order_by(h.c.calendar, h.c.day)
    for row in tx.execute(wanted):
        found[row.calendar][row.day] = row.name
    return found


def days_off(tx: Transaction, rule: RecurringRule) -> Mapping[str, str | None]:
    """Return the holidays that a rule leaves out; none where it has no calendar."""
    return {} if rule.holidays is None else holidays(tx, [rule.holidays])[rule.holidays]
