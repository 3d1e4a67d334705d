"""How is an e-mail handed to an SMTP server, and what does its answer mean?

| what happens | outcome |
|---|---|
| no connection, no TLS, not signed in, time-out or cut connection before DATA | `NotSent` |
| 4xx at any step: the server took nothing (RFC 5321, 4.2.1) | `NotSent` |
| 5xx to the sender, to all recipients or to the message | `Rejected` |
| 530, 534, 535, 538: the account is at fault, not the message (RFC 4954) | `NotSent` |
| the connection is lost or silent, or the answer unreadable, after DATA was begun | `Unconfirmed` |

A connection that was kept from an earlier message and turns out to be closed before DATA is replaced by a fresh one,
once. Nothing is done twice after DATA was begun.

One message has one outcome, also with several recipients. While any of them is put off with 4xx, nobody gets it
yet: all are tried again together, so nobody is forgotten and nobody gets it twice. Those refused for good (5xx)
are left out; the message goes to the others and counts as published. Who was refused, with which reply, is logged as
a warning, and stands in the error where the message failed. Send one action for each recipient where each needs an
outcome of its own.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import aiosmtplib

from postdate.domain.outcome import NotSent, Published, Rejected, Unconfirmed
from postdate.errors import NotConfigured
from postdate.providers.mail import SendEmail, written
from postdate.providers.mailbox import Mailbox
from postdate.providers.smtp_connections import Connection, Connections
from postdate.providers.smtp_url import Security, SmtpServer
from postdate.providers.trust import mail_trust

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Iterator, Sequence

    from postdate.context import Context
    from postdate.settings import Settings

RESET_SECONDS = 5.0
"""How long a kept connection has to show that it is still there."""

_ACCOUNT = frozenset({530, 534, 535, 538})
_GOING_DOWN = 421


class _Stale(Exception):
    """A kept connection is of no use any more, and nothing was begun on it."""


@dataclass(frozen=True, kw_only=True)
class Smtp:
    """A provider of `send_email`, over SMTP. Connections are kept for a moment and used again."""

    server: SmtpServer
    sender: Mailbox
    """The sender of e-mails that name none."""
    tls: ssl.SSLContext = field(default_factory=mail_trust, repr=False)
    """Whose certificates are trusted: the system's, and those of SSL_CERT_FILE."""
    envelope_seconds: float = 30
    """How long everything before the message may take."""
    answer_seconds: float = 60
    """How long the server may take to ask for the message, and again to accept it."""
    connections: Connections = field(default_factory=Connections, repr=False)

    @classmethod
    def of(cls, settings: Settings, *, needed_by: str = "send_email", connections: Connections | None = None) -> Self:
        """Build it from POSTDATE_SMTP_URL and POSTDATE_SMTP_FROM, over connections of its own unless some are given.

        Raises `NotConfigured` where one is missing or cannot be understood.
        """
        if settings.smtp_url is None:
            raise NotConfigured("POSTDATE_SMTP_URL", needed_by=needed_by, hint="such as smtp://localhost:25")
        if settings.smtp_from is None:
            raise NotConfigured("POSTDATE_SMTP_FROM", needed_by=needed_by, hint="such as Shop <shop@example.com>")
        try:
            server = SmtpServer.parse(settings.smtp_url.get_secret_value())
        except ValueError as error:
            raise NotConfigured("POSTDATE_SMTP_URL", needed_by=needed_by, hint=str(error)) from None
        try:
            sender = Mailbox.parse(settings.smtp_from)
        except ValueError as error:
            raise NotConfigured("POSTDATE_SMTP_FROM", needed_by=needed_by, hint=str(error)) from None
        return cls(server=server, sender=sender, connections=connections or Connections())

    async def send(self, ctx: Context, payload: SendEmail) -> Published:
        """Send one e-mail; the provider's id is its Message-ID, which every attempt repeats."""
        sender = Mailbox.parse(payload.sender) if payload.sender else self.sender
        message_id = f"<{ctx.idempotency_key}@{sender.domain}>"
        message = written(payload, sender=sender, message_id=message_id, date=ctx.now)
        connection = await self._connection(ctx, sender.address, payload.recipients)
        await self._hand_over(connection, message)
        return Published(provider_id=message_id)

    async def close(self) -> None:
        """Let go of the connections that are kept in this event loop."""
        await self.connections.close()

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

    async def _connection(self, ctx: Context, sender: str, recipients: Sequence[str]) -> Connection:
        """Return a connection on which all is said that comes before DATA: what fails here has not gone out."""
        try:
            async with asyncio.timeout(self.envelope_seconds):
                kept = self.connections.take()
                if kept is not None:
                    with suppress(_Stale):
                        await self._announce(ctx, kept, sender, recipients)
                        return kept
                fresh = Connection(client=self._client())
                await self._announce(ctx, fresh, sender, recipients)
                return fresh
        except TimeoutError as error:
            raise NotSent(f"no answer within {self.envelope_seconds:g} seconds, before the message") from error

    async def _announce(self, ctx: Context, connection: Connection, sender: str, recipients: Sequence[str]) -> None:
        """Name the sender and the recipients. Raises `_Stale`, but only of a connection that was kept."""
        try:
            with self._watched(connection) as client:
                await (client.rset(timeout=RESET_SECONDS) if connection.used else client.connect())
                await _name_sender(client, sender)
                await _name_recipients(client, recipients, ctx)
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            if connection.used:
                raise _Stale from error
            if isinstance(error, aiosmtplib.SMTPAuthenticationError):
                raise NotSent(f"not signed in, look at POSTDATE_SMTP_URL: {_said(error)}") from error
            raise NotSent(f"before the message: {_said(error)}") from error

    async def _hand_over(self, connection: Connection, message: bytes) -> None:
        try:
            with self._watched(connection) as client:
                await _send_data(client, message, timeout=self.answer_seconds)
        except (aiosmtplib.SMTPException, OSError) as error:
            raise Unconfirmed(f"after DATA: {_said(error)}") from error
        self.connections.keep(connection)

    @contextmanager
    def _watched(self, connection: Connection) -> Iterator[aiosmtplib.SMTP]:
        """Keep the connection where the server said no, and close it where anything else goes wrong."""
        try:
            yield connection.client
        except (NotSent, Rejected):
            self.connections.keep(connection)
            raise
        except BaseException:
            connection.client.close()  # without a goodbye, for which there may be no time
            raise


