"""How is a webhook called, and what does the answer mean?

Requests follow Standard Webhooks 1.0. `webhook-id` is the same for every attempt at an action, and a receiver is
to ignore one that it knows: that makes a doubtful call safe to repeat, so the action type is idempotent.

| what happens | outcome |
|---|---|
| no address, no connection, no TLS | `NotSent` |
| 408, 425, 429, 503: it took nothing; `Retry-After` is honoured, up to a day | `NotSent` |
| 2xx, whatever becomes of the answer's body | `Published` |
| 3xx (no redirect is followed) and other 4xx | `Rejected` |
| other 5xx; the connection is cut or silent once the request has begun | `Unconfirmed` |
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Annotated, Self

import httpx2
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from postdate.domain.outcome import NotSent, Published, Rejected, Unconfirmed
from postdate.errors import NotConfigured
from postdate.providers.host import host_name

if TYPE_CHECKING:
    from postdate.registry import Context
    from postdate.settings import Settings

MAX_URL = 2048
MAX_ANSWER = 16 * 1024
"""How many bytes of an answer are read."""
MAX_EXCERPT = 200
"""How many characters of an answer are kept in an error."""
ANSWER_SECONDS = 5
"""How long the body of an answer is waited for: the verdict is in its status already."""
LONGEST_WAIT = timedelta(days=1)

_SECRET_BYTES = range(24, 65)
_TOOK_NOTHING = frozenset({408, 425, 429, 503})
_PORTS = range(1, 65536)
_PLAIN_SECONDS = re.compile(r"[0-9]{1,9}")


def _web_url(value: str) -> str:
    try:
        url = httpx2.URL(value)
    except httpx2.InvalidURL:
        raise ValueError("must be a URL without control characters, with a port from 1 to 65535") from None
    if url.scheme not in {"http", "https"}:
        raise ValueError("must begin with https://")
    if url.userinfo:
        raise ValueError("must not hold a user or password")
    if url.port is not None and url.port not in _PORTS:
        raise ValueError("must have a port from 1 to 65535")
    host = url.raw_host.decode("ascii")
    if ":" not in host:
        host_name(host)
    return value


def _https_url(value: str) -> str:
    if httpx2.URL(value).scheme != "https":
        raise ValueError("must begin with https:// (POSTDATE_WEBHOOK_ALLOW_HTTP lets http through)")
    return value


WebUrl = Annotated[str, StringConstraints(max_length=MAX_URL), AfterValidator(_web_url)]
HttpsUrl = Annotated[WebUrl, AfterValidator(_https_url)]


class CallWebhook(BaseModel):
    """The payload of `call_webhook`: a JSON body to be posted to an address."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    thing_id: str | None = Field(default=None, min_length=1, max_length=255)
    url: WebUrl
    body: JsonValue = Field(default_factory=dict)


class CallSecureWebhook(CallWebhook):
    """The same where plain http is not allowed, which is the default."""

    url: HttpsUrl


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """The provider of `call_webhook`. Without a secret the calls are not signed."""

    secret: bytes | None = field(default=None, repr=False)

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Build it from POSTDATE_WEBHOOK_SECRET. Raises `NotConfigured` where that cannot be understood."""
        if settings.webhook_secret is None:
            return cls()
        try:
            return cls(secret=secret_bytes(settings.webhook_secret.get_secret_value()))
        except ValueError as error:
            raise NotConfigured("POSTDATE_WEBHOOK_SECRET", needed_by="call_webhook", hint=str(error)) from None

    async def call(self, ctx: Context, payload: CallWebhook) -> Published:
        """Post the body, signed; the provider's id is the answer's `x-request-id`, where it has one."""
        body = json.dumps(payload.body, ensure_ascii=False, separators=(",", ":")).encode()
        headers = self._headers(ctx, body)
        try:
            async with ctx.http.stream(
                "POST", payload.url, content=body, headers=headers, follow_redirects=False
            ) as answer:
                excerpt = await _beginning(answer)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            raise NotSent(f"not connected: {_said(error)}") from error
        except httpx2.TransportError as error:
            raise Unconfirmed(f"no answer: {_said(error)}") from error
        if not answer.is_success:
            raise _refusal(answer, excerpt, now=ctx.now)
        return Published(provider_id=answer.headers.get("x-request-id"))

    def _headers(self, ctx: Context, body: bytes) -> dict[str, str]:
        timestamp = int(ctx.now.timestamp())
        headers = {
            "content-type": "application/json",
            "accept-encoding": "identity",  # a short answer cannot grow when it is unpacked
            "webhook-id": ctx.idempotency_key,
            "webhook-timestamp": str(timestamp),
        }
        if self.secret is not None:
            headers["webhook-signature"] = signature(
                self.secret, webhook_id=ctx.idempotency_key, timestamp=timestamp, body=body
            )
        return headers


def secret_bytes(secret: str) -> bytes:
    """Return the key in `whsec_...`. Raises ValueError with the rule, never with the secret."""
    prefix, _, encoded = secret.partition("_")
    try:
        key = base64.b64decode(encoded, validate=True)
    except ValueError:
        key = b""
    if prefix != "whsec" or len(key) not in _SECRET_BYTES:
        raise ValueError("must be whsec_ and the base64 of 24 to 64 bytes")
    return key


def signature(secret: bytes, *, webhook_id: str, timestamp: int, body: bytes) -> str:
    """Return the `webhook-signature` of a request: HMAC-SHA256 over its id, time (Unix seconds) and body."""
    digest = hmac.digest(secret, f"{webhook_id}.{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(digest).decode()}"


def retry_after(value: str | None, *, now: datetime) -> timedelta | None:
    """Return the wait that a `Retry-After` asks for, at most a day; None where it cannot be read (RFC 9110, 10.2.3)."""
    if value is None:
        return None
    if _PLAIN_SECONDS.fullmatch(value):
        return min(timedelta(seconds=int(value)), LONGEST_WAIT)
    try:
        instant = parsedate_to_datetime(value[:64])
        return min(instant.replace(tzinfo=instant.tzinfo or UTC) - now, LONGEST_WAIT)
    except (TypeError, ValueError, OverflowError):
        return None


def _refusal(answer: httpx2.Response, excerpt: str, *, now: datetime) -> NotSent | Rejected | Unconfirmed:
    text = f"answered {answer.status_code}{f': {excerpt}' if excerpt else ''}"
    if answer.status_code in _TOOK_NOTHING:
        return NotSent(text, retry_after=retry_after(answer.headers.get("retry-after"), now=now))
    if answer.is_redirect:
        return Rejected(f"redirects are not followed: {text}")
    return Rejected(text) if answer.is_client_error else Unconfirmed(text)


async def _beginning(answer: httpx2.Response) -> str:
    """Return a short cut of the body, on one line; a body that breaks off or dawdles is cut there."""
    read = bytearray()
    with suppress(httpx2.TransportError, TimeoutError):
        async with asyncio.timeout(ANSWER_SECONDS):
            async for chunk in answer.aiter_raw():
                read += chunk
                if len(read) >= MAX_ANSWER:
                    break
    return " ".join(read.decode(errors="replace").split())[:MAX_EXCERPT]


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
