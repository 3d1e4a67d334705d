"""How can a receiver of webhooks behave?"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request as it arrived; header names in lower case."""

    line: str
    headers: dict[str, str]
    body: bytes


def answer(status: str, *headers: str, body: bytes = b"") -> bytes:
    """Return the bytes of a complete answer."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@dataclass
class HttpReceiver:
    """Sends the same bytes back to every request, then goes on, hangs or cuts the connection."""

    answer: bytes = field(default_factory=lambda: answer("204 No Content"))
    then: str = "go on"
    requests: list[Request] = field(default_factory=list)
    connections: int = 0

    async def start(self, tls: ssl.SSLContext | None = None) -> Self:
        self._stopping = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=tls)
        return self

    async def stop(self) -> None:
        self._stopping.set()
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?of=shop"

    @property
    def port(self) -> int:
        return int(self._server.sockets[0].getsockname()[1])

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        with suppress(asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            while True:
                self.requests.append(await _request(reader))
                writer.write(self.answer)
                await writer.drain()
                if self.then == "hang":
                    await self._stopping.wait()
                if self.then != "go on":
                    break
        writer.close()


async def _request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in head[1:] if each)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(line=head[0], headers=headers, body=body)
