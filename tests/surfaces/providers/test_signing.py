"""Does a signature prove who sent a webhook, to us and to the library that others use?"""

from __future__ import annotations

import base64
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook as Reference
from standardwebhooks.webhooks import WebhookVerificationError

from postdate.clock import host_time
from postdate.errors import (
    Invalid,
    InvalidInstant,
    WebhookHeaderInvalid,
    WebhookOutOfTime,
    WebhookRefused,
    WebhookSignatureWrong,
)
from postdate.providers.signing import TOLERANCE, secret_keys, sign, verify_webhook

if TYPE_CHECKING:
    from collections.abc import Mapping

CASES = [
    json.loads(line) for line in (Path(__file__).parents[2] / "cases" / "signatures.jsonl").read_text().splitlines()
]
NEW = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OLD = "whsec_" + base64.b64encode(bytes(range(24))).decode()
OTHER = "whsec_" + base64.b64encode(bytes(64)).decode()
NOW = datetime(2027, 3, 14, 9, tzinfo=UTC)
BODY = '{"greeting": "Grüße 🎉"}'.encode()


def signed(secrets: str = OLD, *, body: bytes = BODY, at: datetime = NOW, webhook_id: str = "msg_1") -> dict[str, str]:
    timestamp = int(at.timestamp())
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(secret_keys(secrets), webhook_id=webhook_id, timestamp=timestamp, body=body),
    }


def accepts(case: Mapping[str, Any]) -> bool:
    now, tolerance = datetime.fromtimestamp(case["now"], UTC), timedelta(seconds=case["tolerance_s"])
    try:
        verify_webhook(case["secret"], case["headers"], case["body"].encode(), now=now, tolerance=tolerance)
    except WebhookRefused:
        return False
    return True


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_published_and_hostile_requests_are_told_apart(case: dict[str, Any]) -> None:
    """Where both answers are right (level `either`), ours is the one that the case expects."""
    assert accepts(case) is (case["expect"] == "accept")


def test_the_cases_hold_good_and_bad_ones() -> None:
    assert Counter(case["expect"] for case in CASES) == {"accept": 8, "reject": 10}


@given(body=st.text(), key=st.binary(min_size=24, max_size=64))
def test_what_we_sign_convinces_the_standard_library_and_the_other_way_round(body: str, key: bytes) -> None:
    now = host_time()
    secret = "whsec_" + base64.b64encode(key).decode()
    reference = Reference(secret)
    headers = signed(secret, body=body.encode(), at=now)
    reference.verify(body, headers, json_parse=False)

    theirs = {**headers, "webhook-signature": reference.sign("msg_1", now, body)}
    assert verify_webhook(secret, theirs, body.encode(), now=now) == "msg_1"
    with pytest.raises(WebhookVerificationError):
        reference.verify(body + " ", headers, json_parse=False)
    with pytest.raises(WebhookSignatureWrong):
        verify_webhook(secret, theirs, body.encode() + b" ", now=now)


@pytest.mark.parametrize("receiver", [NEW, OLD, f"{NEW} {OLD}", f"{OLD},\n{OTHER}", [OTHER, NEW]])
def test_while_secrets_are_rotated_old_and_new_receivers_accept_the_same_request(receiver: str | list[str]) -> None:
    headers = signed(f"{NEW},{OLD}")
    assert len(headers["webhook-signature"].split(" ")) == 2
    assert verify_webhook(receiver, headers, BODY, now=NOW) == "msg_1"


@pytest.mark.parametrize("receiver", [NEW, OLD])
def test_the_standard_library_accepts_a_request_of_two_secrets_with_either(receiver: str) -> None:
    headers = signed(f"{NEW} {OLD}", at=host_time())
    assert Reference(receiver).verify(BODY, headers) == json.loads(BODY)


@pytest.mark.parametrize("secrets", [OTHER, [OTHER], f"{OTHER} {NEW}"])
def test_a_secret_that_was_withdrawn_opens_nothing(secrets: str | list[str]) -> None:
    with pytest.raises(WebhookSignatureWrong, match="msg_1"):
        verify_webhook(secrets, signed(OLD), BODY, now=NOW)


