"""Does a provider say what really happened?

Subclass one of the two classes in a test module, say how your action type is bound to a server, and pytest runs it
against a real, scripted one:

    class TestChirp(HttpProviderConformance):
        payload = {"text": "Hello"}
        accepted = answer("201 Created", body={"id": "42"})
        provider_id = "42"

        def action_type(self, base_url: str) -> ActionType:
            return chirp(base_url, token="t0p")

        def check_request(self, request: Request, action: Action) -> None:
            assert request.json() == {"text": "Hello"}

Each case ends in an outcome. `differs` declares where yours is another than the expected one. What would break a
promise cannot be declared: nothing is `NotSent` once it may have been taken, nor `Published` without an answer.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import httpx2
import pytest

from postdate.domain.outcome import NotSent, Published
from postdate.providers.http import http_client
from postdate.settings import Settings
from postdate.testing import http_situations, smtp_situations
from postdate.testing.http_server import Answer, Request, ScriptedHttp, Then, answer
from postdate.testing.http_situations import RETRY_AFTER_DATE, RETRY_AFTER_SECONDS, WAIT, HttpSituation
from postdate.testing.loopback import FLOOD_BYTES, HOST
from postdate.testing.rules import OutcomeType, check_differences, expected
from postdate.testing.runs import outcome_of, submitted_action
from postdate.testing.smtp_server import Ending, Letter, ScriptedSmtp
from postdate.testing.smtp_situations import SmtpSituation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import AbstractAsyncContextManager

    from pydantic import BaseModel

    from postdate.domain.action import Action
    from postdate.domain.outcome import Outcome
    from postdate.registry import ActionType

__all__ = [
    "RETRY_AFTER_DATE",
    "RETRY_AFTER_SECONDS",
    "Answer",
    "Ending",
    "HttpProviderConformance",
    "HttpSituation",
    "Letter",
    "Request",
    "ScriptedHttp",
    "ScriptedSmtp",
    "SmtpProviderConformance",
    "SmtpSituation",
    "Then",
    "answer",
]


SHORT_PATIENCE = 0.5
"""Seconds after which a case gives up where the server is silent."""

Payload: TypeAlias = "BaseModel | Mapping[str, Any]"


class _Conformance(ABC):  # noqa: B024 - its subclasses say what is abstract
    """What both kinds of provider have in common."""

    payload: ClassVar[Payload] = {}
    """What is scheduled in every case."""
    target: ClassVar[str | None] = None
    """`ctx.target`."""
    provider_id: ClassVar[str | None] = None
    """The id that the provider gives what it took."""
    patience: float = 10
    """Seconds that `ctx.http` waits in this case. Give a client of your own no more: where the server is silent, it is
    short."""

    @asynccontextmanager
    async def _running(self, action_type: ActionType, payload: Payload) -> AsyncIterator[_Runs]:
        async with http_client(Settings(egress_allow=HOST)) as http:
            http.timeout = httpx2.Timeout(self.patience)
            try:
                yield _Runs(action_type, payload, self.target, http)
            finally:
                if action_type.close is not None:
                    await action_type.close()

    def _check(self, outcome: Outcome, wanted: OutcomeType) -> None:
        said = getattr(outcome, "error", "")
        assert isinstance(outcome, wanted), f"expected {wanted.__name__}, but it was {outcome!r} {said}"

    def _check_published(self, outcome: Outcome) -> None:
        self._check(outcome, Published)
        assert outcome == Published(provider_id=self.provider_id)


class _Runs:
    """Runs one action type again and again, as one engine does."""

    def __init__(self, action_type: ActionType, payload: Payload, target: str | None, http: httpx2.AsyncClient) -> None:
        self._type = action_type
        self._payload = payload
        self._target = target
        self._http = http

    def action(self, attempt: int = 1) -> Action:
        return submitted_action(self._type, self._payload, target=self._target, attempt=attempt)

    async def __call__(self, attempt: int = 1) -> Outcome:
        return await outcome_of(self._type, self.action(attempt), http=self._http)


class HttpProviderConformance(_Conformance):
    """What a provider behind an HTTP API has to tell apart."""

    accepted: ClassVar[Answer] = answer("200 OK")
    """How the server says yes."""
    answers: ClassVar[Mapping[HttpSituation, Answer]] = {}
    """The server's own wording in a situation, such as `answer("422 No", body={"code": 7})` for a refusal."""
    differs: ClassVar[Mapping[HttpSituation, OutcomeType]] = {}
    """Where the outcome is another than the expected one, as in `{HttpSituation.UNAVAILABLE: Unconfirmed}`."""

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

    def _bound(self, base_url: str) -> AbstractAsyncContextManager[_Runs]:
        return self._running(self.action_type(base_url), self.payload_for(base_url))

    async def _outcome_when(self, situation: HttpSituation) -> None:
        wanted = expected(situation, http_situations.RULES, self.differs)
        scripted = self.answers.get(situation, http_situations.ANSWERS.get(situation))
        if situation in {HttpSituation.SILENT, HttpSituation.NEVER_CONNECTED}:
            self.patience = SHORT_PATIENCE
        if scripted is None:
            with http_situations.without_server(situation) as base_url:
                async with self._bound(base_url) as run:
                    self._check(await run(), wanted)
            return
        async with ScriptedHttp(answer=scripted) as server:
            async with self._bound(server.base_url) as run:
                outcome = await run()
            self._check(outcome, wanted)
            assert len(server.requests) == 1, "nothing is sent twice, and no redirect is followed"
            if situation in {HttpSituation.BUSY_FOR_SECONDS, HttpSituation.BUSY_UNTIL} and isinstance(outcome, NotSent):
                assert outcome.retry_after == WAIT, "the wait that the server asked for is kept"
            assert server.flooded < FLOOD_BYTES, "an answer without an end is not read to the end"

    async def _what_is_sent(self) -> None:
        async with ScriptedHttp(answer=self.accepted) as server:
            async with self._bound(server.base_url) as run:
                self._check_published(await run())
            (request,) = server.requests
            self.check_request(request, run.action())

    async def _every_attempt_carries_the_key(self) -> None:
        async with ScriptedHttp(answer=self.accepted) as server:
            action_type = self.action_type(server.base_url)
            if not action_type.policy.idempotent:
                pytest.skip("the action type is not idempotent")
            async with self._running(action_type, self.payload_for(server.base_url)) as run:
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
            self._check_published(await run())

    async def _closed_connections_are_replaced(self) -> None:
        async with ScriptedHttp(answer=Answer(sent=self.accepted.sent, then=Then.CLOSE)) as server:
            async with self._bound(server.base_url) as run:
                for _ in range(2):
                    self._check_published(await run())
                    await server.ended()
            assert len(server.requests) == 2  # noqa: PLR2004 - one for each run


