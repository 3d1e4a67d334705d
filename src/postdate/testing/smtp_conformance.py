"""What does a provider behind a mail server have to tell apart?"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

import pytest

from postdate.testing import smtp_situations
from postdate.testing.loopback import FLOOD_BYTES, HOST
from postdate.testing.provider_conformance import ProviderConformance
from postdate.testing.rules import OutcomeType, check_differences, expected
from postdate.testing.smtp_server import Ending, Letter, ScriptedSmtp
from postdate.testing.smtp_situations import SmtpSituation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from postdate.domain.action import Action
    from postdate.registry import ActionType


class SmtpProviderConformance(ProviderConformance):
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
        self.patience = smtp_situations.patience(situation)
        async with smtp_situations.staged(situation) as stage:
            async with self.running(self.action_type(stage.host, stage.port), self.payload) as run:
                outcome = await run()
            self.check(outcome, expected(situation, smtp_situations.RULES, self.differs))
            assert stage.seen.count("DATA") <= 1, "nothing is sent twice"
            assert not stage.letters
            assert stage.flooded < FLOOD_BYTES, "a reply without an end is not read to the end"

    async def _what_is_sent(self) -> None:
        async with ScriptedSmtp() as server:
            async with self.running(self.action_type(HOST, server.port), self.payload) as run:
                self.check_published(await run())
            (letter,) = server.letters
            self.check_letter(letter, run.action())

    async def _the_next_goes_out(self) -> None:
        async with (
            ScriptedSmtp(script={"message": [Ending.CUT, "250 OK"]}) as server,
            self.running(self.action_type(HOST, server.port), self.payload) as run,
        ):
            await run()
            self.check_published(await run())

    async def _closed_connections_are_replaced(self) -> None:
        async with ScriptedSmtp() as server:
            async with self.running(self.action_type(HOST, server.port), self.payload) as run:
                for _ in range(2):
                    self.check_published(await run())
                    await server.hang_up()
            assert len(server.letters) == 2  # noqa: PLR2004 - one for each run
