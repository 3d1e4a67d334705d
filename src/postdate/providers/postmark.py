"""How is an e-mail handed to Postmark, and what does its answer mean?

| what happens | outcome |
|---|---|
| 200 with a `MessageID` | `Published` |
| not connected; 429 (`Retry-After` is honoured); 503 | `NotSent` |
| the account is at fault: token, sender signature, credits, maintenance | `NotSent` |
| 406 inactive recipient, 300 invalid e-mail, every other 3xx and 4xx | `Rejected` |
| other 5xx; silence or a cut connection once the request has begun; a 200 that cannot be read | `Unconfirmed` |

Postmark knows no idempotency key, so a doubtful send is never repeated. Each message carries the action's id as
metadata, by which `lookup` finds it again. Not found is not proof: a search may lag behind, so that stays doubtful.

Recipients whom Postmark holds inactive are left out where there are others, and logged as a warning.
Documentation: https://postmarkapp.com/developer/api/email-api and .../messages-api.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from postdate.domain.outcome import NotSent, Published, Rejected, Unconfirmed
from postdate.domain.text import cleaned
from postdate.errors import InvalidPayload, NotConfigured
from postdate.providers.api import Reply, api_url, ask, look, number
from postdate.providers.mail import SendEmail  # noqa: TC001 - whoever registers `send` has it read at run time
from postdate.providers.mailbox import Mailbox

if TYPE_CHECKING:
    from collections.abc import Sequence

    from postdate.context import Context
    from postdate.settings import Settings

MAX_RECIPIENTS = 50
"""Postmark takes no more in one message."""
METADATA = "action_id"
"""Under which name a message carries its action's id."""

_BUSY = frozenset({408, 429, 503})
_ACCOUNT = frozenset({10, 100, 400, 401, 405, 412, 413})
"""ErrorCodes that blame the account: token, maintenance, sender signature (twice), credits, pending, barred."""
_PRINTABLE = re.compile(r"[!-~]{1,200}")


@dataclass(frozen=True, kw_only=True)
class Postmark:
    """A provider of `send_email`, over Postmark's HTTP API."""

    token: str = field(repr=False)
    """The server's token."""
    sender: Mailbox
    """The sender of e-mails that name none."""
    stream: str
    """The message stream."""
    url: str
    """Where the API is."""

    @classmethod
    def of(cls, settings: Settings, *, needed_by: str = "send_email") -> Self:
        """Build it from POSTDATE_POSTMARK_TOKEN, _FROM, _STREAM and _URL.

        Raises `NotConfigured` where one is missing or cannot be understood.
        """
        if settings.postmark_token is None:
            raise NotConfigured("POSTDATE_POSTMARK_TOKEN", needed_by=needed_by, hint="a server's API token")
        token = settings.postmark_token.get_secret_value()
        if not _PRINTABLE.fullmatch(token):
            raise NotConfigured("POSTDATE_POSTMARK_TOKEN", needed_by=needed_by, hint="must be printable ASCII")
        if settings.postmark_from is None:
            hint = "such as Shop <shop@example.com>"
            raise NotConfigured("POSTDATE_POSTMARK_FROM", needed_by=needed_by, hint=hint)
        try:
            sender = Mailbox.parse(settings.postmark_from)
        except ValueError as error:
            raise NotConfigured("POSTDATE_POSTMARK_FROM", needed_by=needed_by, hint=str(error)) from None
        try:
            url = api_url(settings.postmark_url)
        except ValueError as error:
            raise NotConfigured("POSTDATE_POSTMARK_URL", needed_by=needed_by, hint=str(error)) from None
        return cls(token=token, sender=sender, stream=settings.postmark_stream, url=url)

    def admit(self, payload: SendEmail, _target: str | None) -> None:
        """Refuse more recipients than Postmark takes, before it is scheduled. Raises `InvalidPayload`."""
        if len(payload.recipients) > MAX_RECIPIENTS:
            rule = f"must have at most {MAX_RECIPIENTS} recipients in all, since Postmark takes no more"
            raise InvalidPayload(field="payload.to", rule=rule)

    async def send(self, ctx: Context, payload: SendEmail) -> Published:
        """Send one e-mail; the provider's id is Postmark's MessageID."""
        message = self._message(ctx, payload)
        reply = await ask(ctx, "POST", f"{self.url}/email", json=message, headers=self._headers())
        told = reply.json()
        message_id = told.get("MessageID")
        if not reply.is_success:
            raise _refusal(reply, told)
        if told.get("ErrorCode") != 0 or not isinstance(message_id, str):
            raise Unconfirmed(f"unclear: {reply}")
        if told.get("Message") != "OK":
            remark = cleaned(told.get("Message"))
            ctx.log.warning("Postmark took the e-mail with a remark", message_id=cleaned(message_id), remark=remark)
        return Published(provider_id=message_id)

    async def lookup(self, ctx: Context, payload: SendEmail) -> Published:  # noqa: ARG002 - the id says it all
        """Ask whether Postmark has a message with this action's id. Raises `Unconfirmed` where it shows none."""
        query = {
            "count": "50",
            "offset": "0",
            "messagestream": self.stream,
            f"metadata_{METADATA}": ctx.idempotency_key,
        }
        told = await look(ctx, f"{self.url}/messages/outbound", params=query, headers=self._headers())
        found = told.get("Messages")
        for each in found if isinstance(found, list) else []:
            if _belongs(each, ctx.idempotency_key):
                return Published(provider_id=each["MessageID"])
        raise Unconfirmed("Postmark shows no message with this action's id, or not yet")

    def _headers(self) -> dict[str, str]:
        return {"x-postmark-server-token": self.token}

    def _message(self, ctx: Context, mail: SendEmail) -> dict[str, Any]:
        sender = Mailbox.parse(mail.sender) if mail.sender else self.sender
        fields: dict[str, Any] = {
            "From": str(sender),
            "To": _listed(mail.to),
            "Cc": _listed(mail.cc),
            "Bcc": _listed(mail.bcc),
            "ReplyTo": _listed(mail.reply_to),
            "Subject": mail.subject,
            "TextBody": mail.text,
            "HtmlBody": mail.html,
            "Headers": [{"Name": name, "Value": value} for name, value in mail.headers.items()],
        }
        given = {name: value for name, value in fields.items() if value}
        return {**given, "MessageStream": self.stream, "Metadata": {METADATA: ctx.idempotency_key}}


def _listed(mailboxes: Sequence[str]) -> str:
    return ", ".join(mailboxes)


def _belongs(message: object, action_id: str) -> bool:
    """Whether a message that the search shows is this action's: an API that ignores the filter shows others too."""
    if not isinstance(message, dict) or not isinstance(message.get("MessageID"), str):
        return False
    metadata = message.get("Metadata")
    return isinstance(metadata, dict) and metadata.get(METADATA) == action_id


def _refusal(reply: Reply, told: dict[str, Any]) -> NotSent | Rejected | Unconfirmed:
    code = number(told.get("ErrorCode"))
    text = f"{told['Message']} (ErrorCode {code})" if code and isinstance(told.get("Message"), str) else str(reply)
    if reply.status in _BUSY:
        return NotSent(text, retry_after=reply.wait)
    if reply.status >= 500:  # noqa: PLR2004 - RFC 9110, 15
        return Unconfirmed(text)
    if reply.status == 401 or code in _ACCOUNT:  # noqa: PLR2004 - RFC 9110, 15
        return NotSent(f"the account is at fault: {text}")
    return Rejected(text)