class SmtpProviderConformance(_Conformance):
    """What a provider behind a mail server has to tell apart."""

    differs: ClassVar[Mapping[SmtpSituation, OutcomeType]] = {}
    """Where the outcome is another than the expected one."""

    def __init_subclass__(cls) -> None:
        """Refuse declarations that would break a promise."""
        check_differences(smtp_situations.RULES, cls.differs)

    @abstractmethod
    def action_type(self, host: str, port: int) -> ActionType:
        """Return the action type, bound to a mail server without TLS, that waits no longer than `patience`."""

    @abstractmethod
    def check_letter(self, letter: Letter, action: Action) -> None:
        """Assert that the message and its envelope are what the server has to get for this action."""

    @pytest.mark.parametrize("situation", list(SmtpSituation), ids=str)
    def test_the_outcome_when(self, situation: SmtpSituation) -> None:
        """Each situation ends in the outcome that says what is known."""
        asyncio.run(self._outcome_when(situation))

    def test_what_is_sent_and_what_is_kept_of_the_answer(self) -> None:
        """One message goes out, and the provider's id is kept (P28)."""
        asyncio.run(self._what_is_sent())

    def test_a_broken_connection_does_not_keep_the_next_action_back(self) -> None:
        """Whatever a failure leaves behind, the next run starts clean."""
        asyncio.run(self._the_next_goes_out())

    def test_a_connection_that_the_server_closed_meanwhile_is_replaced(self) -> None:
        """Servers close what is idle."""
        asyncio.run(self._closed_connections_are_replaced())

    async def _outcome_when(self, situation: SmtpSituation) -> None:
        wanted = expected(situation, smtp_situations.RULES, self.differs)
        if situation in smtp_situations.SILENT:
            self.patience = SHORT_PATIENCE
        script = smtp_situations.SCRIPTS.get(situation)
        if script is None:
            with smtp_situations.without_server(situation) as (host, port):
                async with self._running(self.action_type(host, port), self.payload) as run:
                    self._check(await run(), wanted)
            return
        async with ScriptedSmtp(script=dict(script)) as server:
            async with self._running(self.action_type(HOST, server.port), self.payload) as run:
                self._check(await run(), wanted)
            assert server.seen.count("DATA") <= 1, "nothing is sent twice"
            assert not server.letters
            assert server.flooded < FLOOD_BYTES, "a reply without an end is not read to the end"

    async def _what_is_sent(self) -> None:
        async with ScriptedSmtp() as server:
            async with self._running(self.action_type(HOST, server.port), self.payload) as run:
                self._check_published(await run())
            (letter,) = server.letters
            self.check_letter(letter, run.action())

    async def _the_next_goes_out(self) -> None:
        async with (
            ScriptedSmtp(script={"message": [Ending.CUT, "250 OK"]}) as server,
            self._running(self.action_type(HOST, server.port), self.payload) as run,
        ):
            await run()
            self._check_published(await run())

    async def _closed_connections_are_replaced(self) -> None:
        async with ScriptedSmtp() as server:
            async with self._running(self.action_type(HOST, server.port), self.payload) as run:
                for _ in range(2):
                    self._check_published(await run())
                    await server.hang_up()
            assert len(server.letters) == 2  # noqa: PLR2004 - one for each run
