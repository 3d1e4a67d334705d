"""How is a request made over HTTP, and what is known when there is no answer?

| what happens | outcome |
|---|---|
| no address, no connection, no TLS | `NotSent` |
| an address that is not public, nor allowed by POSTDATE_EGRESS_ALLOW: no connection is made | `Rejected` |
| the connection is cut or silent once the request has begun, or the answer is not HTTP | `Unconfirmed` |

An answer is a `Reply`, whatever its status: what it means is for the provider to say. `ask` reads at most 256 KiB of
it, for 10 seconds.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import httpx2

from postdate.domain.outcome import NotSent, Rejected, Unconfirmed
from postdate.providers.received import received_at_most
from postdate.providers.web_url import MAX_URL, web_url

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from postdate.context import Context

MAX_REPLY = 256 * 1024
"""How many bytes of an answer are read."""
MAX_AROUND = 64 * 1024
"""How many bytes may come around the body: interim answers, the head, the borders of chunks."""
MAX_EXCERPT = 200
"""How many characters of an answer are kept in an error."""
REPLY_SECONDS = 10
"""How long the body of an answer is waited for."""
LONGEST_RETRY_AFTER = timedelta(days=1)
"""No provider is left alone for longer at once, whatever it asks for."""

_PLAIN_SECONDS = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What came back, whatever it means."""

    status: int
    body: bytes = field(repr=False)
    """Its beginning, where it is too long, too slow or broken off."""
    headers: Mapping[str, str] = field(default_factory=httpx2.Headers, repr=False)
    """By name, in whatever case."""
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
    headers = {"accept": "application/json", **request.pop("headers", {})}
    return await exchange(ctx, method, url, at_most=MAX_REPLY, within=REPLY_SECONDS, headers=headers, **request)


async def exchange(
    ctx: Context,
    method: str,
    url: str,
    *,
    at_most: int,
    within: float | None,
    headers: Mapping[str, str],
    **request: Any,
) -> Reply:
    """Do the same as `ask`, but read `at_most` bytes of the body, and wait for it `within` so many seconds."""
    headers = {"accept-encoding": "identity", **headers}  # a short body cannot grow when it is unpacked
    sending = ctx.http.stream(method, url, headers=headers, follow_redirects=False, **request)
    try:
        with received_at_most(MAX_AROUND + at_most):
            async with sending as answer:
                body = await _beginning(answer, at_most=at_most, within=within)
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
        raise NotSent(f"not connected: {_said(error)}") from error
    except httpx2.TransportError as error:
        raise Unconfirmed(f"no answer: {_said(error)}") from error
    wait = retry_after(answer.headers.get("retry-after"), now=ctx.now)
    return Reply(status=answer.status_code, body=body, headers=answer.headers, wait=wait)


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


def number(told: object) -> int | None:
    """Return a number in a reply's JSON; None for what is none, which nothing can be compared with."""
    return told if isinstance(told, int) and not isinstance(told, bool) else None


def retry_after(value: str | None, *, now: datetime) -> timedelta | None:
    """Return the wait that a `Retry-After` asks for, at most a day; None where it cannot be read (RFC 9110, 10.2.3)."""
    if value is None:
        return None
    if _PLAIN_SECONDS.fullmatch(value):
        return min(timedelta(seconds=int(value)), LONGEST_RETRY_AFTER)
    try:
        instant = parsedate_to_datetime(value[:64])
        return min(instant.replace(tzinfo=instant.tzinfo or UTC) - now, LONGEST_RETRY_AFTER)
    except (TypeError, ValueError, OverflowError):
        return None


async def _beginning(answer: httpx2.Response, *, at_most: int, within: float | None) -> bytes:
    """Return the body, or its beginning: the status has come already, so nothing that happens here is an error."""
    read = bytearray()
    with suppress(httpx2.TransportError, TimeoutError):
        async with asyncio.timeout(within):
            async for chunk in answer.aiter_raw():
                read += chunk
                if len(read) >= at_most:
                    break
    return bytes(read[:at_most])


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
