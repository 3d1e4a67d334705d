"""Which action types come with postdate?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NoReturn

from pydantic import TypeAdapter

from postdate.domain.outcome import NotSent
from postdate.domain.settle import Policy
from postdate.errors import NotConfigured
from postdate.providers.log import Log, Reminder
from postdate.providers.mail import SendEmail
from postdate.providers.publish import Publisher, PublishPost
from postdate.providers.smtp import Smtp
from postdate.providers.webhook import CallSecureWebhook, CallWebhook, Webhook
from postdate.registry import ActionType

if TYPE_CHECKING:
    from collections.abc import Callable

    from postdate.registry import Admit, Context, Handler
    from postdate.settings import Settings


def builtin_action_types(settings: Settings) -> list[ActionType]:
    """Return `send_email`, `call_webhook`, `publish_post` and `reminder` (P3), each bound to its provider (P4).

    A setting that is missing or wrong is reported by the type's `configured`, when the engine starts: a process
    that only schedules needs none of them.
    """
    send, smtp_ready = _handler(lambda: Smtp.of(settings).send)
    call, webhook_ready = _handler(lambda: Webhook.of(settings).call)
    publish, publish_ready = _handler(lambda: Publisher.of(settings).publish)
    call_payload = CallWebhook if settings.webhook_allow_http else CallSecureWebhook
    return [
        ActionType(
            name="send_email",
            handler=send,
            payload=TypeAdapter(SendEmail),
            timeout=timedelta(minutes=3),  # longer than the provider's own time-outs, which say what happened
            configured=smtp_ready,
        ),
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
        ActionType(name="reminder", handler=Log().remind, payload=TypeAdapter(Reminder)),
    ]


@dataclass(frozen=True, kw_only=True)
class _Unready:
    """Stands in for a provider that lacks a setting."""

    missing: NotConfigured

    def check(self) -> NoReturn:
        raise self.missing

    async def run(self, ctx: Context, payload: object) -> NoReturn:  # noqa: ARG002 - every handler takes both
        raise NotSent(self.missing)


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
