"""Do our own providers say what really happened?"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import TypeAdapter

from postdate.domain.outcome import Published
from postdate.domain.settle import Policy
from postdate.providers.mail import SendEmail
from postdate.providers.mailbox import Mailbox
from postdate.providers.smtp import Smtp
from postdate.providers.smtp_url import SmtpServer
from postdate.providers.webhook import CallWebhook, Webhook
from postdate.registry import ActionType
from postdate.testing.providers import HttpProviderConformance, HttpSituation, SmtpProviderConformance, answer
from postdate.testing.runs import ACTION_ID

if TYPE_CHECKING:
    from postdate.domain.action import Action
    from postdate.testing.providers import Letter, Request


class TestSmtp(SmtpProviderConformance):
    payload = SendEmail(to=["Ana <ana@shop.test>"], cc=["ben@shop.test"], subject="Hello", text="Hi\n.\n")
    provider_id = f"<{ACTION_ID}@shop.test>"

    def action_type(self, host: str, port: int) -> ActionType:
        provider = Smtp(
            server=SmtpServer.parse(f"smtp://{host}:{port}"),
            sender=Mailbox.parse("The Shop <hello@shop.test>"),
            envelope_seconds=self.patience,
            answer_seconds=self.patience,
        )
        return ActionType(
            name="send_email", handler=provider.send, payload=TypeAdapter(SendEmail), close=provider.close
        )

    def check_letter(self, letter: Letter, action: Action) -> None:
        assert letter.sender == "hello@shop.test"
        assert letter.recipients == ("ana@shop.test", "ben@shop.test")
        assert letter.message()["Message-ID"] == self.provider_id
        assert letter.message().get_content().splitlines() == ["Hi", "."]


class TestWebhook(HttpProviderConformance):
    """The status says it all; a receiver knows a call that it gets again by its `webhook-id`."""

    accepted = answer("204 No Content", "x-request-id: req-1")
    provider_id = "req-1"
    differs: ClassVar = {
        HttpSituation.HALF_BODY: Published,
        HttpSituation.ENDLESS: Published,
        HttpSituation.GARBAGE: Published,
    }

    def action_type(self, base_url: str) -> ActionType:
        return ActionType(
            name="call_webhook",
            handler=Webhook().call,
            payload=TypeAdapter(CallWebhook),
            policy=Policy(idempotent=True),
        )

    def payload_for(self, base_url: str) -> CallWebhook:
        return CallWebhook(url=f"{base_url}/hook", body={"n": 1})

    def check_request(self, request: Request, action: Action) -> None:
        assert (request.method, request.target) == ("POST", "/hook")
        assert request.headers["webhook-id"] == str(action.id)
        assert request.json() == {"n": 1}
