"""How is an e-mail handed to an SMTP server, and what does its answer mean?

| what happens | outcome |
|---|---|
| no connection, no TLS, not signed in, time-out or cut connection before DATA | `NotSent` |
| 4xx at any step: the server took nothing (RFC 5321, 4.2.1) | `NotSent` |
| 5xx to the sender, to all recipients or to the message | `Rejected` |
| 530, 534, 535, 538: the account is at fault, not the message (RFC 4954) | `NotSent` |
| the connection is lost or silent, or the answer unreadable, after DATA was begun | `Unconfirmed` |

One message has one outcome, also with several recipients. While any of them is put off with 4xx, nobody gets it
yet: all are tried again together, so nobody is forgotten and nobody gets it twice. Those refused for good (5xx)
are left out and logged as a warning; the message goes to the others and counts as published. Send one action
for each recipient where each needs an outcome of its own.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Self
from urllib.parse import unquote, urlsplit

import aiosmtplib

from postdate.domain.outcome import NotSent, Published, Rejected, Unconfirmed
from postdate.errors import NotConfigured
from postdate.providers.host import host_name
from postdate.providers.mail import SendEmail, written
from postdate.providers.mailbox import Mailbox

if TYPE_CHECKING:
    from collections.abc import Sequence

    from postdate.registry import Context
    from postdate.settings import Settings

NEEDED_BY = "send_email"
MAX_URL = 2048
LEAVE_SECONDS = 2
"""How long the server has to answer QUIT, which changes nothing any more."""

_ACCOUNT = frozenset({530, 534, 535, 538})


class Security(StrEnum):
    """How the connection is kept private: the schemes of POSTDATE_SMTP_URL."""

    NONE = "smtp"
    TLS = "smtps"
    STARTTLS = "smtp+starttls"


_PORTS = {Security.NONE: 25, Security.TLS: 465, Security.STARTTLS: 587}


@dataclass(frozen=True, kw_only=True)
class SmtpServer:
    """Where mail is handed over, and as whom."""

    host: str
    port: int
    security: Security
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, url: str) -> SmtpServer:
        """Read `smtp://`, `smtps://` or `smtp+starttls://`, then `user:password@host:port`, percent-encoded.

        The ports are 25, 465 and 587 where none is given. Raises ValueError with the rule, never with the URL.
        """
        if len(url) > MAX_URL:
            raise ValueError(f"must have at most {MAX_URL} characters")
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            # urllib's own text may quote the password.
            raise ValueError("must be a URL with a port from 1 to 65535; percent-encode the password") from None
        if parts.scheme not in set(Security):
            raise ValueError(f"must begin with {', '.join(f'{each}://' for each in Security)}")
        if parts.path not in {"", "/"} or parts.query or parts.fragment:
            raise ValueError("must end after host and port; percent-encode / ? # in the password")
        if port == 0 or not parts.hostname:
            raise ValueError("must name a host, and a port from 1 to 65535")
        if bool(parts.username) != bool(parts.password):
            raise ValueError("must hold both user and password, or neither")
        security = Security(parts.scheme)
        return cls(
            host=parts.hostname if ":" in parts.hostname else host_name(parts.hostname),
            port=_PORTS[security] if port is None else port,
            security=security,
            username=unquote(parts.username, errors="strict") if parts.username else None,
            password=unquote(parts.password, errors="strict") if parts.password else None,
        )


@dataclass(frozen=True, kw_only=True)
class Smtp:
    """The provider of `send_email`: one connection for each message."""

    server: SmtpServer
    sender: Mailbox
    """The sender of e-mails that name none."""
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context, repr=False)
    """Whose certificates are trusted: the system's, and those of SSL_CERT_FILE."""
    envelope_seconds: float = 30
    """How long everything before the message may take."""
    answer_seconds: float = 60
    """How long the server may take to ask for the message, and again to accept it."""

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Build it from POSTDATE_SMTP_URL and POSTDATE_SMTP_FROM.

        Raises `NotConfigured` where one is missing or cannot be understood.
        """
        if settings.smtp_url is None:
            raise NotConfigured("POSTDATE_SMTP_URL", needed_by=NEEDED_BY, hint="such as smtp://localhost:25")
        if settings.smtp_from is None:
            raise NotConfigured("POSTDATE_SMTP_FROM", needed_by=NEEDED_BY, hint="such as Shop <shop@example.com>")
        try:
            server = SmtpServer.parse(settings.smtp_url.get_secret_value())
        except ValueError as error:
            raise NotConfigured("POSTDATE_SMTP_URL", needed_by=NEEDED_BY, hint=str(error)) from None
        try:
            sender = Mailbox.parse(settings.smtp_from)
        except ValueError as error:
            raise NotConfigured("POSTDATE_SMTP_FROM", needed_by=NEEDED_BY, hint=str(error)) from None
        return cls(server=server, sender=sender)

    async def send(self, ctx: Context, payload: SendEmail) -> Published:
        """Send one e-mail; the provider's id is its Message-ID, which every attempt repeats."""
        sender = Mailbox.parse(payload.sender) if payload.sender else self.sender
        message_id = f"<{ctx.idempotency_key}@{sender.domain}>"
        message = written(payload, sender=sender, message_id=message_id, date=ctx.now)
        client = self._client()
        try:
            refused = await self._open(client, sender.address, payload.recipients)
            await self._hand_over(client, message)
        except asyncio.CancelledError:
            client.close()  # no time is left to say goodbye
            raise
        finally:
            await _leave(client)
        if refused:
            ctx.log.warning("some recipients were refused", message_id=message_id, refused=refused)
        return Published(provider_id=message_id)

    def _client(self) -> aiosmtplib.SMTP:
        return aiosmtplib.SMTP(
            hostname=self.server.host,
            port=self.server.port,
            username=self.server.username,
            password=self.server.password,
            use_tls=self.server.security is Security.TLS,
            start_tls=self.server.security is Security.STARTTLS,
            tls_context=self.tls,
            timeout=self.envelope_seconds,
        )

    async def _open(self, client: aiosmtplib.SMTP, sender: str, recipients: Sequence[str]) -> dict[str, str]:
        """Do all that comes before DATA: whatever fails here, nothing has gone out. Return who was refused."""
        try:
            async with asyncio.timeout(self.envelope_seconds):
                await client.connect()
                await client.mail(sender)
                return await _named(client, recipients)
        except aiosmtplib.SMTPSenderRefused as error:
            raise _refusal(error, step="the sender") from error
        except aiosmtplib.SMTPAuthenticationError as error:
            raise NotSent(f"not signed in, look at POSTDATE_SMTP_URL: {_said(error)}") from error
        except TimeoutError as error:
            client.close()
            raise NotSent(f"no answer within {self.envelope_seconds:g} seconds, before the message") from error
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            raise NotSent(f"before the message: {_said(error)}") from error

    async def _hand_over(self, client: aiosmtplib.SMTP, message: bytes) -> None:
        try:
            await client.data(message, timeout=self.answer_seconds)
        except aiosmtplib.SMTPResponseException as error:
            if 400 <= error.code < 600:  # noqa: PLR2004 - the replies that say no
                raise _refusal(error, step="the message") from error
            raise Unconfirmed(f"after DATA: {_said(error)}") from error
        except (aiosmtplib.SMTPException, OSError) as error:
            raise Unconfirmed(f"after DATA: {_said(error)}") from error


