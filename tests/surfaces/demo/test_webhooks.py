"""Does the demo's receiver believe what is signed with its secret, and nothing else?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from demo.webhooks import genuine

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
