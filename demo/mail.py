"""Where do the e-mails of the demo arrive? At a real SMTP server, which keeps them to itself."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from email import message_from_bytes
from email.policy import default
from typing import TYPE_CHECKING
from uuid import UUID

from aiosmtpd.smtp import SMTP

from demo.delivery import Delivery
from postdate.clock import host_time

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiosmtpd.smtp import Envelope, Session

    from demo.delivery import Deliver

TAKEN = "250 OK"
UNREADABLE = "554 this is none of postdate's e-mails"


@asynccontextmanager
async def mail_server(deliver: Deliver) -> AsyncIterator[str]:
    """Take e-mails on a free port of this machine, and give the server's URL."""
    loop = asyncio.get_running_loop()
    sink = _Sink(deliver)
    server = await loop.create_server(lambda: SMTP(sink, hostname="localhost", loop=loop), "127.0.0.1", 0)
    try:
        yield f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


class _Sink:
    """Tells of each e-mail; aiosmtpd calls it by the names of the SMTP commands."""

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        arrived = host_time()
        message = message_from_bytes(envelope.original_content or b"", policy=default)
        subject = str(message["Subject"])
        try:
            action_id = UUID(str(message["Message-ID"]).strip("<>").partition("@")[0])
        except ValueError:
            return UNREADABLE
        self._deliver(
            Delivery(
                arrived=arrived,
                action_id=action_id,
                thing=subject.partition(":")[0],
                what=f"e-mail to {message['To']}: {subject}",
            )
        )
        return TAKEN
