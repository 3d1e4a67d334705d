"""Which days and times does somebody leave out of a rule, or add to it?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime
from itertools import islice

from postdate.domain.instant import has_offset, instant, utc
from postdate.domain.walltime import wall_time
from postdate.errors import Invalid, InvalidRule

MAX_DATES = 5000

_DAY = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)", re.ASCII)
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\d)(Z?)", re.ASCII)  # as in iCalendar
_START_FORMS = "must be a day (2027-12-25) or a wall time (2027-12-25T09:00)"
_FORMS = "must be a day (2027-12-25), a wall time (2027-12-25T09:00) or an instant (2027-12-25T09:00Z)"
_SPREAD = r"\1-\2-\3:\4:\5\6"


def named_dates(part: str, values: Iterable[datetime | date | str]) -> tuple[datetime | date, ...]:
    """Return, in order and without repetition, the days, wall times (naive) and instants (UTC) that values name.

    Text is ISO 8601 or iCalendar's compact form: `2026-12-25`, `20261225T090000`, `2026-12-25T09:00Z`. Raises
    `InvalidRule` with the name `part`.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidRule("rrule", part=part, why="must be a list of dates and times", value=values)
    if values == ():
        return ()
    several = list(islice(values, MAX_DATES + 1))
    if len(several) > MAX_DATES:
        raise InvalidRule("rrule", part=part, why=f"must have at most {MAX_DATES} dates")
    found = {_named(part, value) for value in several}
    return tuple(sorted(found, key=lambda value: value.isoformat()))


def first_wall(start: datetime | date | str) -> datetime:
    """Return the wall time (naive) at which a rule begins; a day begins at midnight. Raises `InvalidRule`."""
    named = _named("start", start)
    wall = named if isinstance(named, datetime) else datetime.combine(named, datetime.min.time())
    if wall.tzinfo is not None:
        raise InvalidRule("rrule", part="start", why="must be a wall time: its zone is given apart", value=start)
    if wall.microsecond:
        raise InvalidRule("rrule", part="start", why="must be a whole second", value=start)
    return wall


def _named(part: str, value: object) -> datetime | date:
    try:
        if isinstance(value, str):
            return _read(value, forms=_START_FORMS if part == "start" else _FORMS)
        if isinstance(value, datetime):
            return wall_time(value) if value.tzinfo is None else utc(value, field=part)
    except Invalid as error:
        raise InvalidRule("rrule", part=part, why=error.rule, value=value) from None
    except ValueError:
        raise InvalidRule("rrule", part=part, why="must be a day of the calendar", value=value) from None
    if isinstance(value, date):
        return date(value.year, value.month, value.day)
    raise InvalidRule("rrule", part=part, why="must be a date, a datetime or ISO 8601 text", value=value)


def _read(text: str, *, forms: str) -> datetime | date:
    if "T" not in text and (day := _DAY.fullmatch(text)):
        return date(*map(int, day.groups()))
    if "T" not in text and " " not in text:
        raise Invalid(field="date", rule=forms)
    spread = _COMPACT.sub(_SPREAD, text) if "-" not in text and _COMPACT.fullmatch(text) else text
    return instant(spread, field="date") if has_offset(spread) else wall_time(spread)
