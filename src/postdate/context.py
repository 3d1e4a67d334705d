"""What does a handler get to see beside its payload?"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import structlog

from postdate.domain.endpoint import Endpoints, RememberedEndpoints
from postdate.stopping import Stopping

if TYPE_CHECKING:
    from datetime import datetime

    import httpx2

    from postdate.domain.action import Action


@dataclass(kw_only=True)
class Context:
    """What a handler knows beside its payload."""

    action: Action
    now: datetime
    """When the run started (UTC)."""
    deadline: datetime
    """When the run is cut off (UTC)."""
    http: httpx2.AsyncClient
    """A shared client: no redirects, no proxies from the environment. For async handlers."""
    endpoints: Endpoints = field(default_factory=RememberedEndpoints)
    """Which endpoints of the action's owner are gone. For async handlers."""
    stopping: Stopping = field(default_factory=Stopping)
    """True once the engine stops: a long handler may raise `Deferred` then, before it is cut off."""

    @cached_property
    def log(self) -> structlog.stdlib.BoundLogger:
        """Logs lines that name the action and its type."""
        logger: structlog.stdlib.BoundLogger = structlog.get_logger(
            "postdate", action=str(self.action.id), action_type=self.action.action_type
        )
        return logger

    @property
    def target(self) -> str | None:
        """The sub-target: a platform, a channel, a phone number."""
        return self.action.target_key

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self.action.attempt_count

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at this action: a provider that honours it acts once."""
        return str(self.action.id)
