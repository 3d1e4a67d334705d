"""Which action types come with postdate?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NoReturn, TypeVar

from pydantic import TypeAdapter

from postdate.domain.outcome import NotSent
from postdate.domain.settle import Policy
from postdate.errors import NotConfigured
from postdate.providers.mail import SendEmail
from postdate.providers.mailer import mailer
from postdate.providers.postmark import Postmark
from postdate.providers.publish import Publisher, PublishPost
from postdate.providers.reminder import Reminder, Reminders, SecureReminder
from postdate.providers.smtp import Smtp
from postdate.providers.twilio import SendSms, Twilio
from postdate.providers.webhook import CallSecureWebhook, CallWebhook, Webhook
from postdate.registry import ActionType

if TYPE_CHECKING:
    from collections.abc import Callable

    from postdate.registry import Admit, Context, Handler
    from postdate.settings import Settings

Provider = TypeVar("Provider")


def builtin_action_types(settings: Settings) -> list[ActionType]:
    """Return `send_email`, `send_sms`, `call_webhook`, `publish_post` and `reminder` (P3), each with its provider (P4).

    A setting that is missing or wrong is reported by the type's `configured`, when the engine starts: a process
    that only schedules needs none of them.
    """
    call, webhook_ready = _handler(lambda: Webhook.of(settings).call)
    publish, publish_ready = _handler(lambda: Publisher.of(settings).publish)
    call_payload = CallWebhook if settings.webhook_allow_http else CallSecureWebhook
    return [
        _send_email(settings),
        _send_sms(settings),
        ActionType(
            name="call_webhook",
            handler=call,
            payload=TypeAdapter(call_payload),
            policy=Policy(idempotent=True),
            admit=_admit(lambda: Webhook.of(settings).admit),
            timeout=timedelta(minutes=2),
            configured=webhook_ready,
        ),
        ActionType(
            name="publish_post",
            handler=publish,
            payload=TypeAdapter(PublishPost),
            policy=Policy(idempotent=True),
            admit=_admit(lambda: Publisher.of(settings).admit),
            timeout=timedelta(minutes=2),
            configured=publish_ready,
        ),
        _reminder(settings),
    ]


def _send_email(settings: Settings) -> ActionType:
    found = _found(lambda: mailer(settings, needed_by="send_email"))
    return ActionType(
        name="send_email",
        handler=found.run if isinstance(found, _Unready) else found.send,
        payload=TypeAdapter(SendEmail),
        admit=found.admit if isinstance(found, Postmark) else None,
        timeout=timedelta(minutes=3),  # longer than the provider's own time-outs, which say what happened
        configured=found.check if isinstance(found, _Unready) else None,
        lookup=found.lookup if isinstance(found, Postmark) else None,
        close=found.close if isinstance(found, Smtp) else None,
    )


def _send_sms(settings: Settings) -> ActionType:
    found = _found(lambda: Twilio.of(settings, needed_by="send_sms"))
    return ActionType(
        name="send_sms",
        handler=found.run if isinstance(found, _Unready) else found.send,
        payload=TypeAdapter(SendSms),
        timeout=timedelta(minutes=2),
        configured=found.check if isinstance(found, _Unready) else None,
        lookup=None if isinstance(found, _Unready) else found.lookup,
    )


def _reminder(settings: Settings) -> ActionType:
    reminders = Reminders.of(settings)
    return ActionType(
        name="reminder",
        handler=reminders.remind,
        payload=TypeAdapter(Reminder if settings.webhook_allow_http else SecureReminder),
        admit=reminders.admit,
        timeout=timedelta(minutes=3),
        configured=reminders.check,
        lookup=reminders.lookup,
        close=reminders.close,
    )


@dataclass(frozen=True, kw_only=True)
class _Unready:
    """Stands in for a provider that lacks a setting."""

    missing: NotConfigured

    def check(self) -> NoReturn:
        raise self.missing

    async def run(self, ctx: Context, payload: object) -> NoReturn:  # noqa: ARG002 - every handler takes both
        raise NotSent(self.missing)


def _found(build: Callable[[], Provider]) -> Provider | _Unready:
    """Return the provider, or what stands in for it."""
    try:
        return build()
    except NotConfigured as missing:
        return _Unready(missing=missing)


def _handler(build: Callable[[], Handler]) -> tuple[Handler, Callable[[], None] | None]:
    """Return the provider's handler and what reports, at start, that it has none."""
    try:
        return build(), None
    except NotConfigured as missing:
        unready = _Unready(missing=missing)
        return unready.run, unready.check


def _admit(build: Callable[[], Admit]) -> Admit | None:
    """Return what looks at new actions; None where the provider lacks a setting, which is told at start."""
    try:
        return build()
    except NotConfigured:
        return None
