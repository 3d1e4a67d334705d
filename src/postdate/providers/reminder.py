"""How is a person reminded: by a line in the log, an e-mail, an SMS or a webhook?

The payload says by which way and to whom, and the provider of that way says what came of it. A way that is not set up
sends nothing (`NotSent`). Whether it is ever used is not known before the first reminder that asks for it, so only
settings that are there and cannot be right are told at start.

A webhook gets this, and `target`:

```json
{"type": "reminder", "timestamp": "2027-03-14T09:00:00Z", "data": {"text": "Call Ana", "thing_id": "ticket-7"}}
```
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Self, TypeVar, assert_never

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationInfo, field_validator

from postdate.domain.outcome import NotSent, Published, Unconfirmed
from postdate.errors import InvalidPayload, NotConfigured
from postdate.providers.mail import SendEmail
from postdate.providers.mailbox import CONTROL, Mailbox
from postdate.providers.mailer import Mailer, mail_is_set_up, mailer
from postdate.providers.phone import phone_number
from postdate.providers.postmark import Postmark
from postdate.providers.smtp import Smtp
from postdate.providers.twilio import MAX_TEXT as MAX_SMS
from postdate.providers.twilio import SendSms, Twilio, sms_is_set_up
from postdate.providers.web_url import MAX_URL, https_url, web_url
from postdate.providers.webhook import CallWebhook, Webhook, envelope

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import JsonValue

    from postdate.context import Context
    from postdate.providers.smtp_connections import Connections
    from postdate.settings import Settings

NEEDED_BY = "reminder"
MAX_SUBJECT = 78

Provider = TypeVar("Provider")


class Via(StrEnum):
    """By which way a reminder goes."""

    LOG = "log"
    EMAIL = "email"
    SMS = "sms"
    WEBHOOK = "webhook"


class Reminder(BaseModel):
    """The payload of `reminder`: a text to come back to, and how it is brought to mind."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    thing_id: str | None = Field(default=None, min_length=1, max_length=255)
    via: Via = Via.LOG
    to: Annotated[str | None, Field(max_length=MAX_URL, validate_default=True)] = None
    """An e-mail address, a phone number or a URL, as `via` says; nothing for the log."""
    text: Annotated[str, StringConstraints(min_length=1, max_length=10_000)]
    """Its first line is the subject of an e-mail."""

    @field_validator("to")
    @classmethod
    def _fits_via(cls, to: str | None, info: ValidationInfo) -> str | None:
        via = info.data.get("via", Via.LOG)
        if (to is None) is not (via is Via.LOG):
            raise ValueError("must be left out: a line in the log is to nobody" if to else f"is needed via {via}")
        return None if to is None else cls._address(via, to)

    @field_validator("text")
    @classmethod
    def _short_enough(cls, text: str, info: ValidationInfo) -> str:
        if info.data.get("via") is Via.SMS and len(text) > MAX_SMS:
            raise ValueError(f"must have at most {MAX_SMS} characters in an SMS")
        return text

    @classmethod
    def _address(cls, via: Via, to: str) -> str:
        match via:
            case Via.EMAIL:
                return str(Mailbox.parse(to))
            case Via.SMS:
                return phone_number(to)
            case Via.WEBHOOK | Via.LOG:
                return web_url(to)

    @property
    def address(self) -> str:
        """Whom it goes to; empty for the log."""
        return self.to or ""


class SecureReminder(Reminder):
    """The same where plain http is not allowed, which is the default."""

    @classmethod
    def _address(cls, via: Via, to: str) -> str:
        address = super()._address(via, to)
        return https_url(address) if via is Via.WEBHOOK else address


