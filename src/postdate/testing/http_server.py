"""How can a provider's HTTP server behave?

`ScriptedHttp` is a real server on the loopback interface that does what no decent one does: it answers nonsense, falls
silent, cuts the connection, or never ends its answer. It keeps what arrived.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Self

from postdate.testing.loopback import FLOOD_BYTES, HOST

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Mapping

_CHUNK = b"too much " * 8192
_LINGER_NO_MORE = struct.pack("ii", 1, 0)


class Then(Enum):
    """What the server does after it has sent its answer."""

    GO_ON = auto()
    """Wait for the next request on the same connection."""
    CLOSE = auto()
    """Close the connection in good order; half-way through an answer, that cuts it."""
    RESET = auto()
    """Break the connection off."""
    HANG = auto()
    """Say nothing more, and keep the connection."""
    FLOOD = auto()
    """Send on and on, up to `FLOOD_BYTES`."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request as it arrived; header names in lower case."""

    method: str
    target: str
    """The path with its query, as it was sent."""
    headers: Mapping[str, str]
    body: bytes

    @property
    def raw(self) -> bytes:
        """Everything that arrived, in one piece: for looking whether something is in it at all."""
        lines = (f"{name}: {value}" for name, value in self.headers.items())
        return "\r\n".join((f"{self.method} {self.target}", *lines)).encode("latin-1") + b"\r\n\r\n" + self.body

    def json(self) -> Any:
        """Return the body as JSON. Raises ValueError where it is none."""
        return json.loads(self.body)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The bytes that the server sends back, and what it does then."""

    sent: bytes = b""
    then: Then = Then.GO_ON


def answer(status: str, *headers: str, body: bytes | str | Mapping[str, object] = b"") -> Answer:
    """Return a complete answer: `answer("200 OK", "x-request-id: 1", body={"id": 7})`."""
    if isinstance(body, bytes):
        content = body
    elif isinstance(body, str):
        content = body.encode()
    else:
        content = json.dumps(body).encode()
        headers = ("content-type: application/json", *headers)
    lines = (f"HTTP/1.1 {status}", f"content-length: {len(content)}", *headers)
    return Answer(sent="\r\n".join(lines).encode() + b"\r\n\r\n" + content)


@dataclass
class ScriptedHttp:
    """Gives the same answer to every request. Change `answer` whenever you like.

    Use it as an async context manager: it listens on a free port of 127.0.0.1.
    """

    answer: Answer = field(default_factory=lambda: answer("204 No Content"))
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    host: str = HOST
    port: int = 0
    """Where it listens, once it does."""
    flooded: int = 0
    """How many bytes of an endless answer went out before the client had enough."""

    async def start(self, tls: ssl.SSLContext | None = None) -> Self:
        """Begin to listen, over TLS where a context is given."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._accept, self.host, 0, ssl=tls)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def stop(self) -> None:
        """Close everything."""
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def ended(self) -> None:
        """Wait until the connections that are open now have ended."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        """Begin to listen."""
        return await self.start()

    async def __aexit__(self, *exc: object) -> None:
        """Close everything."""
        await self.stop()

    @property
    def base_url(self) -> str:
        """Where it listens: a scheme, a host and a port, without a path."""
        return f"http://{self.host}:{self.port}"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.connections += 1
        with suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError, OSError):
            while await self._served(reader, writer):
                pass
        await _closed(writer)

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; say whether the connection is there for another."""
        self.requests.append(await _request(reader))
        now = self.answer
        writer.write(now.sent)
        await writer.drain()
        match now.then:
            case Then.GO_ON:
                return True
            case Then.HANG:
                await reader.read()  # until the client has enough
            case Then.FLOOD:
                await self._flood(writer)
            case Then.RESET:
                _break_off(writer)
            case Then.CLOSE:
                pass
        return False

    async def _flood(self, writer: asyncio.StreamWriter) -> None:
        while self.flooded < FLOOD_BYTES:
            writer.write(_CHUNK)
            await writer.drain()
            self.flooded += len(_CHUNK)


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


def _break_off(writer: asyncio.StreamWriter) -> None:
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NO_MORE)
    writer.transport.abort()


async def _request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in head[1:] if each)}
    if headers.get("transfer-encoding") == "chunked":
        body = b"".join([chunk async for chunk in _chunks(reader)])
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method=method, target=target, headers=headers, body=body)


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        yield (await reader.readexactly(size + 2))[:-2]
    await reader.readuntil(b"\r\n")
