"""What does an intent mean now, and what follows where that is another instant?

`shift` is the whole decision: an action that is still to come, the zone it is read in now and the policy go in.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, get_args

from postdate.domain.walltime import resolve
from postdate.domain.zones import zone
from postdate.errors import Invalid, InvalidWallTime, InvalidZone

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.action import Intent

TzSource = Literal["call", "owner"]
"""Who named the zone: the request itself, which keeps it, or its owner, whom it follows into another."""

ZonePolicy = Literal["follow", "ask", "pin"]
"""Where the wall time comes to mean another instant: go there, let a person decide, or stay."""


class Doubt(StrEnum):
    """Why a person has to say what becomes of it."""

    POLICY = "policy"
    """Its policy is to ask."""
    PAST = "past"
    """The wall time is over where it is read now: following would fire it at once."""
    EXPIRED = "expired"
    """It would be due after it has expired."""
    GAP = "gap"
    """Clocks skip the wall time now, and it refuses gaps."""
    ZONE = "zone"
    """There is no such zone, or no longer."""
    WALL_TIME = "wall_time"
    """What another program wrote as a wall time is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Intended:
    """A queued action that is still to come, as far as its wall time goes."""

    action_id: UUID
    action_type: str
    workspace_id: UUID | None
    user_id: UUID
    publish_at: datetime
    expires_at: datetime | None
    intent: Intent
    rule_id: UUID | None = None
    """The recurring rule that it is an occurrence of."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shift:
    """A queued action whose wall time now means another instant, or none."""

    intended: Intended
    tz: str
    """The zone that it is read in now."""
    means: datetime | None
    """The instant (UTC) that it means now; None where it means none."""
    course: ZonePolicy
    """What becomes of it: it goes there, waits for a person's word, or stays. Until then it fires when it was to."""
    doubt: Doubt | None = None
    """Why a person is asked."""


def check_zone_policy(value: object) -> None:
    """Refuse what is no `ZonePolicy` and not None, with `Invalid`."""
    if value is not None and (not isinstance(value, str) or value not in get_args(ZonePolicy)):
        raise Invalid(field="zone_policy", rule=f"must be one of {', '.join(get_args(ZonePolicy))}", value=value)


def shift(intended: Intended, *, tz: str, policy: ZonePolicy, now: datetime) -> Shift | None:
    """Return how the action's wall time has shifted, read in `tz`; None where it means the instant it has.

    Nothing is followed to an instant that is past: what cannot be called back is not for a change of rules to fire.
    """
    means, doubt = _meaning(intended.intent, tz)
    if means == intended.publish_at:
        return None
    if policy == "pin":
        return Shift(intended=intended, tz=tz, means=means, course="pin")
    doubt = doubt or _doubt(intended, means, policy, now)
    return Shift(intended=intended, tz=tz, means=means, course="follow" if doubt is None else "ask", doubt=doubt)


def _meaning(intent: Intent, tz: str) -> tuple[datetime | None, Doubt | None]:
    try:
        zone(tz)
    except InvalidZone:
        return None, Doubt.ZONE
    try:
        return resolve(intent.wall_time, tz, gap=intent.gap, fold=intent.fold), None
    except InvalidWallTime:
        pass
    try:
        resolve(intent.wall_time, tz)
    except InvalidWallTime:
        return None, Doubt.WALL_TIME
    return None, Doubt.GAP


def _doubt(intended: Intended, means: datetime | None, policy: ZonePolicy, now: datetime) -> Doubt | None:
    if means is not None and means <= now:
        return Doubt.PAST
    if means is not None and intended.expires_at is not None and intended.expires_at < means:
        return Doubt.EXPIRED
    return Doubt.POLICY if policy == "ask" else None
