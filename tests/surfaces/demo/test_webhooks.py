"""Does the demo's receiver believe what is signed with its secret, and nothing else?"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from demo.webhooks import genuine, webhook_server

if TYPE_CHECKING:
    from demo.delivery import Delivery

# The example of Standard Webhooks' own tests.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'
HEADERS = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
NOW = datetime.fromtimestamp(1614265330, UTC)
FIVE_MINUTES = timedelta(minutes=5)


def test_what_is_signed_with_the_secret_is_genuine() -> None:
    assert genuine(SECRET, HEADERS, BODY, now=NOW)
    assert genuine(SECRET, HEADERS, BODY, now=NOW + FIVE_MINUTES)


def test_so_is_what_carries_the_signature_of_another_secret_beside_it() -> None:
    both = f"v1,AAAA {HEADERS['webhook-signature']}"
    assert genuine(SECRET, HEADERS | {"webhook-signature": both}, BODY, now=NOW)


@pytest.mark.parametrize("header", [{"webhook-id": "msg_2"}, {"webhook-timestamp": "1614265331"}])
def test_a_call_with_another_header_is_not(header: dict[str, str]) -> None:
    assert not genuine(SECRET, HEADERS | header, BODY, now=NOW)


def test_a_call_with_another_body_secret_or_no_signature_is_not() -> None:
    assert not genuine(SECRET, HEADERS, BODY + b" ", now=NOW)
    assert not genuine(f"{SECRET[:-1]}x", HEADERS, BODY, now=NOW)
    assert not genuine(SECRET, HEADERS | {"webhook-signature": ""}, BODY, now=NOW)


@pytest.mark.parametrize("away", [FIVE_MINUTES, -FIVE_MINUTES])
def test_a_call_of_another_time_is_not(away: timedelta) -> None:
    assert not genuine(SECRET, HEADERS, BODY, now=NOW + away * 1.01)


NO_LENGTH = b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"
NO_WEBHOOK = b"POST / HTTP/1.1\r\nWebhook-ID: 1\r\n\r\n"
FORGED = (
    b"POST / HTTP/1.1\r\nWebhook-ID: 00000000-0000-0000-0000-000000000001\r\n"
    b"Webhook-Timestamp: 1614265330\r\nWebhook-Signature: v1,AAAA\r\n\r\n"
)


@pytest.mark.parametrize(
    ("call", "answer"),
    [(b"QUIT\r\n\r\n", ""), (NO_LENGTH, ""), (NO_WEBHOOK, "400 Bad Request"), (FORGED, "401 Unauthorized")],
)
async def test_the_receiver_tells_nobody_of_anything_else(
    call: bytes, answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Delivery] = []
    async with webhook_server(SECRET, told.append) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(call)
        writer.write_eof()
        status_line, _, _ = (await reader.read()).decode().partition("\r\n")
        writer.close()
    assert status_line.removeprefix("HTTP/1.1 ") == answer
    assert not told
    assert not caplog.records
