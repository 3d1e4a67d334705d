"""Is this database an old one that was put back?

Each tick leaves its time in the database, and which database it was. Whoever finds a last tick of long ago may have a
backup before him, whose queue holds what went out since.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from postdate.domain.instant import rfc3339

if TYPE_CHECKING:
    from datetime import datetime

MISSED = timedelta(minutes=10)
"""How long ticks may have been missing in another database than the last one was: as long as a planned move takes.

Also how far a database may be behind what a running engine has written to it: a standby that took over lacks a little.
"""

UNKNOWN = "?"
"""Stands in an identity for what the database does not tell."""

_SEPARATOR = "/"


def identity(*parts: object) -> str:
    """Return what tells a database from others, of parts that may be None where nobody tells."""
    return _SEPARATOR.join(UNKNOWN if part is None else str(part) for part in parts)


def why_hold(
    *,
    now: datetime,
    last_tick_at: datetime | None,
    last_identity: str | None,
    identity: str | None,
    seen: datetime | None,
    restore_hold: timedelta,
) -> str | None:
    """Return why nothing may be claimed until a person has looked; None where all is well.

    `last_tick_at` and `last_identity` are what the database holds, `seen` the last tick that this process wrote to it;
    None before its first, where a gap is all there is to go by. A `restore_hold` of zero never holds.
    """
    if restore_hold <= timedelta(0):
        return None
    if seen is not None:
        kept = "the first tick" if last_tick_at is None else rfc3339(last_tick_at)
        return f"the database has lost what was written to it since {kept}" if gone_back(last_tick_at, seen) else None
    if last_tick_at is None:
        return None
    gap = now - last_tick_at
    last = f"{rfc3339(last_tick_at)}, {_spoken(gap)} ago"
    if gap > restore_hold:
        return f"the last tick of any engine was at {last}"
    if gap > MISSED and is_another(last_identity, identity):
        return f"this is another database than that of the last tick, which was at {last}"
    return None


def gone_back(last_tick_at: datetime | None, seen: datetime | None) -> bool:
    """Whether the database has lost a tick that this process has written, and more than a standby may lack."""
    return seen is not None and (last_tick_at is None or seen - last_tick_at > MISSED)


def is_another(one: str | None, other: str | None) -> bool:
    """Whether two identities differ in something that both of them tell."""
    if one is None or other is None:
        return False
    pairs = zip(one.split(_SEPARATOR), other.split(_SEPARATOR), strict=False)
    return any(left != right and UNKNOWN not in {left, right} for left, right in pairs)


def _spoken(gap: timedelta) -> str:
    return str(gap - timedelta(microseconds=gap.microseconds))
