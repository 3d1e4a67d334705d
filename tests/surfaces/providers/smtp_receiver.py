"""How does a decent mail server behave?

`Mailroom` is aiosmtpd: it takes mail, signs people in, speaks TLS, and refuses what it is told to.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.policy import default
from typing import TYPE_CHECKING, Any, Self

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator
    from email.message import EmailMessage


@dataclass
class Mailroom:
    """Keeps what it takes. `refuse` maps `MAIL`, `DATA` or a recipient to the reply that refuses it."""

    refuse: dict[str, str] = field(default_factory=dict)
    envelopes: list[Envelope] = field(default_factory=list)
    port: int = 0

    @asynccontextmanager
    async def open(self, *, tls: ssl.SSLContext | None = None, **options: Any) -> AsyncIterator[Self]:
        loop = asyncio.get_running_loop()
        made = await loop.create_server(
            lambda: SMTP(self, hostname="mx.shop.test", loop=loop, **options), "127.0.0.1", 0, ssl=tls
        )
        self.port = made.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            made.close()

    def raw(self) -> bytes:
        """The only message that arrived."""
        (envelope,) = self.envelopes
        assert isinstance(envelope.content, bytes)
        return envelope.content

    def message(self) -> EmailMessage:
        """The same, as a mail reader understands it."""
        return message_from_bytes(self.raw(), policy=default)

    async def handle_MAIL(  # noqa: N802 - aiosmtpd names its hooks after the commands
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        envelope.mail_from = address
        return self.refuse.get("MAIL", "250 OK")

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address not in self.refuse:
            envelope.rcpt_tos.append(address)
        return self.refuse.get(address, "250 OK")

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        if "DATA" not in self.refuse:
            self.envelopes.append(envelope)
        return self.refuse.get("DATA", "250 OK")


def authenticator(server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
    """Let in one user, whose password needs percent-encoding in a URL."""
    known = isinstance(data, LoginPassword) and (data.login, data.password) == (b"shop", b"p@ss/w:rd%")
    return AuthResult(success=known, handled=False)
