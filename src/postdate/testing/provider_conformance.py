"""How does a case run a provider, and what does it look at?"""

from __future__ import annotations

from abc import ABC
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import httpx2

from postdate.domain.outcome import Published
from postdate.providers.http import http_client
from postdate.settings import Settings
from postdate.testing.loopback import HOST, LONG_PATIENCE
from postdate.testing.runs import lookup_of, outcome_of, submitted_action

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from pydantic import BaseModel

    from postdate.domain.action import Action
    from postdate.domain.outcome import Outcome
    from postdate.registry import ActionType
    from postdate.testing.rules import OutcomeType

Payload: TypeAlias = "BaseModel | Mapping[str, Any]"


class ProviderConformance(ABC):  # noqa: B024 - its subclasses say what is abstract
    """What both kinds of provider have in common."""

    payload: ClassVar[Payload] = {}
    """What is scheduled in every case."""
    target: ClassVar[str | None] = None
    """`ctx.target`."""
    provider_id: ClassVar[str | None] = None
    """The id that the provider gives what it took."""
    patience: float = LONG_PATIENCE
    """Seconds that `ctx.http` waits in this case. Give a client of your own no more: where the server is silent, it is
    short."""

    @asynccontextmanager
    async def running(self, action_type: ActionType, payload: Payload) -> AsyncIterator[Runs]:
        """Give what runs the action type, with a client that reaches the scripted servers."""
        async with http_client(Settings(egress_allow=HOST)) as http:
            http.timeout = httpx2.Timeout(self.patience)
            try:
                yield Runs(action_type, payload, self.target, http)
            finally:
                if action_type.close is not None:
                    await action_type.close()

    @staticmethod
    def check(outcome: Outcome, wanted: OutcomeType) -> None:
        """Fail where it is not the outcome wanted."""
        assert isinstance(outcome, wanted), f"expected {wanted.__name__}, but it was {outcome!r}"

    def check_published(self, outcome: Outcome) -> None:
        """Fail where it was not published under the provider's id."""
        self.check(outcome, Published)
        assert outcome == Published(provider_id=self.provider_id)


class Runs:
    """Runs one action type again and again, as one engine does."""

    def __init__(self, action_type: ActionType, payload: Payload, target: str | None, http: httpx2.AsyncClient) -> None:
        self._type = action_type
        self.lookup = action_type.lookup
        self._payload = payload
        self._target = target
        self._http = http

    def action(self, attempt: int = 1) -> Action:
        """Return what is run."""
        return submitted_action(self._type, self._payload, target=self._target, attempt=attempt)

    async def __call__(self, attempt: int = 1) -> Outcome:
        """Run the handler."""
        return await outcome_of(self._type, self.action(attempt), http=self._http)

    async def look(self) -> Outcome:
        """Ask the provider about a doubtful run."""
        return await lookup_of(self._type, self.action(), http=self._http)