async def _named(client: aiosmtplib.SMTP, recipients: Sequence[str]) -> dict[str, str]:
    """Name the recipients; return those refused for good, who are not all of them."""
    refused: dict[str, str] = {}
    for address in recipients:
        try:
            await client.rcpt(address)
        except aiosmtplib.SMTPRecipientRefused as error:
            refusal = _refusal(error, step=address)
            if isinstance(refusal, NotSent) or len(refused) == len(recipients) - 1:
                raise refusal from error
            refused[address] = _said(error)
    return refused


async def _leave(client: aiosmtplib.SMTP) -> None:
    if client.is_connected:
        with suppress(aiosmtplib.SMTPException, OSError):
            await client.quit(timeout=LEAVE_SECONDS)
    client.close()


def _refusal(error: aiosmtplib.SMTPResponseException, *, step: str) -> NotSent | Rejected:
    permanent = 500 <= error.code < 600 and error.code not in _ACCOUNT  # noqa: PLR2004 - RFC 5321, 4.2.1
    return (Rejected if permanent else NotSent)(f"{step} was refused: {_said(error)}")


def _said(error: Exception) -> str:
    if isinstance(error, aiosmtplib.SMTPResponseException):
        return f"{error.code} {error.message}"
    return str(error) or type(error).__name__
