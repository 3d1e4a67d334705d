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

import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Self

import httpx2
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from postdate.domain.instant import rfc3339
from postdate.domain.outcome import NotSent, Published, Rejected, Unconfirmed
from postdate.errors import Invalid, InvalidPayload, NotConfigured
from postdate.providers.api import Reply, exchange
from postdate.providers.egress import NOT_PUBLIC, Egress, known_addresses
from postdate.providers.signing import secret_keys, sign
from postdate.providers.web_url import HttpsUrl, WebUrl, endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from postdate.context import Context
    from postdate.settings import Settings

MAX_ANSWER = 16 * 1024
"""How many bytes of an answer are read."""
ANSWER_SECONDS = 5
"""How long the body of an answer is waited for: the verdict is in its status already."""

_TOOK_NOTHING = frozenset({408, 425, 429, 503})


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
        reply = await post_signed(ctx, url=payload.url, body=payload.body, keys=self.keys)
        return Published(provider_id=reply.headers.get("x-request-id") or None)


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


async def post_signed(ctx: Context, *, url: str, body: JsonValue, keys: Sequence[bytes]) -> Reply:
    """Post JSON as this action's webhook, signed with each of the keys, and return the reply of who took it.

    Raises `NotSent`, `Rejected` or `Unconfirmed` by the table above.
    """
    known_as = endpoint(url)
    since = await ctx.endpoints.disabled_since(known_as)
    if since is not None:
        raise Rejected(f"not called: this endpoint is disabled, because it said on {since:%Y-%m-%d} that it is gone")
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    headers = _headers(ctx, content, keys)
    reply = await exchange(
        ctx, "POST", url, at_most=MAX_ANSWER, within=ANSWER_SECONDS, content=content, headers=headers
    )
    if reply.status == HTTPStatus.GONE:
        await ctx.endpoints.disable(known_as, at=ctx.now)
    if not reply.is_success:
        raise _refusal(reply)
    return reply


def envelope(ctx: Context, kind: str, data: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the body of a webhook as Standard Webhooks recommends it: what it is, when it was due, and the data."""
    return {"type": kind, "timestamp": rfc3339(ctx.action.publish_at), "data": {**data}}


def _headers(ctx: Context, content: bytes, keys: Sequence[bytes]) -> dict[str, str]:
    timestamp = int(ctx.now.timestamp())
    headers = {
        "content-type": "application/json",
        "webhook-id": ctx.idempotency_key,
        "webhook-timestamp": str(timestamp),
    }
    if keys:
        headers["webhook-signature"] = sign(keys, webhook_id=ctx.idempotency_key, timestamp=timestamp, body=content)
    return headers


def _refusal(reply: Reply) -> NotSent | Rejected | Unconfirmed:
    if reply.status in _TOOK_NOTHING:
        return NotSent(reply, retry_after=reply.wait)
    match reply.status // 100:
        case 3:
            return Rejected(f"redirects are not followed: {reply}")
        case 4:
            return Rejected(reply)
        case _:
            return Unconfirmed(reply)
