"""What can happen between a provider and its HTTP server, and what may a run of it end in then?"""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import timedelta
from email.utils import format_datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from postdate.domain.outcome import NotSent, Rejected, Unconfirmed
from postdate.testing.http_server import Answer, ScriptedHttp, Then, answer
from postdate.testing.loopback import LONG_PATIENCE, SHORT_PATIENCE, UNKNOWN_HOST, refusing_port, unanswered_port
from postdate.testing.rules import ANSWERED, BROKEN, DOUBTFUL, TAKEN, UNREACHED, Rule
from postdate.testing.runs import NOW

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

WAIT = timedelta(minutes=10)
"""The wait that the busy server asks for."""
RETRY_AFTER_SECONDS = f"retry-after: {WAIT.total_seconds():.0f}"
RETRY_AFTER_DATE = f"retry-after: {format_datetime(NOW + WAIT, usegmt=True)}"


class HttpSituation(StrEnum):
    """What happens; each is the end of a sentence that begins with "the outcome when"."""

    REFUSED = "the connection is refused"
    UNKNOWN_HOST = "the name of the host is not found"
    NEVER_CONNECTED = "time runs out before the request is written"
    BUSY_FOR_SECONDS = "the answer is 429 with Retry-After in seconds"
    BUSY_UNTIL = "the answer is 429 with Retry-After as a date"
    REFUSAL = "the answer is 400"
    UNAVAILABLE = "the answer is 503"
    SERVER_ERROR = "the answer is 500"
    ELSEWHERE = "the answer leads to another address"
    SILENT = "time runs out after the request was written"
    CUT = "the connection is cut after the request was written"
    BROKEN_OFF = "the connection is broken off after the request was written"
    HALF_HEAD = "the connection is cut in the middle of the answer's head"
    HALF_BODY = "the connection is cut in the middle of the body of a 200"
    ENDLESS = "the body of a 200 never ends"
    NOT_HTTP = "the answer is not HTTP"
    GARBAGE = "the body of a 200 makes no sense"


RULES: dict[HttpSituation, Rule] = {
    HttpSituation.REFUSED: Rule(NotSent, UNREACHED),
    HttpSituation.UNKNOWN_HOST: Rule(NotSent, UNREACHED),
    HttpSituation.NEVER_CONNECTED: Rule(NotSent, UNREACHED),
    HttpSituation.BUSY_FOR_SECONDS: Rule(NotSent, ANSWERED),
    HttpSituation.BUSY_UNTIL: Rule(NotSent, ANSWERED),
    HttpSituation.REFUSAL: Rule(Rejected, ANSWERED),
    HttpSituation.UNAVAILABLE: Rule(NotSent, ANSWERED),
    HttpSituation.SERVER_ERROR: Rule(Unconfirmed, BROKEN),
    HttpSituation.ELSEWHERE: Rule(Rejected, ANSWERED),
    HttpSituation.SILENT: Rule(Unconfirmed, DOUBTFUL),
    HttpSituation.CUT: Rule(Unconfirmed, DOUBTFUL),
    HttpSituation.BROKEN_OFF: Rule(Unconfirmed, DOUBTFUL),
    HttpSituation.HALF_HEAD: Rule(Unconfirmed, DOUBTFUL),
    HttpSituation.HALF_BODY: Rule(Unconfirmed, TAKEN),
    HttpSituation.ENDLESS: Rule(Unconfirmed, TAKEN),
    HttpSituation.NOT_HTTP: Rule(Unconfirmed, DOUBTFUL),
    HttpSituation.GARBAGE: Rule(Unconfirmed, TAKEN),
}

ANSWERS: dict[HttpSituation, Answer] = {
    HttpSituation.BUSY_FOR_SECONDS: answer("429 Too Many Requests", RETRY_AFTER_SECONDS, body="slow down"),
    HttpSituation.BUSY_UNTIL: answer("429 Too Many Requests", RETRY_AFTER_DATE, body="slow down"),
    HttpSituation.REFUSAL: answer("400 Bad Request", body="a field is wrong"),
    HttpSituation.UNAVAILABLE: answer("503 Service Unavailable", body="closed for maintenance"),
    HttpSituation.SERVER_ERROR: answer("500 Internal Server Error", body="something broke"),
    HttpSituation.ELSEWHERE: answer("307 Temporary Redirect", "location: /elsewhere"),
    HttpSituation.SILENT: Answer(then=Then.HANG),
    HttpSituation.CUT: Answer(then=Then.CLOSE),
    HttpSituation.BROKEN_OFF: Answer(then=Then.RESET),
    HttpSituation.HALF_HEAD: Answer(sent=b"HTTP/1.1 200 OK\r\ncontent-le", then=Then.CLOSE),
    HttpSituation.HALF_BODY: Answer(sent=b'HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{"id": ', then=Then.CLOSE),
    HttpSituation.ENDLESS: Answer(sent=b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n", then=Then.FLOOD),
    HttpSituation.NOT_HTTP: Answer(sent=b"SSH-2.0-OpenSSH_9.2\r\n", then=Then.CLOSE),
    HttpSituation.GARBAGE: answer("200 OK", "content-type: application/json", body='<html>{"id": \x00\xff}</html>'),
}
"""What the server does where the connection stands."""


def patience(situation: HttpSituation) -> float:
    """Return how many seconds a case waits: little where nothing but patience ends the wait."""
    silent = situation in {HttpSituation.NEVER_CONNECTED, HttpSituation.SILENT}
    return SHORT_PATIENCE if silent else LONG_PATIENCE


@asynccontextmanager
async def staged(situation: HttpSituation, answers: Mapping[HttpSituation, Answer]) -> AsyncIterator[ScriptedHttp]:
    """Give a server for the situation. Where no connection is to stand, it has an address, and nobody listens there."""
    server = ScriptedHttp(answer=answers.get(situation, ANSWERS.get(situation, Answer())))
    match situation:
        case HttpSituation.UNKNOWN_HOST:
            server.host, server.port = UNKNOWN_HOST, 80
            yield server
        case HttpSituation.NEVER_CONNECTED:
            with unanswered_port() as server.port:
                yield server
        case HttpSituation.REFUSED:
            with refusing_port() as server.port:
                yield server
        case _:
            async with server:
                yield server
