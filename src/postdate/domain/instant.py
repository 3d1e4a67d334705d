"""Which instant does a datetime, or a text, name?"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from postdate.errors import InvalidInstant

MICROSECOND = timedelta(microseconds=1)
"""How far apart instants are at least: both databases keep no finer ones."""

BEGINNING = datetime.min.replace(tzinfo=UTC)
END = datetime.max.replace(tzinfo=UTC)

_LONGEST = 64
_WITH_OFFSET = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_TOO_FINE = re.compile(r":\d\d\.\d{7}", re.ASCII)


def utc(value: object, *, field: str) -> datetime:
    """Return an aware datetime in UTC.

    Raises `InvalidInstant` for a naive datetime (P95, P100), for anything else, and for an instant that falls
    outside the years 1 to 9999 once it is in UTC.
    """
    if type(value) is datetime and value.tzinfo is UTC:  # as nearly all are
        return value
    if not isinstance(value, datetime):
        raise InvalidInstant(field=field, rule="must be an aware datetime", value=value)
    try:
        naive = value.utcoffset() is None
    except Exception:  # noqa: BLE001 - a class of the caller's, which may raise anything
        raise InvalidInstant(field=field, rule="must carry a zone that tells its offset", value=value) from None
    if naive:
        raise InvalidInstant(field=field, rule="must carry a zone: a naive datetime names no instant", value=value)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidInstant(field=field, rule="must fall within the years 1 to 9999 in UTC", value=value) from None


def instant(value: datetime | str, *, field: str) -> datetime:
    """Return the instant (UTC) that an aware datetime or ISO 8601 text with an offset names.

    Raises `InvalidInstant`.
    """
    if not isinstance(value, str):
        return utc(value, field=field)
    if not has_offset(value):
        if _TOO_FINE.search(value[:_LONGEST]):  # as `date +%N` writes it
            raise InvalidInstant(field=field, rule="must have at most six digits behind the second", value=value)
        raise InvalidInstant(field=field, rule="must be ISO 8601 with an offset, as in 2027-03-14T09:00Z", value=value)
    try:
        return datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInstant(field=field, rule=f"is not a date and time: {error}", value=value) from None


def has_offset(value: object) -> bool:
    """Whether this is ISO 8601 text that carries an offset, and so names an instant by itself."""
    return isinstance(value, str) and len(value) <= _LONGEST and _WITH_OFFSET.fullmatch(value) is not None


def rfc3339(instant: datetime) -> str:
    """Return an aware instant in UTC as text: 2027-03-14T13:00:00Z."""
    return f"{instant.astimezone(UTC).isoformat()[:-6]}Z"
