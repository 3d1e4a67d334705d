"""Is this webhook genuine? Signatures by Standard Webhooks 1.0: made for a request, verified by its receiver."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

from postdate.domain.instant import utc
from postdate.errors import Invalid, WebhookHeaderInvalid, WebhookOutOfTime, WebhookSignatureWrong

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

TOLERANCE = timedelta(minutes=5)
"""How far the clocks of sender and receiver, and the time on the way, may be apart."""

_PREFIX = "whsec_"
_KEY_BYTES = range(24, 65)
_BETWEEN_SECRETS = re.compile(r"[\s,]+")
_ID = re.compile(r"[!-\-/-~]{1,255}")
_SECONDS = re.compile(r"[0-9]{1,11}")
_SIGNATURES = re.compile(r"[!-~]+(?: +[!-~]+)*")
_MAX_SIGNATURES = 4096


def secret_keys(secrets: str | Iterable[str]) -> tuple[bytes, ...]:
    """Return the keys of the secrets, in their order: each `whsec_` and base64, the prefix may be left out.

    A text may hold several, separated by blanks or commas. Raises `Invalid` with the rule, never with a secret.
    """
    if isinstance(secrets, str):
        secrets = [each for each in _BETWEEN_SECRETS.split(secrets) if each]
    if not isinstance(secrets, Iterable):
        raise Invalid(field="secrets", rule=f"must be text, or several texts, not {type(secrets).__name__}")
    keys = tuple(_key(secret, place) for place, secret in enumerate(secrets, start=1))
    if not keys:
        raise Invalid(field="secrets", rule="must hold at least one secret")
    return keys


def sign(keys: Sequence[bytes], *, webhook_id: str, timestamp: int, body: bytes) -> str:
    """Return the `webhook-signature` of a request: one signature for each key, so that secrets can be rotated.

    `timestamp` is in Unix seconds; the id must hold no dot, because dots separate what is signed.
    """
    return " ".join(_signature(key, webhook_id=webhook_id, timestamp=str(timestamp), body=body) for key in keys)


def verify_webhook(
    secrets: str | Iterable[str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    now: datetime,
    tolerance: timedelta = TOLERANCE,
) -> str:
    """Return the `webhook-id` of a request that was signed with one of the secrets, and lately.

    Give the body as it arrived: JSON that was parsed and written again has other bytes. A sender repeats the id when
    it tries again, so a receiver acts on each id once. `now` is an aware datetime.

    Raises `WebhookHeaderInvalid`, `WebhookOutOfTime` or `WebhookSignatureWrong`, all `WebhookRefused`: answer with
    status 401. Raises `Invalid` for secrets that are none, and for a body that is not bytes.
    """
    keys = secret_keys(secrets)
    if not isinstance(body, bytes):
        raise Invalid(field="body", rule=f"must be the bytes that arrived, not {type(body).__name__}")
    named = {name.lower(): value for name, value in headers.items()}
    # A dot could move the border between id, time and body without changing what was signed.
    webhook_id = _header(named, "webhook-id", _ID, rule="must have 1 to 255 ASCII characters, no blank and no dot")
    timestamp = _header(named, "webhook-timestamp", _SECONDS, rule="must be Unix seconds")
    given = _header(named, "webhook-signature", _SIGNATURES, rule="must list signatures, separated by blanks")
    if abs(utc(now, field="now").timestamp() - int(timestamp)) > tolerance.total_seconds():
        raise WebhookOutOfTime(int(timestamp), now=now, tolerance=tolerance)
    expected = [_signature(key, webhook_id=webhook_id, timestamp=timestamp, body=body) for key in keys]
    # Each pair is compared, and in constant time: how long it takes tells nothing about a signature.
    same = [hmac.compare_digest(ours, theirs) for ours in expected for theirs in given.split()]
    if not any(same):
        raise WebhookSignatureWrong(webhook_id)
    return webhook_id


def _key(secret: str, place: int) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (ValueError, TypeError, AttributeError):  # no text at all, such as a variable that is not set
        key = b""
    if len(key) not in _KEY_BYTES:
        rule = f"secret {place} must be {_PREFIX} and the base64 of {_KEY_BYTES[0]} to {_KEY_BYTES[-1]} bytes"
        raise Invalid(field="secrets", rule=rule)
    return key


def _signature(key: bytes, *, webhook_id: str, timestamp: str, body: bytes) -> str:
    digest = hmac.digest(key, f"{webhook_id}.{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(digest).decode()}"


def _header(headers: Mapping[str, str], name: str, pattern: re.Pattern[str], *, rule: str) -> str:
    value = headers.get(name)
    if value is None:
        raise WebhookHeaderInvalid(name, rule="is missing")
    if len(value) > _MAX_SIGNATURES or not pattern.fullmatch(value):
        raise WebhookHeaderInvalid(name, rule=rule)
    return value
