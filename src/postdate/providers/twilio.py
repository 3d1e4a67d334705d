"""How is an SMS handed to Twilio, and what does its answer mean?

| what happens | outcome |
|---|---|
| 2xx with a `sid` | `Published` |
| not connected; 429 and the codes that say "too much at once": it took nothing | `NotSent` |
| 401, 404: the account is at fault | `NotSent` |
| every other 3xx and 4xx: no such number (21211), opted out (21610), ... | `Rejected` |
| 5xx; silence or a cut connection once the request has begun; a 2xx that cannot be read | `Unconfirmed` |

Twilio knows no idempotency key, and nothing that a message carries to it can be asked for afterwards. So a doubtful SMS
is never repeated, and `lookup` cannot tell it from another with the same text to the same number: it stays doubtful,
and what Twilio shows is put before the person who decides.
Documentation: https://www.twilio.com/docs/messaging/api/message-resource.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Self

import httpx2
from pydantic import BaseModel, ConfigDict, Field, SecretStr, StringConstraints

from postdate.domain.outcome import NotSent, Published, Rejected, Unconfirmed
from postdate.errors import NotConfigured
from postdate.providers.api import Reply, api_url, ask, look, number
from postdate.providers.phone import PhoneNumber

if TYPE_CHECKING:
    from datetime import datetime

    from postdate.context import Context
    from postdate.settings import Settings

MAX_TEXT = 1600
"""Twilio takes no more characters in one message."""
SHOWN = 5
"""How many of the messages that Twilio shows are named."""

_BUSY = frozenset({408, 429})
_TOO_MUCH = frozenset({14107, 20429, 21611, 63038})
"""Codes that say so with another status: per number, at once, queued, in a day."""
_ACCOUNT = frozenset({401, 404})
_RULES = {
    "account_sid": (re.compile(r"AC[0-9a-fA-F]{32}"), "AC and 32 hexadecimal digits"),
    "auth_token": (re.compile(r"[!-~]{1,200}"), "1 to 200 printable ASCII characters"),
    "messaging_service_sid": (re.compile(r"MG[0-9a-fA-F]{32}"), "MG and 32 hexadecimal digits"),
    "from": (
        re.compile(r"\+[1-9][0-9]{6,14}|[0-9]{3,8}|(?=.*[A-Za-z])[A-Za-z0-9 &+_-]{1,11}"),
        "a number such as +15005550006, a short code, or a name of at most 11 letters and digits",
    ),
}
_CLOCKS_APART = timedelta(minutes=5)


class SendSms(BaseModel):
    """The payload of `send_sms`: one text to one phone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    thing_id: str | None = Field(default=None, min_length=1, max_length=255)
    to: PhoneNumber
    """With its country: `+351 912 345 678`."""
    text: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]


