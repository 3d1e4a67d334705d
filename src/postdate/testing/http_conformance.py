"""What does a provider behind an HTTP API have to tell apart?"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

import pytest

from postdate.domain.outcome import NotSent, Unconfirmed
from postdate.testing import http_situations
from postdate.testing.http_server import Answer, Request, ScriptedHttp, Then, answer
from postdate.testing.http_situations import WAIT, HttpSituation
from postdate.testing.loopback import FLOOD_BYTES
from postdate.testing.provider_conformance import Payload, ProviderConformance, Runs
from postdate.testing.rules import OutcomeType, check_differences, expected

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager

    from postdate.domain.action import Action
    from postdate.registry import ActionType


class HttpProviderConformance(ProviderConformance):
    """What a provider behind an HTTP API has to tell apart."""

    accepted: ClassVar[Answer] = answer("200 OK")
    """How the server says yes."""
    answers: ClassVar[Mapping[HttpSituation, Answer]] = {}
    """The server's own wording in a situation, such as `answer("422 No", body={"code": 7})` for a refusal."""
    differs: ClassVar[Mapping[HttpSituation, OutcomeType]] = {}
    """Where the outcome is another than the expected one, as in `{HttpSituation.UNAVAILABLE: Unconfirmed}`."""

    found: ClassVar[Answer | None] = None
    """How the server answers `lookup` where it has what was sent."""

    def __init_subclass__(cls) -> None:
        """Refuse declarations that would break a promise."""
        check_differences(http_situations.RULES, cls.differs)

    @abstractmethod
    def action_type(self, base_url: str) -> ActionType:
        """Return the action type, bound to a server: `base_url` is a scheme, a host and a port."""

    def payload_for(self, base_url: str) -> Payload:  # noqa: ARG002 - who overrides it needs the address
        """Return what is scheduled: override it where the payload itself holds the address."""
        return self.payload

    @abstractmethod
    def check_request(self, request: Request, action: Action) -> None:
        """Assert that the request is what the server has to get for this action."""

    @pytest.mark.parametrize("situation", list(HttpSituation), ids=str)
    def test_the_outcome_when(self, situation: HttpSituation) -> None:
        """Each situation ends in the outcome that says what is known."""
        asyncio.run(self._outcome_when(situation))

    def test_what_is_sent_and_what_is_kept_of_the_answer(self) -> None:
        """One request goes out, and the provider's id is kept (P28)."""
        asyncio.run(self._what_is_sent())

    def test_every_attempt_carries_the_same_key_where_the_action_type_is_idempotent(self) -> None:
        """`idempotent=True` promises that the provider tells a repeated call apart: it has to get the key."""
        asyncio.run(self._every_attempt_carries_the_key())

    def test_a_broken_connection_does_not_keep_the_next_action_back(self) -> None:
        """Whatever a failure leaves behind, the next run starts clean."""
        asyncio.run(self._the_next_goes_out())

    def test_a_connection_that_the_server_closed_meanwhile_is_replaced(self) -> None:
        """Servers close what is idle."""
        asyncio.run(self._closed_connections_are_replaced())

    def test_a_lookup_settles_nothing_without_a_clear_answer(self) -> None:
        """Whatever keeps `lookup` from asking says nothing about what happened before."""
        asyncio.run(self._lookup_without_an_answer())

    def test_a_lookup_finds_what_the_provider_has(self) -> None:
        """Where `found` says how that looks."""
        asyncio.run(self._lookup_finds())

    def _bound(self, base_url: str) -> AbstractAsyncContextManager[Runs]:
        return self.running(self.action_type(base_url), self.payload_for(base_url))

    async def _outcome_when(self, situation: HttpSituation) -> None:
        self.patience = http_situations.patience(situation)
        async with http_situations.staged(situation, self.answers) as stage:
            async with self._bound(stage.base_url) as run:
                outcome = await run()
            self.check(outcome, expected(situation, http_situations.RULES, self.differs))
            if situation in {HttpSituation.BUSY_FOR_SECONDS, HttpSituation.BUSY_UNTIL} and isinstance(outcome, NotSent):
                assert outcome.retry_after == WAIT, "the wait that the server asked for is kept"
            assert len(stage.requests) <= 1, "nothing is sent twice, and no redirect is followed"
            assert stage.flooded < FLOOD_BYTES, "an answer without an end is not read to the end"

    async def _what_is_sent(self) -> None:
        async with ScriptedHttp(answer=self.accepted) as server:
            async with self._bound(server.base_url) as run:
                self.check_published(await run())
            (request,) = server.requests
            self.check_request(request, run.action())

    async def _every_attempt_carries_the_key(self) -> None:
        async with ScriptedHttp(answer=self.accepted) as server:
            action_type = self.action_type(server.base_url)
            if not action_type.policy.idempotent:
                pytest.skip("the action type is not idempotent")
            async with self.running(action_type, self.payload_for(server.base_url)) as run:
                for attempt in (1, 2):
                    await run(attempt)
            key = str(run.action().id).encode()
            assert [key in request.raw for request in server.requests] == [True, True], (
                "each carries ctx.idempotency_key"
            )

    async def _the_next_goes_out(self) -> None:
        async with (
            ScriptedHttp(answer=Answer(then=Then.RESET)) as server,
            self._bound(server.base_url) as run,
        ):
            await run()
            server.answer = self.accepted
            self.check_published(await run())

    async def _closed_connections_are_replaced(self) -> None:
        async with ScriptedHttp(answer=Answer(sent=self.accepted.sent, then=Then.CLOSE)) as server:
            async with self._bound(server.base_url) as run:
                for _ in range(2):
                    self.check_published(await run())
                    await server.ended()
            assert len(server.requests) == 2  # noqa: PLR2004 - one for each run

    async def _lookup_without_an_answer(self) -> None:
        for situation in HttpSituation:
            self.patience = http_situations.patience(situation)
            async with http_situations.staged(situation, self.answers) as stage, self._bound(stage.base_url) as run:
                if run.lookup is None:
                    pytest.skip("the action type has no lookup")
                outcome = await run.look()
                assert isinstance(outcome, Unconfirmed), f"it was {outcome!r} when {situation}"
                assert stage.flooded < FLOOD_BYTES, "an answer without an end is not read to the end"

    async def _lookup_finds(self) -> None:
        if self.found is None:
            pytest.skip("the provider does not say how it answers a lookup")
        async with ScriptedHttp(answer=self.found) as server, self._bound(server.base_url) as run:
            self.check_published(await run.look())
