"""How do several hands reach for one row at the same moment, again and again?"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier, BrokenBarrierError, Condition, local
from typing import TYPE_CHECKING, Any, TypeAlias

import psycopg
from sqlalchemy import make_url
from sqlalchemy.exc import IntegrityError

from postdate import PostdateError

if TYPE_CHECKING:
    from collections.abc import Callable

A_WHILE = 60
"""Seconds after which a contender that does not come is a failure."""

A_LOOK = 0.001
"""Seconds between two looks at who is stuck."""

_STUCK = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


class Meeting:
    """Where contenders wait for each other. Each of them comes here exactly once in every round."""

    def __init__(self, contenders: int) -> None:
        self._others = contenders - 1
        self._rounds = Barrier(contenders, action=self._reset)
        self._barrier = Barrier(contenders)
        self._own = local()
        self._changed = Condition()
        self._ended = 0
        self._view: psycopg.Connection[Any] | None = None

    def start(self) -> None:
        """Wait until everybody is here."""
        self._own.came = True
        self._barrier.wait(A_WHILE)

    def hold(self) -> None:
        """Wait until everybody is here, then until all the others are stuck behind my transaction, or done.

        On SQLite, whose writers cannot be watched while they wait, only until everybody is here.
        """
        self.start()
        if self._view is not None:
            with self._changed:
                while self._view.execute(_STUCK).fetchall()[0][0] + self._ended < self._others:
                    self._changed.wait(A_LOOK)

    def watch(self, view: psycopg.Connection[Any]) -> None:
        """Watch through this connection who is stuck."""
        self._view = view

    def begin_round(self) -> None:
        """Wait until everybody is done with the last round."""
        self._rounds.wait(A_WHILE)
        self._own.came = False

    def leave(self) -> None:
        """Be done with this round, also for those who were refused before they came."""
        if not self._own.came:
            self.start()
        with self._changed:
            self._ended += 1
            self._changed.notify_all()

    def give_up(self) -> None:
        """Let nobody wait for me any more."""
        self._rounds.abort()
        self._barrier.abort()
        with self._changed:
            self._ended = self._others

    def _reset(self) -> None:
        self._ended = 0


Contender: TypeAlias = "Callable[[int, Meeting], Any]"
"""`contender(round, meeting)` does its part of a round; what it returns, or why it was refused, is its result."""


def race(url: str, rounds: int, *contenders: Contender) -> list[list[Any]]:
    """Let the contenders meet `rounds` times, each in a thread of its own; return each round's results in their order.

    A refusal (`PostdateError`, or the database's own for a bare insert) is a result; any other error is raised.
    """
    meeting = Meeting(len(contenders))

    def run(contender: Contender) -> list[Any]:
        results = []
        for number in range(rounds):
            meeting.begin_round()
            try:
                results.append(contender(number, meeting))
            except (PostdateError, IntegrityError) as refusal:
                results.append(refusal)
            except BaseException:
                meeting.give_up()
                raise
            meeting.leave()
        return results

    with ExitStack() as open_, ThreadPoolExecutor(len(contenders)) as threads:
        if url.startswith("postgresql"):
            conninfo = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
            meeting.watch(open_.enter_context(psycopg.connect(conninfo, autocommit=True)))
        running = [threads.submit(run, contender) for contender in contenders]
        errors = [future.exception() for future in running]
        for error in sorted((e for e in errors if e), key=lambda e: isinstance(e, BrokenBarrierError)):
            raise error
        return [list(results) for results in zip(*(future.result() for future in running), strict=True)]
