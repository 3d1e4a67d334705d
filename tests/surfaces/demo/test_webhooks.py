"""Does the demo's receiver believe our signatures and nobody else's?"""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest

from demo.webhooks import genuine
from postdate.providers.webhook import signature

NOW = datetime(2027, 3, 14, 9, tzinfo=UTC)
KEY = bytes(range(32))
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"
BODY = b'{"text":"Hi"}'


def signed(*, at: datetime = NOW, key: bytes = KEY) -> dict[str, str]:
    timestamp = int(at.timestamp())
    return {
        "webhook-id": "msg-1",
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(key, webhook_id="msg-1", timestamp=timestamp, body=BODY),
    }


def test_what_postdate_signs_is_genuine_also_beside_the_signature_of_an_older_secret() -> None:
    headers = signed()
    assert genuine(SECRET, headers, BODY, now=NOW)
    headers["webhook-signature"] = f"v1,AAAA {headers['webhook-signature']}"
    assert genuine(SECRET, headers, BODY, now=NOW)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (signed(), b'{"text":"Ho"}'),
        (signed() | {"webhook-id": "msg-2"}, BODY),
        (signed(key=bytes(32)), BODY),
        (signed() | {"webhook-signature": ""}, BODY),
        (signed(at=NOW - timedelta(seconds=301)), BODY),
        (signed(at=NOW + timedelta(seconds=301)), BODY),
    ],
    ids=["another body", "another id", "another key", "no signature", "too old", "from the future"],
)
def test_anything_else_is_not(headers: dict[str, str], body: bytes) -> None:
    assert not genuine(SECRET, headers, body, now=NOW)