@pytest.mark.parametrize("off", [TOLERANCE, -TOLERANCE, timedelta(0)])
def test_a_request_within_the_tolerance_is_in_time(off: timedelta) -> None:
    assert verify_webhook(OLD, signed(), BODY, now=NOW + off) == "msg_1"


@pytest.mark.parametrize(("off", "said"), [(301, "301 s before now"), (-301, "301 s ahead of now")])
def test_a_request_kept_back_or_dated_ahead_is_out_of_time(off: int, said: str) -> None:
    now = NOW + timedelta(seconds=off)
    with pytest.raises(WebhookOutOfTime, match=said) as late:
        verify_webhook(OLD, signed(), BODY, now=now)
    assert (late.value.timestamp, late.value.now, late.value.tolerance) == (int(NOW.timestamp()), now, TOLERANCE)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
@pytest.mark.parametrize("value", [None, "", " ", "é", "a\nb", "x" * 5000, "\0"])
def test_a_header_that_is_missing_or_garbled_is_named(name: str, value: str | None) -> None:
    headers = signed()
    del headers[name]
    with pytest.raises(WebhookHeaderInvalid, match=f"^{name} ") as refused:
        verify_webhook(OLD, headers if value is None else {**headers, name: value}, BODY, now=NOW)
    assert refused.value.header == name


@pytest.mark.parametrize(
    "timestamp", ["-1", "+1805014800", "1_805_014_800", "1805014800.0", "1e9", "١٨٠٥٠١٤٨٠٠", "inf"]
)
def test_only_plain_unix_seconds_are_a_timestamp(timestamp: str) -> None:
    with pytest.raises(WebhookHeaderInvalid, match="Unix seconds"):
        verify_webhook(OLD, {**signed(), "webhook-timestamp": timestamp}, BODY, now=NOW)


def test_the_border_between_id_time_and_body_cannot_be_moved() -> None:
    """The signed text is the same, the request another."""
    headers = signed(body=b"456.B", webhook_id="a")
    timestamp = headers["webhook-timestamp"]
    assert verify_webhook(OLD, headers, b"456.B", now=NOW) == "a"
    moved = {**headers, "webhook-id": f"a.{timestamp}", "webhook-timestamp": "456"}
    with pytest.raises(WebhookHeaderInvalid, match="webhook-id"):
        verify_webhook(OLD, moved, b"B", now=datetime.fromtimestamp(456, UTC))


def test_header_names_are_found_in_any_case() -> None:
    headers = {name.title(): value for name, value in signed().items()}
    assert verify_webhook(OLD, headers, BODY, now=NOW) == "msg_1"


def test_a_naive_time_is_refused() -> None:
    with pytest.raises(InvalidInstant):
        verify_webhook(OLD, signed(), BODY, now=NOW.replace(tzinfo=None))


@pytest.mark.parametrize("secrets", ["", " , ", []])
def test_at_least_one_secret_is_needed(secrets: str | list[str]) -> None:
    with pytest.raises(Invalid, match="at least one secret"):
        secret_keys(secrets)


@pytest.mark.parametrize(
    "secret",
    [
        "whsec_",
        "whsec_" + base64.b64encode(bytes(23)).decode(),
        "whsec_" + base64.b64encode(bytes(65)).decode(),
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSé",
        "whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    ],
)
@pytest.mark.parametrize("before", ["", f"{OLD} "])
def test_a_weak_or_garbled_secret_is_refused_by_its_place_without_showing_it(before: str, secret: str) -> None:
    with pytest.raises(Invalid, match=f"secret {2 if before else 1} must be whsec_ .* 24 to 64 bytes") as refused:
        secret_keys(before + secret)
    assert "MfKQ" not in str(refused.value)


@pytest.mark.parametrize("body", [BODY.decode(), json.loads(BODY), None, bytearray(BODY)])
def test_a_body_that_is_not_the_bytes_that_arrived_is_told_to_be_none(body: Any) -> None:
    with pytest.raises(Invalid, match="body: must be the bytes that arrived"):
        verify_webhook(OLD, signed(), body, now=NOW)


@pytest.mark.parametrize("secrets", [None, 7, [None], [OLD.encode()]])
def test_a_secret_that_is_no_text_is_told_to_be_none(secrets: Any) -> None:
    with pytest.raises(Invalid, match=r"^secrets: "):
        verify_webhook(secrets, signed(), BODY, now=NOW)
