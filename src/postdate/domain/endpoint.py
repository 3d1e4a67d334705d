"""Which endpoints have said that they are gone for good?

An endpoint is an address that webhooks are sent to. One that answers 410 is disabled for the owner of the action: the
workspace, else the user. Nothing more is sent there until a person enables it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime


class Endpoints(Protocol):
    """The endpoints of one action's owner. For async handlers; a URL is compared as text."""

    async def disabled_since(self, url: str) -> datetime | None:
        """Return when the endpoint was disabled (UTC); None where it is not."""

    async def disable(self, url: str, *, at: datetime) -> None:
        """Disable the endpoint. One that is disabled already stays so since then."""


@dataclass(frozen=True)
class RememberedEndpoints:
    """Endpoints that this object alone remembers: for runs without a database."""

    _since: dict[str, datetime] = field(default_factory=dict)

    async def disabled_since(self, url: str) -> datetime | None:
        """Return when the endpoint was disabled."""
        return self._since.get(url)

    async def disable(self, url: str, *, at: datetime) -> None:
        """Disable the endpoint."""
        self._since.setdefault(url, at)
