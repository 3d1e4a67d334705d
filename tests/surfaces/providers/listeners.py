"""Who listens on this machine where nobody should come by? Sockets that count what does."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

EVERYWHERE = "0.0.0.0"


@dataclass(kw_only=True)
class Listener:
    """What a listening socket has seen. It answers every request with `answer`."""

    port: int
    answer: bytes = b"HTTP/1.1 204 No Content\r\n\r\n"
    connections: int = 0
    hosts: list[str] = field(default_factory=list)
    """The `Host` of each request."""


@asynccontextmanager
async def listening(
    host: str = EVERYWHERE, port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Listener]:
    """Listen on an address of this machine and count."""
    seen = Listener(port=port)
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        seen.connections += 1
        with suppress(asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            while head := (await reader.readuntil(b"\r\n\r\n")).decode("latin-1"):
                headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
                await reader.readexactly(int(headers.get("content-length", "0")))
                seen.hosts.append(headers["host"])
                writer.write(seen.answer)
        writer.close()

    server = await asyncio.start_server(accept, host, port, ssl=tls)
    seen.port = server.sockets[0].getsockname()[1]
    try:
        yield seen
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
