"""How is a webhook called, and what does the answer mean?

Requests follow Standard Webhooks 1.0. `webhook-id` is the same for every attempt at an action, and a receiver is
to ignore one that it knows: that makes a doubtful call safe to repeat, so the action type is idempotent.

| what happens | outcome |
|---|---|
| no address, no connection, no TLS | `NotSent` |
| an address that is not public, nor allowed by POSTDATE_EGRESS_ALLOW: no connection is made | `Rejected` |
| 408, 425, 429, 503: it took nothing; `Retry-After` is honoured, up to a day | `NotSent` |
| 2xx, whatever becomes of the answer's body | `Published` |
| 410: the endpoint is gone; it is disabled, and later calls are refused without being made | `Rejected` |
| 3xx (no redirect is followed) and other 4xx | `Rejected` |
| other 5xx; the connection is cut or silent once the request has begun | `Unconfirmed` |

A request is as large as a payload may be, at most 256 KiB; of an answer at most 16 KiB are read, for 5 seconds.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Self

import httpx2
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from postdate.domain.outcome import NotSent, Published, Rejected, Unconfirmed
from postdate.errors import Invalid, InvalidPayload, NotConfigured
from postdate.providers.egress import NOT_PUBLIC, Egress, known_addresses
from postdate.providers.signing import secret_keys, sign
from postdate.providers.web_url import HttpsUrl, WebUrl, endpoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from postdate.registry import Context
    from postdate.settings import Settings

MAX_ANSWER = 16 * 1024
"""How many bytes of an answer are read."""
MAX_EXCERPT = 200
"""How many characters of an answer are kept in an error."""
ANSWER_SECONDS = 5
"""How long the body of an answer is waited for: the verdict is in its status already."""
LONGEST_WAIT = timedelta(days=1)

_TOOK_NOTHING = frozenset({408, 425, 429, 503})
_PLAIN_SECONDS = re.compile(r"[0-9]{1,9}")


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
class Answer:
    """What a receiver said: that it took the webhook."""

    headers: httpx2.Headers
    body: bytes
    """Its beginning."""


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """The provider of `call_webhook`. Without keys the calls are not signed."""

    keys: tuple[bytes, ...] = field(default=(), repr=False)
    """One signature is made with each, so that secrets can be rotated."""
    egress: Egress = field(default_factory=Egress)

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Build it from POSTDATE_WEBHOOK_SECRET. Raises `NotConfigured` where that cannot be understood."""
        return cls(keys=signing_keys(settings, needed_by="call_webhook"), egress=Egress.of(settings))

    def admit(self, payload: CallWebhook, _target: str | None) -> None:
        """Refuse what names an address that is not public, before it is scheduled.

        Where an ordinary name leads is looked at when the call is made. Raises `InvalidPayload`.
        """
        url = httpx2.URL(payload.url)
        host, port = url.raw_host.decode("ascii"), url.port or (443 if url.scheme == "https" else 80)
        if self.egress.refused(host, port, known_addresses(host)) is not None:
            raise InvalidPayload(field="payload.url", rule=NOT_PUBLIC, value=payload.url)

    async def call(self, ctx: Context, payload: CallWebhook) -> Published:
        """Post the body, signed; the provider's id is the answer's `x-request-id`, where it has one."""
        answer = await post_signed(ctx, url=payload.url, body=payload.body, keys=self.keys)
        return Published(provider_id=answer.headers.get("x-request-id"))


def signing_keys(settings: Settings, *, needed_by: str) -> tuple[bytes, ...]:
    """Return the keys of POSTDATE_WEBHOOK_SECRET, none where it is not set.

    Raises `NotConfigured` where it cannot be understood.
    """
    if settings.webhook_secret is None:
        return ()
    try:
        return secret_keys(settings.webhook_secret.get_secret_value())
    except Invalid as error:
        raise NotConfigured("POSTDATE_WEBHOOK_SECRET", needed_by=needed_by, hint=error.rule) from None


async def post_signed(ctx: Context, *, url: str, body: JsonValue, keys: Sequence[bytes]) -> Answer:
    """Post JSON as this action's webhook, signed with each of the keys, and return what the receiver said to it.

    Raises `NotSent`, `Rejected` or `Unconfirmed` by the table above.
    """
    known_as = endpoint(url)
    since = await ctx.endpoints.disabled_since(known_as)
    if since is not None:
        raise Rejected(f"not called: this endpoint is disabled, because it said on {since:%Y-%m-%d} that it is gone")
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    headers = _headers(ctx, content, keys)
    try:
        async with ctx.http.stream("POST", url, content=content, headers=headers, follow_redirects=False) as answer:
            beginning = await _beginning(answer)
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
        raise NotSent(f"not connected: {_said(error)}") from error
    except httpx2.TransportError as error:
        raise Unconfirmed(f"no answer: {_said(error)}") from error
    if answer.status_code == HTTPStatus.GONE:
        await ctx.endpoints.disable(known_as, at=ctx.now)
    if not answer.is_success:
        raise _refusal(answer, beginning, now=ctx.now)
    return Answer(headers=answer.headers, body=beginning)


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


def _headers(ctx: Context, content: bytes, keys: Sequence[bytes]) -> dict[str, str]:
    timestamp = int(ctx.now.timestamp())
    headers = {
        "content-type": "application/json",
        "accept-encoding": "identity",  # a short answer cannot grow when it is unpacked
        "webhook-id": ctx.idempotency_key,
        "webhook-timestamp": str(timestamp),
    }
    if keys:
        headers["webhook-signature"] = sign(keys, webhook_id=ctx.idempotency_key, timestamp=timestamp, body=content)
    return headers


def _refusal(answer: httpx2.Response, beginning: bytes, *, now: datetime) -> NotSent | Rejected | Unconfirmed:
    excerpt = " ".join(beginning.decode(errors="replace").split())[:MAX_EXCERPT]
    text = f"answered {answer.status_code}{f': {excerpt}' if excerpt else ''}"
    if answer.status_code in _TOOK_NOTHING:
        return NotSent(text, retry_after=retry_after(answer.headers.get("retry-after"), now=now))
    if answer.is_redirect:
        return Rejected(f"redirects are not followed: {text}")
    return Rejected(text) if answer.is_client_error else Unconfirmed(text)


async def _beginning(answer: httpx2.Response) -> bytes:
    """Return the beginning of the body; one that breaks off or dawdles is cut there."""
    read = bytearray()
    with suppress(httpx2.TransportError, TimeoutError):
        async with asyncio.timeout(ANSWER_SECONDS):
            async for chunk in answer.aiter_raw():
                read += chunk
                if len(read) >= MAX_ANSWER:
                    break
    return bytes(read[:MAX_ANSWER])


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