@dataclass(frozen=True, kw_only=True)
class Reminders:
    """The provider of `reminder`: the providers of the ways, or why there is none."""

    mailer: Mailer | NotConfigured
    sms: Twilio | NotConfigured
    webhook: Webhook | NotConfigured
    wrong: tuple[NotConfigured, ...] = ()
    """What is set up, but not rightly."""

    @classmethod
    def of(cls, settings: Settings, *, connections: Connections | None = None) -> Self:
        """Find the providers that there are, and which settings are wrong."""
        by_mail = _found(lambda: mailer(settings, needed_by=NEEDED_BY, connections=connections))
        by_sms = _found(lambda: Twilio.of(settings, needed_by=NEEDED_BY))
        by_webhook = _found(lambda: Webhook.of(settings))
        tried = ((by_mail, mail_is_set_up(settings)), (by_sms, sms_is_set_up(settings)), (by_webhook, True))
        wrong = tuple(each for each, set_up in tried if set_up and isinstance(each, NotConfigured))
        return cls(mailer=by_mail, sms=by_sms, webhook=by_webhook, wrong=wrong)

    def check(self) -> None:
        """Raise `NotConfigured` for a setting that is there and wrong."""
        for each in self.wrong:
            raise each

    def admit(self, payload: Reminder, target: str | None) -> None:
        """Refuse an address that is not public, before it is scheduled. Raises `InvalidPayload`."""
        if payload.via is Via.WEBHOOK and isinstance(self.webhook, Webhook):
            try:
                self.webhook.admit(CallWebhook(url=payload.address), target)
            except InvalidPayload as error:
                raise InvalidPayload(field="payload.to", rule=error.rule, value=payload.to) from None

    async def remind(self, ctx: Context, payload: Reminder) -> Published:
        """Remind by the way that the payload names; the provider's id is that way's."""
        match payload.via:
            case Via.LOG:
                return _log(ctx, payload)
            case Via.EMAIL:
                return await _ready(self.mailer).send(ctx, _email(payload))
            case Via.SMS:
                return await _ready(self.sms).send(ctx, _sms(payload))
            case Via.WEBHOOK:
                return await _ready(self.webhook).call(ctx, _webhook(ctx, payload))
            case _:
                assert_never(payload.via)

    async def close(self) -> None:
        """Let go of the connections that are kept in this event loop."""
        if isinstance(self.mailer, Smtp):
            await self.mailer.close()

    async def lookup(self, ctx: Context, payload: Reminder) -> Published:
        """Ask the provider of the way, where it can be asked. Raises `Unconfirmed` where it cannot."""
        if payload.via is Via.EMAIL and isinstance(self.mailer, Postmark):
            return await self.mailer.lookup(ctx, _email(payload))
        if payload.via is Via.SMS and isinstance(self.sms, Twilio):
            return await self.sms.lookup(ctx, _sms(payload))
        raise Unconfirmed(f"nobody can be asked about a reminder via {payload.via}")


def _found(build: Callable[[], Provider]) -> Provider | NotConfigured:
    try:
        return build()
    except NotConfigured as missing:
        return missing


def _ready(provider: Provider | NotConfigured) -> Provider:
    if isinstance(provider, NotConfigured):
        raise NotSent(provider)
    return provider


def _log(ctx: Context, payload: Reminder) -> Published:
    """Write one structured line; it has no id of its own."""
    ctx.log.info("reminder", text=payload.text, thing_id=payload.thing_id, target=ctx.target)
    return Published()


def _email(payload: Reminder) -> SendEmail:
    first, *_ = [*payload.text.strip().splitlines(), "Reminder"]
    subject = CONTROL.sub(" ", first)
    if len(subject) > MAX_SUBJECT:
        subject = f"{subject[: MAX_SUBJECT - 1]}…"
    return SendEmail(to=[payload.address], subject=subject, text=payload.text)


def _sms(payload: Reminder) -> SendSms:
    return SendSms(to=payload.address, text=payload.text)


def _webhook(ctx: Context, payload: Reminder) -> CallWebhook:
    data: dict[str, JsonValue] = {"text": payload.text, "thing_id": payload.thing_id, "target": ctx.target}
    return CallWebhook(url=payload.address, body=envelope(ctx, "reminder", data))
