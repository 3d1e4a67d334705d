"""What counts as an instant?"""

from __future__ import annotations

from datetime import UTC, datetime

from postdate.errors import InvalidInstant


def utc(value: object, *, field: str) -> datetime:
    """Return an aware datetime in UTC.

    Raises `InvalidInstant` for a naive datetime (P95, P100), for anything else, and for an instant that falls
    outside the years 1 to 9999 once it is in UTC.
    """
    if not isinstance(value, datetime):
        raise InvalidInstant(field=field, rule="must be an aware datetime", value=value)
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidInstant(field=field, rule="must carry a zone: a naive datetime names no instant", value=value)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidInstant(field=field, rule="must fall within the years 1 to 9999 in UTC", value=value) from None
