"""By which way does a reminder go, and what if that way is not set up?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import ANY
from urllib.parse import parse_qs

import pytest
from structlog.testing import capture_logs

from postdate.domain.outcome import NotSent, Published, Unconfirmed
from postdate.errors import InvalidPayload, NotConfigured
from postdate.providers.builtin import builtin_action_types
from postdate.settings import Settings
from postdate.testing.http_server import ScriptedHttp, answer
from tests.surfaces.providers.contexts import ACTION_ID, context
from tests.surfaces.providers.smtp_receiver import Mailroom

if TYPE_CHECKING:
    import httpx2

    from postdate.registry import ActionType

ACCOUNT = "AC" + "0123456789abcdef" * 2
TWILIO = {"twilio_account_sid": ACCOUNT, "twilio_auth_token": "t0p", "twilio_from": "Shop"}
POSTMARK = {"postmark_token": "t0p", "postmark_from": "hello@shop.test"}


def reminder(**settings: Any) -> ActionType:
    return {each.name: each for each in builtin_action_types(Settings(**settings))}["reminder"]


async def reminded(action_type: ActionType, http: httpx2.AsyncClient, **payload: Any) -> Any:
    stored = action_type.dump({"text": "Call Ana", **payload})
    return await action_type.handler(context(http, target="support"), action_type.load(stored))


async def test_it_is_a_structured_line_in_the_log_unless_it_says_otherwise(http: httpx2.AsyncClient) -> None:
    with capture_logs() as logs:
        assert await reminded(reminder(), http, thing_id="ticket-7") == Published()
    assert logs == [
        {
            "event": "reminder",
            "log_level": "info",
            "text": "Call Ana",
            "thing_id": "ticket-7",
            "target": "support",
            "action": str(ACTION_ID),
            "action_type": ANY,
        }
    ]


async def test_it_is_an_email_from_the_mail_server_that_is_set_up(http: httpx2.AsyncClient) -> None:
    async with Mailroom().open() as mailroom:
        by_mail = reminder(smtp_url=f"smtp://127.0.0.1:{mailroom.port}", smtp_from="hello@shop.test")
        text = "x" * 100 + "\nand more"
        outcome = await reminded(by_mail, http, via="email", to="Ana <ana@shop.test>", text=text)
        assert by_mail.close is not None
        await by_mail.close()
    assert outcome.provider_id == f"<{ACTION_ID}@shop.test>"
    assert mailroom.message()["To"] == "Ana <ana@shop.test>"
    assert mailroom.message()["Subject"] == "x" * 77 + "…"
    assert mailroom.message().get_content().splitlines() == ["x" * 100, "and more"]


async def test_an_email_without_a_first_line_has_a_subject_all_the_same(http: httpx2.AsyncClient) -> None:
    async with Mailroom().open() as mailroom:
        by_mail = reminder(smtp_url=f"smtp://127.0.0.1:{mailroom.port}", smtp_from="hello@shop.test")
        await reminded(by_mail, http, via="email", to="ana@shop.test", text=" \n ")
        assert by_mail.close is not None
        await by_mail.close()
    assert mailroom.message()["Subject"] == "Reminder"


async def test_it_is_an_sms_by_twilio(http: httpx2.AsyncClient) -> None:
    async with ScriptedHttp(answer=answer("201 Created", body={"sid": "SM1"})) as api:
        by_sms = reminder(**TWILIO, twilio_url=api.base_url)
        assert await reminded(by_sms, http, via="sms", to="+351 912345678") == Published(provider_id="SM1")
    assert parse_qs(api.requests[0].body.decode()) == {
        "To": ["+351912345678"],
        "Body": ["Call Ana"],
        "From": ["Shop"],
    }


@pytest.mark.parametrize(
    ("via", "to", "setting"),
    [
        ("email", "ana@shop.test", "POSTDATE_SMTP_URL"),
        ("sms", "+351912345678", "POSTDATE_TWILIO_ACCOUNT_SID"),
    ],
)
async def test_a_way_that_is_not_set_up_does_not_keep_the_engine_from_starting_but_sends_nothing(
    http: httpx2.AsyncClient, via: str, to: str, setting: str
) -> None:
    unready = reminder()
    assert unready.configured is not None
    unready.configured()
    with pytest.raises(NotSent, match=f"reminder needs {setting}"):
        await reminded(unready, http, via=via, to=to)


@pytest.mark.parametrize(
    ("settings", "setting"),
    [
        ({"smtp_url": "smtp://localhost"}, "POSTDATE_SMTP_FROM"),
        ({"smtp_url": "http://localhost", "smtp_from": "a@b.test"}, "POSTDATE_SMTP_URL"),
        ({"email_provider": "postmark"}, "POSTDATE_POSTMARK_TOKEN"),
        ({"smtp_url": "smtp://localhost", "smtp_from": "a@b.test", **POSTMARK}, "POSTDATE_EMAIL_PROVIDER"),
        ({"twilio_account_sid": ACCOUNT}, "POSTDATE_TWILIO_AUTH_TOKEN"),
        ({"webhook_secret": "hush"}, "POSTDATE_WEBHOOK_SECRET"),
    ],
)
def test_a_way_that_is_set_up_wrongly_is_told_at_start(settings: dict[str, str], setting: str) -> None:
    wrong = reminder(**settings)
    assert wrong.configured is not None
    with pytest.raises(NotConfigured) as missing:
        wrong.configured()
    assert missing.value.setting == setting


async def test_the_provider_of_its_way_is_asked_about_a_doubtful_one(http: httpx2.AsyncClient) -> None:
    found = {"Messages": [{"MessageID": "pm-1", "Metadata": {"action_id": str(ACTION_ID)}}]}
    async with ScriptedHttp(answer=answer("200 OK", body=found)) as api:
        action_type = reminder(**POSTMARK, **TWILIO, postmark_url=api.base_url, twilio_url=api.base_url)
        assert action_type.lookup is not None
        by_mail = action_type.load(action_type.dump({"text": "x", "via": "email", "to": "ana@shop.test"}))
        assert await action_type.lookup(context(http), by_mail) == Published(provider_id="pm-1")
        by_sms = action_type.load(action_type.dump({"text": "x", "via": "sms", "to": "+351912345678"}))
        with pytest.raises(Unconfirmed, match="Twilio shows no message"):
            await action_type.lookup(context(http), by_sms)
    for unasked in ({"text": "x"}, {"text": "x", "via": "webhook", "to": "https://shop.example/"}):
        with pytest.raises(Unconfirmed, match="nobody can be asked"):
            await action_type.lookup(context(http), action_type.load(action_type.dump(unasked)))


@pytest.mark.parametrize(
    ("payload", "field", "rule"),
    [
        ({"to": "ana@shop.test"}, "payload.to", "must be left out"),
        ({"via": "log", "to": "ana@shop.test"}, "payload.to", "must be left out"),
        ({"via": "email"}, "payload.to", "is needed via email"),
        ({"via": "sms", "to": None}, "payload.to", "is needed via sms"),
        ({"via": "email", "to": "+351912345678"}, "payload.to", "must be an e-mail address"),
        ({"via": "sms", "to": "ana@shop.test"}, "payload.to", "must be a phone number"),
        ({"via": "webhook", "to": "ana@shop.test"}, "payload.to", "must begin with https://"),
        ({"via": "webhook", "to": "http://shop.example/"}, "payload.to", "POSTDATE_WEBHOOK_ALLOW_HTTP"),
        ({"via": "webhook", "to": "https://10.0.0.1/"}, "payload.to", "POSTDATE_EGRESS_ALLOW"),
        ({"via": "pigeon", "to": "ana"}, "payload.via", "'log', 'email', 'sms' or 'webhook'"),
        ({"via": "email", "to": "a" * 3000}, "payload.to", "at most 2048"),
        (
            {"via": "sms", "to": "+351912345678", "text": "x" * 1601},
            "payload.text",
            "at most 1600 characters in an SMS",
        ),
        ({"text": ""}, "payload.text", "at least 1"),
        ({"subject": "x"}, "payload.subject", "not permitted"),
    ],
)
def test_text_way_and_address_are_checked_together_when_it_is_scheduled(
    payload: dict[str, Any], field: str, rule: str
) -> None:
    with pytest.raises(InvalidPayload) as refused:
        reminder().dump({"text": "Call Ana", **payload})
    assert refused.value.field == field
    assert rule in refused.value.rule


def test_plain_http_and_inner_addresses_go_by_their_settings() -> None:
    allowed = reminder(webhook_allow_http=True, egress_allow="10.0.0.1")
    assert allowed.dump({"text": "x", "via": "webhook", "to": "http://10.0.0.1/"})["to"] == "http://10.0.0.1/"
