"""Where do the webhooks of the demo arrive, and how does a receiver know that they are genuine?"""

from __future__ import annotations

import asyncio
import base64
import hmac
import io
from contextlib import asynccontextmanager, suppress
from http.client import parse_headers
from typing import TYPE_CHECKING
from uuid import UUID

from demo.delivery import Delivery
from postdate.clock import host_time

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from datetime import datetime

    from demo.delivery import Deliver

MAX_AGE_SECONDS = 300
"""Older calls are refused: somebody may have kept one and sent it again."""


@asynccontextmanager
async def webhook_server(secret: str, deliver: Deliver) -> AsyncIterator[str]:
    """Take webhooks on a free port of this machine, and give the server's URL."""
    receiver = _Receiver(secret, deliver)
    server = await asyncio.start_server(receiver.talk, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def genuine(secret: str, headers: Mapping[str, str], body: bytes, *, now: datetime) -> bool:
    """Say whether a call was signed with our secret, and lately: https://www.standardwebhooks.com."""
    sent_at = headers["webhook-timestamp"]
    signed = f"{headers['webhook-id']}.{sent_at}.".encode() + body
    digest = hmac.digest(base64.b64decode(secret.removeprefix("whsec_")), signed, "sha256")
    expected = f"v1,{base64.b64encode(digest).decode()}"
    fresh = abs(now.timestamp() - int(sent_at)) <= MAX_AGE_SECONDS
    return fresh and any(hmac.compare_digest(expected, given) for given in headers["webhook-signature"].split())


class _Receiver:
    """Speaks as much HTTP/1.1 as a caller of webhooks does."""

    def __init__(self, secret: str, deliver: Deliver) -> None:
        self._secret = secret
        self._deliver = deliver

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, until the caller hangs up, speaks no HTTP, or the demo ends."""
        unreadable = (asyncio.LimitOverrunError, ValueError)
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError, *unreadable):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                request_line, _, rest = head.partition(b"\r\n")
                _, path, _ = request_line.decode("latin-1").split(" ")
                headers = {name.lower(): value for name, value in parse_headers(io.BytesIO(rest)).items()}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                status = self._answer(path, headers, body)
                writer.write(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n".encode())
        writer.close()

    def _answer(self, path: str, headers: Mapping[str, str], body: bytes) -> str:
        arrived = host_time()
        try:
            action_id = UUID(headers["webhook-id"])
            if not genuine(self._secret, headers, body, now=arrived):
                return "401 Unauthorized"
        except (KeyError, ValueError):
            return "400 Bad Request"
        self._deliver(
            Delivery(arrived=arrived, action_id=action_id, thing=path.rpartition("/")[2], what=f"webhook to {path}")
        )
        return "204 No Content"
