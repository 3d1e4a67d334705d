"""What reaches a receiver of webhooks, and what does its answer become?"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import socket
import ssl
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from pydantic import SecretStr, TypeAdapter

from postdate.domain.outcome import NotSent, Published, Rejected, Unconfirmed
from postdate.errors import InvalidPayload
from postdate.providers.api import retry_after
from postdate.providers.http import http_client
from postdate.providers.signing import verify_webhook
from postdate.providers.webhook import CallSecureWebhook, CallWebhook, Webhook
from postdate.registry import ActionType
from postdate.settings import Settings
from tests.surfaces.providers.contexts import ACTION_ID, NOW, context
from tests.surfaces.providers.http_receiver import HttpReceiver, answer

if TYPE_CHECKING:
    from pathlib import Path

    import trustme

KEY = bytes(range(24))
SIGNED = Webhook(keys=(KEY,))


async def call(http: httpx2.AsyncClient, url: str, body: Any = None) -> Published:
    return await SIGNED.call(context(http), CallWebhook(url=url, body=body))


async def test_the_body_arrives_signed_by_standard_webhooks(http: httpx2.AsyncClient, receiver: HttpReceiver) -> None:
    receiver.answer = answer("200 OK", "X-Request-Id: req-1", body=b"thanks")
    outcome = await call(http, receiver.url, {"greeting": "Grüße 🎉", "n": [1, None]})

    (request,) = receiver.requests
    assert request.line == "POST /hook?of=shop HTTP/1.1"
    assert json.loads(request.body) == {"greeting": "Grüße 🎉", "n": [1, None]}
    assert request.headers["content-type"] == "application/json"
    assert request.headers["webhook-id"] == str(ACTION_ID)
    assert request.headers["webhook-timestamp"] == str(int(NOW.timestamp()))
    assert request.headers["user-agent"].startswith("postdate/")
    signed = b".".join([str(ACTION_ID).encode(), request.headers["webhook-timestamp"].encode(), request.body])
    expected = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    assert request.headers["webhook-signature"] == f"v1,{expected}"
    assert outcome == Published(provider_id="req-1"), "P28: the outside system's id is kept"


async def test_while_secrets_are_rotated_each_signs_newest_first(
    http: httpx2.AsyncClient, receiver: HttpReceiver
) -> None:
    new, old = (f"whsec_{base64.b64encode(bytes([n]) * 24).decode()}" for n in (1, 2))
    webhook = Webhook.of(Settings(webhook_secret=SecretStr(f"{new}, {old}")))
    await webhook.call(context(http), CallWebhook(url=receiver.url))
    (request,) = receiver.requests
    assert len(request.headers["webhook-signature"].split(" ")) == 2
    for secret in (new, old):
        assert verify_webhook(secret, request.headers, request.body, now=NOW) == str(ACTION_ID)


async def test_without_a_secret_the_call_is_not_signed_but_keeps_its_id(
    http: httpx2.AsyncClient, receiver: HttpReceiver
) -> None:
    outcome = await Webhook().call(context(http), CallWebhook(url=receiver.url, body=None))
    (request,) = receiver.requests
    assert "webhook-signature" not in request.headers
    assert request.headers["webhook-id"] == str(ACTION_ID)
    assert request.body == b"null"
    assert outcome == Published()


async def test_every_attempt_carries_the_same_id(http: httpx2.AsyncClient, receiver: HttpReceiver) -> None:
    for attempt in (1, 2, 3):
        await SIGNED.call(context(http, attempt=attempt), CallWebhook(url=receiver.url))
    assert {request.headers["webhook-id"] for request in receiver.requests} == {str(ACTION_ID)}
    assert receiver.connections == 1, "connections are used again"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        *((status, NotSent) for status in (408, 425, 429, 503)),
        *((status, Rejected) for status in (300, 301, 302, 303, 304, 307, 308)),
        *((status, Rejected) for status in (400, 401, 403, 404, 405, 409, 410, 413, 422, 451)),
        *((status, Unconfirmed) for status in (500, 501, 502, 504, 520, 599, 600)),
    ],
)
async def test_a_status_that_is_no_success_becomes_its_outcome(
    http: httpx2.AsyncClient, receiver: HttpReceiver, status: int, expected: type[Exception]
) -> None:
    """P32: only an answer that says nothing was taken puts the action back."""
    receiver.answer = answer(f"{status} Whatever", f"Location: {receiver.url}", body=b"" if status == 304 else b"why")
    with pytest.raises(expected, match=f"answered {status}"):
        await call(http, receiver.url)
    assert len(receiver.requests) == 1, "no redirect is followed, nothing is sent twice"


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("Retry-After: 120", timedelta(seconds=120)),
        ("Retry-After: Sun, 14 Mar 2027 09:10:00 GMT", timedelta(minutes=10) - timedelta(milliseconds=250)),
        ("Retry-After: 999999999", timedelta(days=1)),
        ("Retry-After: Sun, 14 Mar 9999 09:10:00 GMT", timedelta(days=1)),
        ("Retry-After: Sun, 14 Mar 2021 09:10:00 GMT", None),
        ("Retry-After: -5", None),
        ("Retry-After: soon", None),
        ("Retry-After: " + "9" * 5000, None),
        ("X-Other: 1", None),
    ],
)
async def test_the_wait_that_a_busy_receiver_asks_for_is_honoured_up_to_a_day(
    http: httpx2.AsyncClient, receiver: HttpReceiver, status: int, header: str, wait: timedelta | None
) -> None:
    receiver.answer = answer(f"{status} Busy", header)
    with pytest.raises(NotSent) as busy:
        await call(http, receiver.url)
    assert busy.value.retry_after == wait


@pytest.mark.parametrize("value", ["٣", "1e3", "0x10", "Mon", "Sun, 14 Mar 2027 09:10:00 -9999", "\0"])
def test_a_wait_that_nobody_can_read_is_none(value: str) -> None:
    assert retry_after(value, now=NOW) is None


async def test_a_time_without_a_zone_is_read_as_utc() -> None:
    assert retry_after("Sun, 14 Mar 2027 10:00:00 -0000", now=NOW.replace(microsecond=0)) == timedelta(hours=1)


async def test_only_a_short_cut_of_an_endless_answer_is_read_and_kept(
    http: httpx2.AsyncClient, receiver: HttpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postdate.providers.webhook.ANSWER_SECONDS", None)
    http.timeout = httpx2.Timeout(None)
    receiver.answer = b"HTTP/1.1 400 No\r\n\r\nfield \x00\xff\n\tname " + b"is wrong " * 200_000
    receiver.then = "hang"
    with pytest.raises(Rejected) as refused:
        await asyncio.wait_for(call(http, receiver.url), 5)
    assert refused.value.error.startswith("answered 400: field \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER} name")
    assert len(refused.value.error) < 250


async def test_an_empty_id_in_an_answer_is_none(http: httpx2.AsyncClient, receiver: HttpReceiver) -> None:
    receiver.answer = answer("204 No Content", "x-request-id: ")
    assert await Webhook().call(context(http), CallWebhook(url=receiver.url)) == Published()


async def test_an_answer_is_not_unpacked(http: httpx2.AsyncClient, receiver: HttpReceiver) -> None:
    receiver.answer = answer("400 No", "Content-Encoding: gzip", body=b"\x1f\x8bnot really")
    with pytest.raises(Rejected, match="not really"):
        await call(http, receiver.url)
    assert receiver.requests[0].headers["accept-encoding"] == "identity"


async def test_a_success_stays_one_when_the_body_of_the_answer_breaks_off(
    http: httpx2.AsyncClient, receiver: HttpReceiver
) -> None:
    receiver.answer = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf"
    receiver.then = "cut"
    assert await call(http, receiver.url) == Published()


async def test_a_success_stays_one_when_the_body_of_the_answer_never_ends(
    http: httpx2.AsyncClient, receiver: HttpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postdate.providers.webhook.ANSWER_SECONDS", 0.1)
    receiver.answer = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf"
    receiver.then = "hang"
    assert await call(http, receiver.url) == Published()


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 20", b"HTTP/1.1 200 OK\r\ncontent-le", b"SSH-2.0-OpenSSH\r\n"])
@pytest.mark.parametrize("then", ["cut", "hang"])
async def test_a_call_whose_answer_never_came_is_doubtful(
    http: httpx2.AsyncClient, receiver: HttpReceiver, sent: bytes, then: str
) -> None:
    http.timeout = httpx2.Timeout(10, read=0.2)
    receiver.answer, receiver.then = sent, then
    with pytest.raises(Unconfirmed, match="no answer"):
        await call(http, receiver.url)
    assert len(receiver.requests) == 1


async def test_a_closed_port_and_an_unknown_host_are_not_sent(http: httpx2.AsyncClient) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        with pytest.raises(NotSent, match="not connected"):
            await call(http, f"http://127.0.0.1:{taken.getsockname()[1]}/")
    with pytest.raises(NotSent, match="not connected"):
        await call(http, "https://nowhere.invalid/")


async def test_a_connection_that_is_never_taken_up_is_not_sent(http: httpx2.AsyncClient) -> None:
    http.timeout = httpx2.Timeout(10, connect=0.2)
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        with socket.create_connection(full.getsockname()), pytest.raises(NotSent, match="ConnectTimeout"):
            await call(http, f"http://127.0.0.1:{full.getsockname()[1]}/")


async def test_a_receiver_whose_certificate_nobody_trusts_gets_nothing(
    http: httpx2.AsyncClient, authority: trustme.CA
) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    receiver = await HttpReceiver().start(tls)
    try:
        with pytest.raises(NotSent, match=r"(?i)certificate"):
            await call(http, f"https://127.0.0.1:{receiver.port}/")
    finally:
        await receiver.stop()
    assert receiver.requests == []


async def test_no_cookie_travels_from_one_call_to_the_next(http: httpx2.AsyncClient, receiver: HttpReceiver) -> None:
    receiver.answer = answer("200 OK", "Set-Cookie: session=someone-elses; Path=/")
    for _ in range(2):
        await call(http, receiver.url)
    assert [request.headers.get("cookie") for request in receiver.requests] == [None, None]


async def test_proxies_and_passwords_of_the_environment_are_not_used(
    receiver: HttpReceiver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password mine\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with http_client(Settings(egress_allow="127.0.0.1")) as http:
        await call(http, receiver.url)
    assert "authorization" not in receiver.requests[0].headers


def webhook_type(payload: type[CallWebhook]) -> ActionType:
    return ActionType(name="call_webhook", handler=print, payload=TypeAdapter(payload))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "//example.com",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://",
        "https:///path",
        "https://user:pass@example.com/",
        "https://user@example.com/",
        "https://good.example\\@evil.example/",
        "https://exa mple.com/",
        "https://example.com:0/",
        "https://example.com:65536/",
        "https://example.com:x/",
        "https://exam..ple.com/",
        "https://" + "a" * 64 + ".example/",
        "https://[::1",
        "https://example.com/\r\nHost: evil",
        "https://example.com/" + "x" * 2048,
    ],
)
@pytest.mark.parametrize("payload", [CallWebhook, CallSecureWebhook])
def test_an_address_that_cannot_be_called_is_refused_when_it_is_scheduled(url: str, payload: type[CallWebhook]) -> None:
    with pytest.raises(InvalidPayload) as refused:
        webhook_type(payload).dump({"url": url})
    assert refused.value.field == "payload.url"


@pytest.mark.parametrize("url", ["https://example.com", "HTTPS://bücher.example:8443/a?b=c", "https://[2001:db8::1]/"])
def test_an_https_address_is_kept_as_it_was_given(url: str) -> None:
    assert webhook_type(CallSecureWebhook).dump({"url": url}) == {"url": url, "body": {}}


def test_plain_http_is_refused_unless_it_was_allowed() -> None:
    payload = CallWebhook(url="http://localhost:8000/")
    assert webhook_type(CallWebhook).dump(payload)["url"] == "http://localhost:8000/"
    with pytest.raises(InvalidPayload, match=r"payload\.url: .*https://"):
        webhook_type(CallSecureWebhook).dump(payload)
