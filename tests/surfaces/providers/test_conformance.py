"""Do our own providers say what really happened?"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import parse_qs

from pydantic import SecretStr, TypeAdapter

from postdate.domain.outcome import Published, Unconfirmed
from postdate.domain.settle import Policy
from postdate.providers.builtin import builtin_action_types
from postdate.providers.mail import SendEmail
from postdate.providers.mailbox import Mailbox
from postdate.providers.reminder import Reminder, Reminders
from postdate.providers.smtp import Smtp
from postdate.providers.smtp_url import SmtpServer
from postdate.providers.twilio import SendSms
from postdate.providers.webhook import CallWebhook, Webhook
from postdate.registry import ActionType
from postdate.settings import Settings
from postdate.testing.providers import (
    RETRY_AFTER_SECONDS,
    HttpProviderConformance,
    HttpSituation,
    SmtpProviderConformance,
    answer,
)
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


SENT_BY_POSTMARK = {"ErrorCode": 0, "Message": "OK", "MessageID": "pm-1", "To": "ana@shop.test"}


class TestPostmark(HttpProviderConformance):
    payload = SendEmail(
        to=["Ana Pérez <ana@shop.test>", "ben@shop.test"],
        bcc=["cleo@shop.test"],
        reply_to=["help@shop.test"],
        subject="Grüße",
        text="Hi",
        html="<p>Hi</p>",
        headers={"List-Unsubscribe": "<https://shop.test/u>"},
    )
    accepted = answer("200 OK", body=SENT_BY_POSTMARK)
    provider_id = "pm-1"
    found = answer(
        "200 OK",
        body={
            "TotalCount": 2,
            "Messages": [
                {"MessageID": "pm-0", "Metadata": {"action_id": "another"}},
                {"MessageID": "pm-1", "Metadata": {"action_id": str(ACTION_ID)}, "Status": "Sent"},
            ],
        },
    )
    answers: ClassVar = {
        HttpSituation.REFUSAL: answer(
            "422 Unprocessable Entity", body={"ErrorCode": 300, "Message": "Invalid 'To' address: 'nobody'."}
        ),
        HttpSituation.BUSY_FOR_SECONDS: answer(
            "429 Too Many Requests", RETRY_AFTER_SECONDS, body={"ErrorCode": 429, "Message": "Rate limit exceeded."}
        ),
        HttpSituation.UNAVAILABLE: answer("503 Service Unavailable", body={"ErrorCode": 100, "Message": "Maintenance"}),
    }

    def action_type(self, base_url: str) -> ActionType:
        settings = Settings(
            postmark_token=SecretStr("t0p"), postmark_from="The Shop <hello@shop.test>", postmark_url=base_url
        )
        return {each.name: each for each in builtin_action_types(settings)}["send_email"]

    def check_request(self, request: Request, action: Action) -> None:
        assert (request.method, request.target) == ("POST", "/email")
        assert request.headers["x-postmark-server-token"] == "t0p"
        assert request.headers["content-type"] == "application/json"
        assert request.json() == {
            "From": '"The Shop" <hello@shop.test>',
            "To": '"Ana Pérez" <ana@shop.test>, ben@shop.test',
            "Bcc": "cleo@shop.test",
            "ReplyTo": "help@shop.test",
            "Subject": "Grüße",
            "TextBody": "Hi",
            "HtmlBody": "<p>Hi</p>",
            "Headers": [{"Name": "List-Unsubscribe", "Value": "<https://shop.test/u>"}],
            "MessageStream": "outbound",
            "Metadata": {"action_id": str(action.id)},
        }


ACCOUNT = "AC" + "0123456789abcdef" * 2


class TestTwilio(HttpProviderConformance):
    """Nothing that Twilio shows tells one SMS from another with the same text: `found` stays out."""

    payload = SendSms(to="+351 912-345-678", text="Olá, Ana & Ben")
    accepted = answer("201 Created", body={"sid": "SM1", "status": "queued", "error_code": None})
    provider_id = "SM1"
    answers: ClassVar = {
        HttpSituation.REFUSAL: answer(
            "400 Bad Request", body={"code": 21211, "message": "Invalid 'To' Phone Number", "status": 400}
        ),
        HttpSituation.BUSY_FOR_SECONDS: answer(
            "429 Too Many Requests", RETRY_AFTER_SECONDS, body={"code": 20429, "message": "Too Many Requests"}
        ),
    }
    differs: ClassVar = {HttpSituation.UNAVAILABLE: Unconfirmed}  # Twilio does not say that a 503 took nothing

    def action_type(self, base_url: str) -> ActionType:
        settings = Settings(
            twilio_account_sid=ACCOUNT,
            twilio_auth_token=SecretStr("t0p"),
            twilio_from="+15005550006",
            twilio_url=base_url,
        )
        return {each.name: each for each in builtin_action_types(settings)}["send_sms"]

    def check_request(self, request: Request, action: Action) -> None:
        assert (request.method, request.target) == ("POST", f"/2010-04-01/Accounts/{ACCOUNT}/Messages.json")
        assert request.headers["authorization"] == "Basic " + b64encode(f"{ACCOUNT}:t0p".encode()).decode()
        assert request.headers["content-type"] == "application/x-www-form-urlencoded"
        assert parse_qs(request.body.decode(), strict_parsing=True) == {
            "To": ["+351912345678"],
            "Body": ["Olá, Ana & Ben"],
            "From": ["+15005550006"],
        }


class TestReminderByWebhook(HttpProviderConformance):
    """A reminder is what the provider of its way makes of it."""

    provider_id = None
    differs: ClassVar = TestWebhook.differs

    def action_type(self, base_url: str) -> ActionType:
        settings = Settings(webhook_allow_http=True, egress_allow="127.0.0.1")
        return {each.name: each for each in builtin_action_types(settings)}["reminder"]

    def payload_for(self, base_url: str) -> dict[str, str]:
        return {"text": "Call Ana", "via": "webhook", "to": f"{base_url}/hook", "thing_id": "ticket-7"}

    def check_request(self, request: Request, action: Action) -> None:
        assert request.headers["webhook-id"] == str(action.id)
        assert request.json() == {
            "type": "reminder",
            "timestamp": "2027-03-14T09:00:00Z",
            "data": {"text": "Call Ana", "thing_id": "ticket-7", "target": None},
        }


class TestReminderByEmail(SmtpProviderConformance):
    payload: ClassVar = {"text": "Call Ana\tnow\nShe waits.", "via": "email", "to": "Me <me@shop.test>"}
    provider_id = f"<{ACTION_ID}@shop.test>"

    def action_type(self, host: str, port: int) -> ActionType:
        settings = Settings(smtp_url=SecretStr(f"smtp://{host}:{port}"), smtp_from="hello@shop.test")
        reminders = Reminders.of(settings)
        assert isinstance(reminders.mailer, Smtp)
        impatient = replace(reminders.mailer, envelope_seconds=self.patience, answer_seconds=self.patience)
        patched = replace(reminders, mailer=impatient)
        return ActionType(name="reminder", handler=patched.remind, payload=TypeAdapter(Reminder), close=patched.close)

    def check_letter(self, letter: Letter, action: Action) -> None:
        assert letter.recipients == ("me@shop.test",)
        assert letter.message()["Subject"] == "Call Ana now"
        assert letter.message().get_content().splitlines() == ["Call Ana\tnow", "She waits."]