async def _name_sender(client: aiosmtplib.SMTP, sender: str) -> None:
    try:
        await client.mail(sender)
    except aiosmtplib.SMTPSenderRefused as error:
        if not _is_refusal(error):
            raise
        raise _refusal([error.code], f"the sender was refused: {_said(error)}") from error


async def _name_recipients(client: aiosmtplib.SMTP, recipients: Sequence[str], ctx: Context) -> None:
    """Name all of them, so that every reply is known. Raises an outcome where nobody is to get the message yet."""
    refused: dict[str, aiosmtplib.SMTPRecipientRefused] = {}
    for address in recipients:
        try:
            await client.rcpt(address)
        except aiosmtplib.SMTPRecipientRefused as error:
            if not _is_refusal(error):
                raise
            refused[address] = error
    if not refused:
        return
    replies = {address: _said(error) for address, error in refused.items()}
    ctx.log.warning("recipients were refused", refused=replies)
    listed = "; ".join(f"{address} was refused: {reply}" for address, reply in replies.items())
    outcome = _refusal([error.code for error in refused.values()], listed)
    if isinstance(outcome, NotSent) or len(refused) == len(recipients):
        raise outcome


async def _send_data(client: aiosmtplib.SMTP, message: bytes, *, timeout: float) -> None:  # noqa: ASYNC109
    try:
        await client.data(message, timeout=timeout)
    except aiosmtplib.SMTPDataError as error:
        if error.code == _GOING_DOWN:
            client.close()
        elif not _is_refusal(error):
            raise
        raise _refusal([error.code], f"the message was refused: {_said(error)}") from error


def _is_refusal(error: aiosmtplib.SMTPResponseException) -> bool:
    """Whether the reply says no, and the dialogue goes on."""
    return 400 <= error.code < 600 and error.code != _GOING_DOWN  # noqa: PLR2004 - RFC 5321, 4.2.1


def _is_permanent(code: int) -> bool:
    return 500 <= code < 600 and code not in _ACCOUNT  # noqa: PLR2004 - RFC 5321, 4.2.1


def _refusal(codes: Iterable[int], text: str) -> NotSent | Rejected:
    return Rejected(text) if all(map(_is_permanent, codes)) else NotSent(text)


def _said(error: Exception) -> str:
    if isinstance(error, aiosmtplib.SMTPResponseException):
        return f"{error.code} {error.message}"
    return str(error) or type(error).__name__
