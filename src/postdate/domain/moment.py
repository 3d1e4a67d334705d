"""At which instant should an action fire, and which intent stands behind it?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from postdate.domain.action import Intent
from postdate.domain.instant import has_offset, instant
from postdate.domain.intent import check_zone_policy
from postdate.domain.walltime import Fold, Gap, resolve
from postdate.errors import InvalidInstant, InvalidZone

if TYPE_CHECKING:
    from collections.abc import Callable

    from postdate.domain.intent import TzSource, ZonePolicy


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
    zone_policy: ZonePolicy | None = None,
) -> Moment:
    """Return the moment that `at` means.

    An aware datetime, or ISO text with an offset, is an instant. ISO text without one is a wall time in `tz`,
    else in what `default_zone()` answers; a naive datetime is one only where `tz` is given with it. `zone_policy` is
    kept with a wall time. Raises `InvalidInstant`, `InvalidWallTime`, `InvalidZone` where there is no zone at all
    (P95), and `Invalid`.
    """
    check_zone_policy(zone_policy)
    if has_offset(at) or (isinstance(at, datetime) and (at.tzinfo is not None or tz is None)):
        return Moment(publish_at=instant(at, field="at"))
    if not isinstance(at, str | datetime):
        raise InvalidInstant(field="at", rule="must be an aware datetime or ISO 8601 text", value=at)
    zone = tz if tz is not None else default_zone()
    if zone is None:
        resolve(at, "UTC", gap=gap, fold=fold)  # what is no wall time at all, no zone would mend
        raise InvalidZone(field="tz", rule="is needed: a wall time without a zone names no instant", value=at)
    publish_at = resolve(at, zone, gap=gap, fold=fold)
    wall_time = at if isinstance(at, str) else at.isoformat()
    source: TzSource = "owner" if tz is None else "call"
    intent = Intent(wall_time=wall_time, tz=zone, gap=gap, fold=fold, tz_source=source, zone_policy=zone_policy)
    return Moment(publish_at=publish_at, intent=intent)


def expiry(value: datetime | str | None, *, publish_at: datetime) -> datetime | None:
    """Return the instant after which it is too late. Raises `InvalidInstant` where that is before it is due."""
    if value is None:
        return None
    expires_at = instant(value, field="expires_at")
    if expires_at < publish_at:
        raise InvalidInstant(field="expires_at", rule="must not be before the action is due", value=expires_at)
    return expires_at