@dataclass(frozen=True, kw_only=True)
class Twilio:
    """The provider of `send_sms`."""

    account_sid: str
    auth_token: str = field(repr=False)
    sender: str | None
    """A number or a name; where there is a messaging service too, one of its own."""
    service_sid: str | None
    """The messaging service that chooses the sender."""
    url: str
    """Where the API is."""

    @classmethod
    def of(cls, settings: Settings, *, needed_by: str = "send_sms") -> Self:
        """Build it from POSTDATE_TWILIO_ACCOUNT_SID, _AUTH_TOKEN, _FROM, _MESSAGING_SERVICE_SID and _URL.

        Raises `NotConfigured` where one is missing or cannot be understood.
        """
        account_sid = _required(settings, "account_sid", needed_by=needed_by)
        auth_token = _required(settings, "auth_token", needed_by=needed_by)
        sender = _optional(settings, "from", needed_by=needed_by)
        service_sid = _optional(settings, "messaging_service_sid", needed_by=needed_by)
        if sender is None and service_sid is None:
            hint = "a number, such as +15005550006 (or set POSTDATE_TWILIO_MESSAGING_SERVICE_SID)"
            raise NotConfigured("POSTDATE_TWILIO_FROM", needed_by=needed_by, hint=hint)
        try:
            url = api_url(settings.twilio_url)
        except ValueError as error:
            raise NotConfigured("POSTDATE_TWILIO_URL", needed_by=needed_by, hint=str(error)) from None
        return cls(account_sid=account_sid, auth_token=auth_token, sender=sender, service_sid=service_sid, url=url)

    async def send(self, ctx: Context, payload: SendSms) -> Published:
        """Send one SMS; the provider's id is Twilio's sid."""
        fields = {"To": payload.to, "Body": payload.text, "From": self.sender, "MessagingServiceSid": self.service_sid}
        given = {name: value for name, value in fields.items() if value is not None}
        reply = await ask(ctx, "POST", self._messages(), data=given, auth=self._auth())
        told = reply.json()
        if not reply.is_success:
            raise _refusal(reply, told)
        sid = told.get("sid")
        if not isinstance(sid, str):
            raise Unconfirmed(f"unclear: {reply}")
        return Published(provider_id=sid)

    async def lookup(self, ctx: Context, payload: SendSms) -> NoReturn:
        """Look for messages that may be this one, and raise `Unconfirmed` that names them."""
        since = (ctx.action.submitted_at or ctx.action.publish_at) - _CLOCKS_APART
        query = {"To": payload.to, "PageSize": "50"}  # the latest; DateSent would hide those not sent yet
        told = await look(ctx, self._messages(), params=query, auth=self._auth())
        listed = told.get("messages")
        found = [each for each in listed if _may_be(each, payload, since)] if isinstance(listed, list) else []
        if not found:
            raise Unconfirmed("Twilio shows no message with this text to this number, or not yet")
        named = ", ".join(f"{each.get('sid')} ({each.get('status')})" for each in found[:SHOWN])
        raise Unconfirmed(f"Twilio shows {len(found)} with this text to this number, of which one may be it: {named}")

    def _messages(self) -> str:
        return f"{self.url}/2010-04-01/Accounts/{self.account_sid}/Messages.json"

    def _auth(self) -> httpx2.BasicAuth:
        return httpx2.BasicAuth(self.account_sid, self.auth_token)


def sms_is_set_up(settings: Settings) -> bool:
    """Whether anything is said of how an SMS is sent, be it right or wrong."""
    return any(getattr(settings, f"twilio_{name}") is not None for name in _RULES)


def _optional(settings: Settings, name: str, *, needed_by: str) -> str | None:
    """Return a setting of Twilio's. Raises `NotConfigured` where it breaks its rule."""
    value = getattr(settings, f"twilio_{name}")
    plain = value.get_secret_value() if isinstance(value, SecretStr) else value
    rule, told = _RULES[name]
    if plain is not None and not rule.fullmatch(plain):
        raise NotConfigured(f"POSTDATE_TWILIO_{name.upper()}", needed_by=needed_by, hint=f"must be {told}")
    return plain


def _required(settings: Settings, name: str, *, needed_by: str) -> str:
    value = _optional(settings, name, needed_by=needed_by)
    if value is None:
        raise NotConfigured(f"POSTDATE_TWILIO_{name.upper()}", needed_by=needed_by, hint=_RULES[name][1])
    return value


def _may_be(message: object, payload: SendSms, since: datetime) -> bool:
    """Whether a message that Twilio lists has this text and is not older; trial accounts put words before the text."""
    if not isinstance(message, dict) or message.get("direction") != "outbound-api":
        return False
    body, created = message.get("body"), message.get("date_created")
    if not isinstance(body, str) or not isinstance(created, str) or not body.endswith(payload.text):
        return False
    try:
        return parsedate_to_datetime(created[:64]) >= since
    except (TypeError, ValueError):
        return False


def _refusal(reply: Reply, told: dict[str, Any]) -> NotSent | Rejected | Unconfirmed:
    code = number(told.get("code"))
    text = f"{told['message']} (code {code})" if code and isinstance(told.get("message"), str) else str(reply)
    if reply.status >= 500:  # noqa: PLR2004 - RFC 9110, 15
        return Unconfirmed(text)
    if reply.status in _BUSY or code in _TOO_MUCH:
        return NotSent(text, retry_after=reply.wait)
    if reply.status in _ACCOUNT:
        return NotSent(f"the account is at fault: {text}")
    return Rejected(text)
