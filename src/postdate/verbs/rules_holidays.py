"""On which days does nothing fire of the rules that keep a calendar of holidays?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from itertools import islice
from typing import TYPE_CHECKING

from postdate.domain import text
from postdate.errors import Invalid
from postdate.store import holidays as calendars

if TYPE_CHECKING:
    from postdate.kernel import Connectable, Kernel, Unbegun

MOST_DAYS = 5000
_LONGEST_DAY = 10


def set_holidays(
    kernel: Kernel,
    calendar: str,
    days: Mapping[date | str, str | None] | Iterable[date | str],
    *,
    connection: Connectable | Unbegun | None = None,
) -> Mapping[str, str | None]:
    """Let these be the days of a calendar, each with a name or without, and return them; none at all empties it.

    Rules that keep the calendar are decided anew within a minute: what is queued for such a day is withdrawn, and what
    was left out for a day that is none any more comes back. Raises `Invalid`.
    """
    calendar, wanted = text.name(calendar, field="calendar"), _days(days)
    with kernel.transaction(connection) as tx:
        calendars.set_holidays(tx, calendar, wanted, now=kernel.now(tx))
    return wanted


def holidays(
    kernel: Kernel, calendar: str, *, connection: Connectable | Unbegun | None = None
) -> Mapping[str, str | None]:
    """Return the days of a calendar, as in 2027-12-25, with their names; none for one that nobody has made."""
    name = text.name(calendar, field="calendar")
    with kernel.transaction(connection, read_only=True) as tx:
        return calendars.holidays(tx, [name])[name]


def _days(days: object) -> dict[str, str | None]:
    named = days if isinstance(days, Mapping) else None
    if isinstance(days, str | bytes) or not isinstance(days, Iterable):
        raise Invalid(field="days", rule="must be a list of days, or a mapping of days to names", value=days)
    several = list(islice(days, MOST_DAYS + 1))
    if len(several) > MOST_DAYS:
        raise Invalid(field="days", rule=f"must be at most {MOST_DAYS}")
    found = {_day(day): None if named is None else text.optional_name(named[day], field="days") for day in several}
    return dict(sorted(found.items()))


def _day(value: object) -> str:
    try:
        if isinstance(value, str) and len(value) <= _LONGEST_DAY:
            return date.fromisoformat(value).isoformat()
    except ValueError:
        raise Invalid(field="days", rule="must be days of the calendar, as in 2027-12-25", value=value) from None
    if isinstance(value, datetime) or not isinstance(value, date):
        raise Invalid(field="days", rule="must be dates, or text as in 2027-12-25", value=value)
    return value.isoformat()
