"""How is a provider's HTTP API asked, and what is known when it does not answer?

| what happens | outcome |
|---|---|
| no address, no connection, no TLS | `NotSent` |
| an address that is not public, nor allowed by POSTDATE_EGRESS_ALLOW: no connection is made | `Rejected` |
| the connection is cut or silent once the request has begun, or the answer is not HTTP | `Unconfirmed` |

An answer is a `Reply`, whatever its status: what it means is for the provider to say. At most 256 KiB of it are read,
for 10 seconds.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2

from postdate.domain.outcome import NotSent, Rejected, Unconfirmed
from postdate.providers.web_url import MAX_URL, web_url
from postdate.providers.webhook import retry_after

if TYPE_CHECKING:
    from datetime import timedelta

    from postdate.registry import Context

MAX_REPLY = 256 * 1024
"""How many bytes of an answer are read."""
MAX_EXCERPT = 200
"""How many characters of an answer are kept in an error."""
REPLY_SECONDS = 10
"""How long the body of an answer is waited for."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What an API answered."""

    status: int
    body: bytes = field(repr=False)
    """Its beginning, where it is too long, too slow or broken off."""
    wait: timedelta | None = None
    """How long it asked to be left alone, by `Retry-After`, at most a day."""

    @property
    def is_success(self) -> bool:
        """Whether the status is one of 200 to 299."""
        return 200 <= self.status < 300  # noqa: PLR2004 - RFC 9110, 15

    def json(self) -> dict[str, Any]:
        """Return the JSON object in the body; an empty one where there is none that can be read."""
        try:
            told = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return told if isinstance(told, dict) else {}

    def __str__(self) -> str:
        """Return the status and the beginning of the body, on one line."""
        excerpt = " ".join(self.body.decode(errors="replace").split())[:MAX_EXCERPT]
        return f"answered {self.status}{f': {excerpt}' if excerpt else ''}"


def api_url(value: str) -> str:
    """Return the address of an API, under which its paths are, without a slash at its end.

    Raises ValueError, with the rule and without the value.
    """
    if len(value) > MAX_URL:
        raise ValueError(f"must have at most {MAX_URL} characters")
    url = httpx2.URL(web_url(value))
    if url.query or url.fragment:
        raise ValueError("must end after its path")
    return str(url).rstrip("/")


async def ask(ctx: Context, method: str, url: str, **request: Any) -> Reply:
    """Send one request and return the reply. `request` is what `httpx2` takes, such as `json=` and `headers=`.

    Raises `NotSent`, `Rejected` or `Unconfirmed` by the table above.
    """
    headers = {"accept": "application/json", "accept-encoding": "identity", **request.pop("headers", {})}
    try:
        async with ctx.http.stream(method, url, headers=headers, follow_redirects=False, **request) as answer:
            body = await _beginning(answer)
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
        raise NotSent(f"not connected: {_said(error)}") from error
    except httpx2.TransportError as error:
        raise Unconfirmed(f"no answer: {_said(error)}") from error
    wait = retry_after(answer.headers.get("retry-after"), now=ctx.now)
    return Reply(status=answer.status_code, body=body, wait=wait)


async def look(ctx: Context, url: str, **request: Any) -> dict[str, Any]:
    """Ask about a doubtful run, sending nothing, and return the JSON object in the reply.

    Raises `Unconfirmed` where there is none: not to be reached now says nothing about what happened before.
    """
    try:
        reply = await ask(ctx, "GET", url, **request)
    except (NotSent, Rejected) as error:
        raise Unconfirmed(f"could not be asked: {error}") from error
    told = reply.json() if reply.is_success else {}
    if not told:
        raise Unconfirmed(f"could not be asked: {reply}")
    return told


async def _beginning(answer: httpx2.Response) -> bytes:
    """Return the body, or its beginning: the status has come already, so nothing that happens here is an error."""
    read = bytearray()
    try:
        async with asyncio.timeout(REPLY_SECONDS):
            async for chunk in answer.aiter_raw():
                read += chunk
                if len(read) > MAX_REPLY:
                    break
    except (httpx2.TransportError, TimeoutError):
        pass
    return bytes(read[:MAX_REPLY])


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
