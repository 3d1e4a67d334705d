"""At which instant should an action fire, and which intent stands behind it?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from postdate.domain.action import Intent
from postdate.domain.instant import utc
from postdate.domain.walltime import Fold, Gap, resolve
from postdate.errors import InvalidInstant, InvalidZone

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST = 64
_WITH_OFFSET = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Moment:
    """An instant (UTC), and the wall time it came from where one was given."""

    publish_at: datetime
    intent: Intent | None = None


def moment(
    at: datetime | str,
    *,
    tz: str | None,
    gap: Gap,
    fold: Fold,
    default_zone: Callable[[], str | None],
) -> Moment:
    """Return the moment that `at` means.

    An aware datetime, or ISO text with an offset, is an instant. ISO text without one is a wall time in `tz`,
    else in what `default_zone()` answers; a naive datetime is one only where `tz` is given with it. Raises
    `InvalidInstant`, `InvalidWallTime`, or `InvalidZone` where there is no zone at all (P95).
    """
    if _has_offset(at) or (isinstance(at, datetime) and (at.tzinfo is not None or tz is None)):
        return Moment(publish_at=instant(at, field="at"))
    if not isinstance(at, str | datetime):
        raise InvalidInstant(field="at", rule="must be an aware datetime or ISO 8601 text", value=at)
    zone = tz if tz is not None else default_zone()
    if zone is None:
        raise InvalidZone(field="tz", rule="is needed: a wall time without a zone names no instant", value=at)
    publish_at = resolve(at, zone, gap=gap, fold=fold)
    wall_time = at if isinstance(at, str) else at.isoformat()
    return Moment(publish_at=publish_at, intent=Intent(wall_time=wall_time, tz=zone, gap=gap, fold=fold))


def instant(value: datetime | str, *, field: str) -> datetime:
    """Return the instant (UTC) that an aware datetime or ISO 8601 text with an offset names.

    Raises `InvalidInstant`.
    """
    if not isinstance(value, str):
        return utc(value, field=field)
    if not _has_offset(value):
        raise InvalidInstant(field=field, rule="must be ISO 8601 with an offset, as in 2027-03-14T09:00Z", value=value)
    try:
        return datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInstant(field=field, rule=f"is not a date and time: {error}", value=value) from None


def _has_offset(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST and _WITH_OFFSET.fullmatch(value) is not None
