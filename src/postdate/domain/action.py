"""What is an action?"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from postdate.domain.stored import Stored

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.intent import TzSource, ZonePolicy
    from postdate.domain.states import Reason, Status
    from postdate.domain.walltime import Fold, Gap

SEPARATOR = "\x1f"
"""Joins the parts of a key; refused in every part, so that no two sets of parts make one key."""


RECONCILER = "reconciler"
"""The origin of what a source wants; `origin_id` is the source's name."""

RECURRING = "recurring"
"""The origin of a rule's actions; `origin_id` is the rule's id."""


@dataclass(frozen=True, kw_only=True)
class Intent:
    """The wall time that was asked for, kept beside the instant it meant."""

    wall_time: str
    tz: str
    gap: Gap
    fold: Fold
    tz_source: TzSource = "call"
    """Whether the zone was named in the request, or is that of the owner, wherever the owner moves."""
    zone_policy: ZonePolicy | None = None
    """What becomes of it when the wall time comes to mean another instant; None for what its type says."""


@dataclass(frozen=True, kw_only=True)
class Request(Stored):
    """What was asked: one row of `actions`, written once."""

    id: UUID
    workspace_id: UUID | None
    user_id: UUID
    action_type: str
    target_key: str | None
    payload: Mapping[str, object]
    occurrence: str = ""
    publish_at: datetime
    intent: Intent | None = None
    expires_at: datetime | None = None
    origin: str = "api"
    origin_id: str | None = None
    replaces_id: UUID | None = None
    overlap_key: str | None = None
    traceparent: str | None = None
    created_at: datetime
    fingerprint: str | None = None
    """Of what a source said about it; None where none did."""

    @property
    def source(self) -> str | None:
        """The source that wants it; None where no reconciler made it."""
        return self.origin_id if self.origin == RECONCILER else None

    @cached_property
    def thing_id(self) -> str | None:
        """What is published, where the payload says so."""
        thing = self.payload.get("thing_id")
        return thing if isinstance(thing, str) else None

    @cached_property
    def key(self) -> str | None:
        """What the unique key and the publish guard protect; None without a thing."""
        if self.thing_id is None:
            return None
        return SEPARATOR.join((self.action_type, self.thing_id, self.target_key or "", self.occurrence))


@dataclass(frozen=True, kw_only=True)
class Action(Request):
    """An action as it stands: what was asked, what is to do, what happened. A row of `scheduled_actions`."""

    status: Status
    reason: Reason | None = None
    attempt_count: int = 0
    next_attempt_at: datetime | None = None
    last_error: str | None = None
    provider_id: str | None = None
    submitted_at: datetime | None = None
    finished_at: datetime | None = None
    paused: bool = False
    """Whether it is queued and a pause stops it."""
    updated_at: datetime


def asked(request: Request) -> dict[str, Any]:
    """Return what was asked, without what has become of it where this is an `Action`."""
    return {each.name: getattr(request, each.name) for each in fields(Request)}


def replacement(request: Request, **changes: Any) -> Request:
    """Return the request that replaces another: the same in everything but `changes`."""
    return Request(**{**asked(request), "replaces_id": request.id, **changes})


SCHEDULED = "schedule"
"""The cause of an action's first event."""

ENGINE = "engine"
"""The actor of what the engine decides by itself."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """One line of an action's history: who did what, when, with what detail."""

    at: datetime
    cause: str
    actor: str
    detail: Mapping[str, object] = field(default_factory=dict)


class Claimed(NamedTuple):
    """An action that this process has claimed, with the lease that fences its settle."""

    action: Action
    lease_token: UUID
    lease_until: datetime
    due_at: datetime
    """When it may begin (UTC): it may have been claimed a little ahead."""
    guarded: bool = False
    """Whether it must not run: its thing was published, or may have been, by another action."""
