"""Which whole second since 1970 is an instant?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

MINUTE = 60
HOUR = 3600
DAY = 86_400

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_MARGIN = timedelta(days=2)
_BEGIN = datetime.min.replace(tzinfo=UTC) + _MARGIN  # nearer to the calendar's ends a zone could leave it
_END = datetime.max.replace(tzinfo=UTC) - _MARGIN


def seconds_of(instant: datetime) -> int:
    """Return the second in which an aware instant lies, at least two days from the ends of the calendar."""
    return (min(max(instant, _BEGIN), _END) - _EPOCH) // _SECOND


def instant_of(second: int) -> datetime:
    """Return the instant (UTC) at which a second begins."""
    return _EPOCH + second * _SECOND


FIRST = seconds_of(_BEGIN)
LAST = seconds_of(_END)
