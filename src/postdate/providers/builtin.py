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
from postdate.providers.mailer import mail_is_set_up, mailer
from postdate.providers.postmark import Postmark
from postdate.providers.publish import Publisher, PublishPost
from postdate.providers.reminder import Reminder, Reminders, SecureReminder
from postdate.providers.smtp import Smtp
from postdate.providers.smtp_connections import Connections
from postdate.providers.twilio import SendSms, Twilio, sms_is_set_up
from postdate.providers.webhook import CallSecureWebhook, CallWebhook, Webhook
from postdate.registry import ActionType

if TYPE_CHECKING:
    from collections.abc import Callable

    from postdate.context import Context
    from postdate.settings import Settings

Provider = TypeVar("Provider")


def builtin_action_types(settings: Settings) -> list[ActionType]:
    """Return `send_email`, `send_sms`, `call_webhook`, `publish_post` and `reminder` (P3), each with its provider (P4).

    A setting that is missing or wrong is reported by the type's `configured`, when the engine starts: a process
    that only schedules needs none of them. Of what nothing is set up, an engine does without (`required`).
    """
    connections = Connections()  # to the one mail server that there is
    return [
        _send_email(settings, connections),
        _send_sms(settings),
        _call_webhook(settings),
        _publish_post(settings),
        _reminder(settings, connections),
    ]


def _send_email(settings: Settings, connections: Connections) -> ActionType:
    found = _found(lambda: mailer(settings, needed_by="send_email", connections=connections))
    return ActionType(
        name="send_email",
        handler=found.run if isinstance(found, _Unready) else found.send,
        payload=TypeAdapter(SendEmail),
        admit=found.admit if isinstance(found, Postmark) else None,
        timeout=timedelta(minutes=3),  # longer than the provider's own time-outs, which say what happened
        configured=found.check if isinstance(found, _Unready) else None,
        required=mail_is_set_up(settings),
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
        required=sms_is_set_up(settings),
        lookup=None if isinstance(found, _Unready) else found.lookup,
    )


def _call_webhook(settings: Settings) -> ActionType:
    found = _found(lambda: Webhook.of(settings))
    return ActionType(
        name="call_webhook",
        handler=found.run if isinstance(found, _Unready) else found.call,
        payload=TypeAdapter(CallWebhook if settings.webhook_allow_http else CallSecureWebhook),
        policy=Policy(idempotent=True),
        admit=None if isinstance(found, _Unready) else found.admit,
        timeout=timedelta(minutes=2),
        configured=found.check if isinstance(found, _Unready) else None,
        ignores_quiet_hours=True,  # a machine answers
    )


def _publish_post(settings: Settings) -> ActionType:
    found = _found(lambda: Publisher.of(settings))
    return ActionType(
        name="publish_post",
        handler=found.run if isinstance(found, _Unready) else found.publish,
        payload=TypeAdapter(PublishPost),
        policy=Policy(idempotent=True),
        admit=None if isinstance(found, _Unready) else found.admit,
        timeout=timedelta(minutes=2),
        configured=found.check if isinstance(found, _Unready) else None,
        required=bool(settings.networks),
    )


def _reminder(settings: Settings, connections: Connections) -> ActionType:
    reminders = Reminders.of(settings, connections=connections)
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
