"""How much is read of what an API answers, and what is made of it?"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from postdate.domain.outcome import Unconfirmed
from postdate.providers.api import MAX_REPLY, Reply, api_url, ask, look
from postdate.testing.http_server import Answer, ScriptedHttp, Then, answer
from tests.surfaces.providers.contexts import context

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2


@pytest.fixture
async def api() -> AsyncIterator[ScriptedHttp]:
    async with ScriptedHttp() as started:
        yield started


async def test_no_more_than_the_beginning_of_an_answer_is_read(http: httpx2.AsyncClient, api: ScriptedHttp) -> None:
    api.answer = Answer(sent=b"HTTP/1.1 200 OK\r\n\r\n", then=Then.FLOOD)
    reply = await ask(context(http), "GET", api.base_url)
    assert len(reply.body) == MAX_REPLY
    assert reply.json() == {}


async def test_a_body_that_dawdles_is_left(
    http: httpx2.AsyncClient, api: ScriptedHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postdate.providers.api.REPLY_SECONDS", 0.05)
    api.answer = Answer(sent=b'HTTP/1.1 422 No\r\ncontent-length: 1000\r\n\r\n{"half', then=Then.HANG)
    reply = await asyncio.wait_for(ask(context(http), "GET", api.base_url), 5)
    assert (reply.status, reply.body) == (422, b'{"half')


async def test_an_answer_is_asked_for_as_json_that_is_not_packed(http: httpx2.AsyncClient, api: ScriptedHttp) -> None:
    await ask(context(http), "PUT", f"{api.base_url}/a", json=[1], headers={"x-token": "t"})
    (request,) = api.requests
    assert (request.method, request.target, request.json()) == ("PUT", "/a", [1])
    assert {name: request.headers[name] for name in ("accept", "accept-encoding", "x-token")} == {
        "accept": "application/json",
        "accept-encoding": "identity",
        "x-token": "t",
    }


async def test_the_wait_that_it_asks_for_is_kept_up_to_a_day(http: httpx2.AsyncClient, api: ScriptedHttp) -> None:
    api.answer = answer("429 Busy", "retry-after: 999999")
    assert (await ask(context(http), "GET", api.base_url)).wait == timedelta(days=1)


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000, "it sends on and on"),
        (b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" * 20_000, "it sends on and on"),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 100_000, "too long|on and on"),
        (b"HTTP/1.1 200 OK\r\na: " + b"b" * 1_000_000, "too long|on and on"),
    ],
    ids=["interim answers", "early hints", "headers", "a header"],
)
async def test_a_head_that_never_ends_is_doubtful_at_once(
    http: httpx2.AsyncClient, api: ScriptedHttp, sent: bytes, told: str
) -> None:
    api.answer = Answer(sent=sent, then=Then.HANG)
    with pytest.raises(Unconfirmed, match=f"no answer: .*({told})"):
        await asyncio.wait_for(ask(context(http), "POST", api.base_url), 10)


async def test_chunks_with_more_around_them_than_within_are_read_no_further(
    http: httpx2.AsyncClient, api: ScriptedHttp
) -> None:
    chunks = (b"1;" + b"x" * 1000 + b"\r\na\r\n") * 1000
    api.answer = Answer(sent=b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + chunks, then=Then.HANG)
    reply = await asyncio.wait_for(ask(context(http), "GET", api.base_url), 5)
    assert 0 < len(reply.body) < 1000


async def test_a_few_interim_answers_are_passed_over(http: httpx2.AsyncClient, api: ScriptedHttp) -> None:
    api.answer = Answer(sent=b"HTTP/1.1 102 Processing\r\n\r\n" * 3 + answer("200 OK", body={"id": "c-7"}).sent)
    for _ in range(2):  # what one request received is no burden to the next on the same connection
        assert (await ask(context(http), "POST", api.base_url)).json() == {"id": "c-7"}


@pytest.mark.parametrize("body", [b"", b"null", b"[1]", b'"x"', b"{", b"\xff", b"[" * 100_000, b"NaN"])
def test_what_is_no_json_object_is_an_empty_one(body: bytes) -> None:
    assert Reply(status=200, body=body).json() == {}


def test_an_excerpt_is_one_short_line() -> None:
    assert str(Reply(status=500, body=b" so\r\n\tsorry \xff ")) == "answered 500: so sorry \N{REPLACEMENT CHARACTER}"
    assert len(str(Reply(status=500, body=b"x" * 5000))) < 250
    assert str(Reply(status=502, body=b"")) == "answered 502"


async def test_a_lookup_that_is_refused_has_told_nothing(http: httpx2.AsyncClient, api: ScriptedHttp) -> None:
    api.answer = answer("404 No", body={"found": "nothing"})
    with pytest.raises(Unconfirmed, match="could not be asked: answered 404"):
        await look(context(http), api.base_url)
    api.answer = answer("200 OK", body={"found": "it"})
    assert await look(context(http), api.base_url) == {"found": "it"}
    with pytest.raises(Unconfirmed, match="could not be asked: 10"):
        await look(context(http), "https://10.0.0.1/")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://api.example.com", "https://api.example.com"),
        ("https://api.example.com/", "https://api.example.com"),
        ("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1"),
    ],
)
def test_the_address_of_an_api_has_no_slash_at_its_end(given: str, kept: str) -> None:
    assert api_url(given) == kept


@pytest.mark.parametrize(
    "wrong", ["", "api.example.com", "ftp://a.b", "https://a.b?c=d", "https://a.b#c", "https://u:p@a.b"]
)
def test_what_is_no_address_of_an_api_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"^must "):
        api_url(wrong)
