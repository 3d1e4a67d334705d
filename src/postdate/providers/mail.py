"""What does an e-mail say, and how is it written for SMTP?"""

from __future__ import annotations

import re
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from postdate.providers.mailbox import CONTROL, Mailbox, MailboxText, encoded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

MAX_RECIPIENTS = 100
"""Every server must take so many in one message (RFC 5321, 4.5.3.1.8)."""
MAX_LINE = 900
"""So that a header stays within 998 characters without being folded (RFC 5322, 2.1.1)."""
MAX_HEADERS = 50

_HEADER_NAME = re.compile(r"[!-9;-~]{1,76}")
_OURS = re.compile(
    r"from|sender|to|cc|bcc|reply-to|subject|date|message-id|mime-version|content-.*|resent-.*|return-path|received",
    re.IGNORECASE,
)


def _one_line(value: str) -> str:
    if CONTROL.search(value):
        raise ValueError("must not hold line breaks or other control characters")
    return value


def _listed(value: object) -> object:
    """Let a single address stand for a list of one."""
    return [value] if isinstance(value, str) else value


def _headers(value: Mapping[str, str]) -> Mapping[str, str]:
    if len({name.lower() for name in value}) < len(value):
        raise ValueError("must not name a header twice")
    for name in value:
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError("must have header names of 1 to 76 printable ASCII characters without a colon")
        if _OURS.fullmatch(name):
            raise ValueError(f"must not hold {name}, which is written from the other fields")
    return value


Line = Annotated[str, StringConstraints(max_length=MAX_LINE), AfterValidator(_one_line)]
Mailboxes = Annotated[list[MailboxText], BeforeValidator(_listed), Field(max_length=MAX_RECIPIENTS)]


class SendEmail(BaseModel):
    """The payload of `send_email`: one message to up to 100 recipients."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    thing_id: str | None = Field(default=None, min_length=1, max_length=255)
    to: Mailboxes = Field(min_length=1)
    """`ana@example.com` or `Ana <ana@example.com>`; a single one may stand without a list."""
    cc: Mailboxes = Field(default_factory=list)
    bcc: Mailboxes = Field(default_factory=list)
    """Gets the message without being named in it."""
    reply_to: Mailboxes = Field(default_factory=list)
    sender: MailboxText | None = None
    """Instead of POSTDATE_SMTP_FROM."""
    subject: Line
    text: str | None = None
    html: str | None = None
    """Beside `text` it is the alternative that readers prefer."""
    headers: Annotated[dict[str, Line], Field(max_length=MAX_HEADERS), AfterValidator(_headers)] = Field(
        default_factory=dict
    )
    """More headers, such as List-Unsubscribe."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.text is None and self.html is None:
            raise ValueError("needs text, html or both")
        if len(self.recipients) > MAX_RECIPIENTS:
            raise ValueError(f"must have at most {MAX_RECIPIENTS} recipients in all")
        return self

    @property
    def recipients(self) -> list[str]:
        """The bare addresses that get it, each once."""
        everyone = (*self.to, *self.cc, *self.bcc)
        return list(dict.fromkeys(Mailbox.parse(each).address for each in everyone))


def written(mail: SendEmail, *, sender: Mailbox, message_id: str, date: datetime) -> bytes:
    """Return the message as it travels: ASCII, lines that end in CRLF, nobody of `bcc` in it (RFC 5322).

    The header lines are made here because `email.policy` hides long words, such as the address of a
    List-Unsubscribe, inside encoded words where no mail reader looks for them.
    """
    lines = [
        _line("From", sender.header()),
        _line("To", _addresses(mail.to)),
        *([_line("Cc", _addresses(mail.cc))] if mail.cc else []),
        *([_line("Reply-To", _addresses(mail.reply_to))] if mail.reply_to else []),
        _line("Subject", mail.subject),
        _line("Date", format_datetime(date)),
        _line("Message-ID", message_id),
        *(_line(name, value) for name, value in mail.headers.items()),
    ]
    return "".join(lines).encode("ascii") + bytes(_body(mail))


def _body(mail: SendEmail) -> EmailMessage:
    body = EmailMessage(policy=SMTP.clone(cte_type="7bit"))
    if mail.text is not None:
        body.set_content(mail.text)
    if mail.html is not None:
        add = body.set_content if mail.text is None else body.add_alternative
        add(mail.html, subtype="html")
    return body


def _addresses(mailboxes: Iterable[str]) -> str:
    return ",\r\n ".join(Mailbox.parse(each).header() for each in mailboxes)


def _line(name: str, value: str) -> str:
    return f"{name}: {value if value.isascii() else encoded(value, header_name=name)}\r\n"
