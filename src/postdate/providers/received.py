"""How much may a server send in answer to one request, whatever it calls it?

A body is read up to a bound, and a head has one; but HTTP lets a server send any number of interim answers (RFC 9110,
15.2) before its own, and taking them apart would keep the event loop busy for as long as it likes.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpcore2

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator


@dataclass
class _Allowance:
    left: int


_ALLOWANCE: ContextVar[_Allowance | None] = ContextVar("postdate_received", default=None)


@contextmanager
def received_at_most(size: int) -> Iterator[None]:
    """Let what a `CountedStream` receives for this task within the block be about so many bytes.

    What comes beyond raises httpcore2's `RemoteProtocolError` where it is read.
    """
    token = _ALLOWANCE.set(_Allowance(size))
    try:
        yield
    finally:
        _ALLOWANCE.reset(token)


class CountedStream(httpcore2.AsyncNetworkStream):
    """A stream that tells when more is received than the task allows."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        """Receive something. Raises `RemoteProtocolError` where the allowance was used up before."""
        allowance = _ALLOWANCE.get()
        if allowance is not None and allowance.left <= 0:
            raise httpcore2.RemoteProtocolError("it sends on and on")
        data = await self._stream.read(max_bytes, timeout)
        if allowance is not None:
            allowance.left -= len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Send."""
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        """Return the stream within TLS, counted likewise."""
        return CountedStream(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """Return what the stream knows of itself."""
        return self._stream.get_extra_info(info)
