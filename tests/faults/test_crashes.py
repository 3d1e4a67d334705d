"""What becomes of a thing that the provider has, but whose process died before it could write so?"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from postdate import Action, Reason, Status
from postdate.clock import ManualClock, SystemClock, host_time
from postdate.testing.travel import travel
from tests.faults.dying import ATTEMPTS, TYPES, app_of

if TYPE_CHECKING:
    from collections.abc import Iterator

A_DAY = timedelta(days=1)


class Provider:
    """Takes everything, under each key once, and knows what it has."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.calls: Counter[str] = Counter()


@pytest.fixture
def provider() -> Iterator[Provider]:
    with providing() as started:
        yield started


@contextmanager
def providing() -> Iterator[Provider]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            key = self.headers["Idempotency-Key"]
            there.calls[key] += 1
            self.answer(200, f"provider-{key}")

        def do_GET(self) -> None:
            key = self.path.rpartition("/")[2]
            self.answer(200 if key in there.calls else 404, f"provider-{key}")

        def answer(self, status: int, body: str) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    there = Provider(server.server_port)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield there
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def dies(database_url: str, provider: Provider, *, answers: int, hours: int = 0) -> None:
    """Let a process die when so many answers are there."""
    command = [sys.executable, "-m", "tests.faults.dying", database_url, provider.url, str(answers), str(hours)]
    ran = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=100, check=False
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr


def test_a_crash_between_the_providers_answer_and_our_commit_never_sends_under_a_fresh_key(
    database_url: str, provider: Provider
) -> None:
    """SC01: it waits for a person, is sent again under the same key, or is asked about, as its type says."""
    app = app_of(database_url, provider.url, clock=SystemClock())
    made = {name: app.sync.schedule(name, {"thing_id": name}, at=host_time() - A_DAY) for name in TYPES}
    dies(database_url, provider, answers=len(TYPES))
    standing = {name: app.sync.get(action.id) for name, action in made.items()}
    assert {action.status for action in standing.values()} == {Status.SUBMITTED}
    later = app_of(database_url, provider.url, clock=ManualClock(host_time()))
    asyncio.run(travel(later, to=host_time() + A_DAY))
    found = {name: app.sync.get(action.id) for name, action in made.items()}
    ends = {name: (action.status, action.reason) for name, action in found.items()}
    sent = (Status.PUBLISHED, None)
    assert ends == {"plain": (Status.FAILED, Reason.UNCONFIRMED), "idempotent": sent, "askable": sent}
    assert provider.calls == {str(made[name].id): calls for name, calls in zip(TYPES, (1, 2, 1), strict=True)}
    assert [found[name].provider_id for name in TYPES] == [None, *(id_of(found[name]) for name in TYPES[1:])]
    app.kernel.database.close_sync()


def id_of(action: Action) -> str:
    return f"provider-{action.id}"


def test_a_handler_that_kills_its_process_each_time_is_given_up_after_its_attempts(
    sqlite_url: str, provider: Provider
) -> None:
    """SC04, SC10, SC13: counted when it is claimed; after the last crash it is failed, and a person may retry it."""
    app = app_of(sqlite_url, provider.url, clock=SystemClock())
    action = app.sync.schedule("idempotent", {"thing_id": "t"}, at=host_time() - A_DAY)
    for attempt in range(1, ATTEMPTS + 1):
        # each tick first ends the lease that the crash before has left; the retry is due an hour later at the latest
        hours = 6 * attempt
        if attempt > 1:
            end_lost_lease(sqlite_url, provider, hours=hours - 3)
        dies(sqlite_url, provider, answers=1, hours=hours)
        assert app.sync.get(action.id).attempt_count == attempt
    end_lost_lease(sqlite_url, provider, hours=6 * ATTEMPTS + 3)
    found = app.sync.get(action.id)
    assert (found.status, found.reason, found.attempt_count) == (Status.FAILED, Reason.EXHAUSTED, ATTEMPTS)
    assert provider.calls == {str(action.id): ATTEMPTS}
    assert app.sync.retry(action.id).attempt_count == ATTEMPTS
    app.kernel.database.close_sync()


def end_lost_lease(database_url: str, provider: Provider, *, hours: int) -> None:
    """Do one tick at that hour, in which nothing is due yet."""
    app = app_of(database_url, provider.url, clock=ManualClock(host_time() + timedelta(hours=hours)))

    async def tick() -> None:
        report = await app.tick()
        assert (report.recovered, report.due_count) == (1, 0)
        await app.close()

    asyncio.run(tick())
