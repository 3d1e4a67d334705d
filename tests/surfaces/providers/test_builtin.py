"""Which action types come with postdate, and what do they need?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from postdate.domain.outcome import NotSent
from postdate.errors import InvalidPayload, NotConfigured
from postdate.providers.builtin import builtin_action_types
from postdate.providers.mail import SendEmail
from postdate.providers.postmark import Postmark
from postdate.providers.reminder import Reminder, Reminders
from postdate.providers.smtp import Smtp
from postdate.providers.twilio import SendSms, Twilio
from postdate.providers.webhook import CallWebhook, Webhook
from postdate.registry import payload_adapter
from postdate.settings import Settings
from tests.surfaces.providers.contexts import context
from tests.surfaces.providers.smtp_receiver import Mailroom

if TYPE_CHECKING:
    import httpx2

    from postdate.registry import ActionType

SMTP = {"smtp_url": "smtp://localhost", "smtp_from": "a@b.test"}
POSTMARK = {"postmark_token": "t0p", "postmark_from": "a@b.test"}
GOOD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def builtin(**settings: Any) -> dict[str, ActionType]:
    return {each.name: each for each in builtin_action_types(Settings(**settings))}


def test_email_webhook_post_and_reminder_come_out_of_the_box() -> None:
    """P3."""
    types = builtin()
    assert list(types) == ["send_email", "send_sms", "call_webhook", "publish_post", "reminder"]
    assert all(each.is_async for each in types.values())
    assert [each.name for each in types.values() if each.policy.idempotent] == ["call_webhook", "publish_post"]


@pytest.mark.parametrize(
    ("settings", "setting"),
    [
        ({}, "POSTDATE_SMTP_URL"),
        ({"smtp_url": "smtp://localhost"}, "POSTDATE_SMTP_FROM"),
        ({"smtp_url": "http://u:s3cr3t@localhost", "smtp_from": "a@b.test"}, "POSTDATE_SMTP_URL"),
        ({"smtp_url": "smtp://localhost", "smtp_from": "nobody"}, "POSTDATE_SMTP_FROM"),
    ],
)
async def test_email_without_a_server_or_a_sender_is_told_at_start_and_sends_nothing(
    http: httpx2.AsyncClient, settings: dict[str, str], setting: str
) -> None:
    send_email = builtin(**settings)["send_email"]
    assert send_email.configured is not None
    with pytest.raises(NotConfigured, match=f"send_email needs {setting}: ") as missing:
        send_email.configured()
    assert missing.value.setting == setting
    assert "s3cr3t" not in str(missing.value)
    assert send_email.dump({"to": "a@b.test", "subject": "x", "text": "y"}), "scheduling needs no server"
    with pytest.raises(NotSent, match=setting):
        await send_email.handler(context(http), None)


async def test_email_is_sent_by_the_server_of_the_settings(http: httpx2.AsyncClient) -> None:
    """P4."""
    async with Mailroom().open() as mailroom:
        settings = {"smtp_url": f"smtp://127.0.0.1:{mailroom.port}", "smtp_from": "Shop <hello@shop.test>"}
        send_email = builtin(**settings)["send_email"]
        assert send_email.configured is None
        payload = send_email.load(send_email.dump({"to": "ana@shop.test", "subject": "x", "text": "y"}))
        await send_email.handler(context(http), payload)
        assert send_email.close is not None
        await send_email.close()
    assert mailroom.message()["From"] == "Shop <hello@shop.test>"


def test_a_garbled_webhook_secret_is_told_at_start() -> None:
    call_webhook = builtin(webhook_secret="whsec_short")["call_webhook"]
    assert call_webhook.configured is not None
    with pytest.raises(NotConfigured, match="POSTDATE_WEBHOOK_SECRET"):
        call_webhook.configured()
    assert builtin(webhook_secret=GOOD_SECRET)["call_webhook"].configured is None
    assert builtin()["call_webhook"].configured is None, "unsigned webhooks need nothing"


def test_plain_http_needs_the_setting_that_allows_it() -> None:
    payload = {"url": "http://shop.example:8000/"}
    assert builtin(webhook_allow_http=True)["call_webhook"].dump(payload)["url"] == payload["url"]
    with pytest.raises(InvalidPayload, match="POSTDATE_WEBHOOK_ALLOW_HTTP"):
        builtin()["call_webhook"].dump(payload)


@pytest.mark.parametrize(
    ("settings", "provider"),
    [
        ({**SMTP}, "Smtp"),
        ({**POSTMARK}, "Postmark"),
        ({**SMTP, **POSTMARK, "email_provider": "smtp"}, "Smtp"),
        ({**SMTP, **POSTMARK, "email_provider": "postmark"}, "Postmark"),
    ],
)
def test_email_goes_by_the_provider_that_is_named_or_else_the_only_one(settings: dict[str, str], provider: str) -> None:
    send_email = builtin(**settings)["send_email"]
    assert send_email.configured is None
    assert type(getattr(send_email.handler, "__self__")).__name__ == provider  # noqa: B009 - unknown to the type
    assert (send_email.lookup is not None) is (provider == "Postmark"), "only Postmark can be asked afterwards"
    assert (send_email.close is not None) is (provider == "Smtp"), "only SMTP keeps connections of its own"


@pytest.mark.parametrize(
    ("settings", "setting"),
    [
        ({**SMTP, **POSTMARK}, "POSTDATE_EMAIL_PROVIDER"),
        ({**SMTP, "email_provider": "postmark"}, "POSTDATE_POSTMARK_TOKEN"),
        ({**POSTMARK, "email_provider": "smtp"}, "POSTDATE_SMTP_URL"),
    ],
)
def test_an_email_provider_that_is_ambiguous_or_not_set_up_is_told_at_start(
    settings: dict[str, str], setting: str
) -> None:
    send_email = builtin(**settings)["send_email"]
    assert send_email.configured is not None
    with pytest.raises(NotConfigured, match=f"send_email needs {setting}: "):
        send_email.configured()


@pytest.mark.parametrize(
    ("handler", "model"),
    [
        (Smtp.send, SendEmail),
        (Postmark.send, SendEmail),
        (Twilio.send, SendSms),
        (Webhook.call, CallWebhook),
        (Reminders.remind, Reminder),
    ],
    ids=lambda each: each.__qualname__,
)
def test_a_provider_can_be_registered_under_a_name_of_ones_own(handler: Any, model: type) -> None:
    adapter = payload_adapter(handler.__get__(object()))
    assert adapter is not None
    assert adapter._type is model
