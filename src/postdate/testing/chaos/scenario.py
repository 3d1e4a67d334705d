"""How does one run of chaos go, from its first worker to its report?"""

from __future__ import annotations

import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, assert_never

from sqlalchemy import and_, func, select, text
from sqlalchemy.exc import DBAPIError

from postdate.clock import monotonic
from postdate.domain.action import Action
from postdate.errors import Invalid, PostdateError
from postdate.store.passing import passes
from postdate.testing.chaos.crew import Crew
from postdate.testing.chaos.faults import OF_SERVERS, Fault, Planned, plan
from postdate.testing.chaos.invariants import Broken, Evidence, broken_by, everything
from postdate.testing.chaos.journal import read_journal
from postdate.testing.chaos.wire import Wire, wire_to
from postdate.testing.chaos.worker import Orders, imported

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from sqlalchemy import Table
    from sqlalchemy.sql.expression import ColumnElement

    from postdate.app import Postdate
    from postdate.domain.states import Reason, Status
    from postdate.verbs.intake import NewAction

TIMEOUT, MARGIN, PAUSE = 2.0, 1.5, 0.1
_PATIENCE = 60.0
_STANDSTILL = 5.0
_FAILURES = 2
"""With more workers than these ending by themselves there is nothing to wait for."""
_A_LOOK = 0.02


@dataclass(frozen=True, kw_only=True)
class ChaosReport:
    """What was done, what came of it, and which rules did not hold."""

    seed: int
    faults: tuple[Planned, ...]
    runs: int
    """How many runs the workers began."""
    counts: Counter[tuple[Status, Reason | None]]
    """How many actions ended how."""
    refused: tuple[PostdateError, ...]
    """Why requests were refused, where some were."""
    broken: tuple[Broken, ...]

    @property
    def sound(self) -> bool:
        """Whether every rule held."""
        return not self.broken

    def __str__(self) -> str:
        """Tell it in lines."""
        done = ", ".join(f"{one.fault} after {one.after_runs} runs" for one in self.faults) or "nothing"
        ends = ", ".join(f"{count} {reason or status}" for (status, reason), count in sorted(self.counts.items()))
        lines = [f"chaos, seed {self.seed}: {done}", f"{self.runs} runs: {ends or 'no action'}"]
        lines += [f"BROKEN: {one.rule}: {one.told} ({one.action})" for one in self.broken]
        return "\n".join(lines)


def chaos(
    app: str,
    database_url: str,
    requests: Sequence[NewAction],
    *,
    seed: int = 0,
    workers: int = 3,
    faults: Sequence[Fault] | None = None,
    restart: Callable[[], object] | None = None,
) -> ChaosReport:
    """Let workers of `app` (`module:app`) fire these requests on a scratch database while `faults` happen to them.

    Handlers are really called, so let them call nothing real. The requests should be due; `faults` are all that are
    possible, unless named; `restart` restarts the PostgreSQL server and returns when it is up. The same seed plans the
    same faults at the same moments, counted in runs; how processes interleave is up to the machine. It takes seconds.
    Raises `Invalid` for a fault that this database cannot have, `Misconfigured` for what is no app.
    """
    with ExitStack() as stack:
        harness = imported(app).on(database_url)
        stack.callback(harness.kernel.database.close_sync)
        chosen = _chosen(faults, is_sqlite=harness.kernel.database.is_sqlite, restart=restart)
        harness.migrate()
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="postdate-chaos-")))
        wire = stack.enter_context(wire_to(database_url)) if Fault.DISCONNECT in chosen else None
        orders = Orders(
            app=app,
            database_url=wire.url if wire else database_url,
            journal=str(folder),
            timeout=TIMEOUT,
            margin=MARGIN,
            pause=PAUSE,
        )
        crew = Crew(orders, folder)
        stack.callback(crew.end)
        return _Scenario(harness, crew, wire, restart, folder).run(requests, chosen, seed=seed, workers=workers)


def _chosen(
    faults: Sequence[Fault] | None, *, is_sqlite: bool, restart: Callable[[], object] | None
) -> tuple[Fault, ...]:
    impossible = OF_SERVERS if is_sqlite else frozenset({Fault.RESTART} if restart is None else ())
    if faults is None:
        return tuple(fault for fault in Fault if fault not in impossible)
    for fault in faults:
        if fault in impossible:
            raise Invalid(field="faults", rule="holds one that this database cannot have", value=str(fault))
    return tuple(faults)


@dataclass
class _Scenario:
    harness: Postdate
    crew: Crew
    wire: Wire | None
    restart: Callable[[], object] | None
    folder: Path
    _outage_until: float | None = None

    def run(self, requests: Sequence[NewAction], chosen: Sequence[Fault], *, seed: int, workers: int) -> ChaosReport:
        planned = plan(chosen, runs=len(requests), seed=seed)
        for _ in range(workers):
            self.crew.start()
        answers = self._schedule(requests, twice=Fault.DOUBLE_DELIVERY in chosen, seed=seed)
        for one in planned:
            self._happen(one)
        stuck = [] if self._until(lambda: self._due() == 0) else [Broken(rule="what is due is fired", told="in time")]
        self.crew.dismiss()
        if len(self.crew.failed) <= _FAILURES:
            direct = self.harness.settings.database_url
            self.crew.finish(replace(self.crew.orders, database_url=direct, aftermath=True))
        return self._report(planned, answers, stuck, seed=seed)

    def _schedule(self, requests: Sequence[NewAction], *, twice: bool, seed: int) -> list[list[Action | PostdateError]]:
        """Make each request, `twice` at the same moment, under an idempotency key; return what was answered."""
        keyed = [
            one if one.idempotency_key else replace(one, idempotency_key=f"chaos {seed} {number}")
            for number, one in enumerate(requests)
        ]

        def ask(_caller: int) -> list[Action | PostdateError]:
            return [self.harness.sync.schedule_many([one])[0] for one in keyed]

        callers = range(2 if twice else 1)
        with ThreadPoolExecutor(len(callers)) as threads:
            return list(threads.map(ask, callers))

    def _happen(self, planned: Planned) -> None:
        self._until(lambda: self._begun() >= planned.after_runs or self._due() == 0)
        journal = read_journal(self.folder)
        last = journal.runs[min(planned.after_runs, len(journal.runs)) - 1].worker if journal.runs else 0
        worker = self.crew.somebody(last)
        match planned.fault:
            case Fault.KILL:
                self.crew.kill(worker)
            case Fault.STOP:
                self._stand_still(worker)
            case Fault.CLOCK_STEP:
                self.crew.step_clock(worker, planned.step)
            case Fault.DISCONNECT:
                assert self.wire
                self.wire.cut()
            case Fault.TERMINATE:
                self._terminate()
            case Fault.RESTART:
                assert self.restart
                self.restart()
                self._outage_until = monotonic() + TIMEOUT
            case Fault.DOUBLE_DELIVERY:
                raise AssertionError("it is in how requests are made, not a moment")
            case _:
                assert_never(planned.fault)

    def _stand_still(self, worker: int) -> None:
        """Stop a worker until its leases are over and a newcomer, whose first tick looks for such, has ended them."""
        self.crew.stop(worker)
        over = monotonic() + TIMEOUT + MARGIN
        self._until(lambda: monotonic() >= over)
        self.crew.start()
        # on SQLite it may have been stopped with the write lock in its hand: then nobody gets any further meanwhile
        self._until(lambda: self._lost() == 0, within=_STANDSTILL)
        self.crew.go_on(worker)

    def _terminate(self) -> None:
        others = "select pg_terminate_backend(pid) from pg_stat_activity"
        with self.harness.kernel.transaction(None) as tx:
            tx.execute(text(f"{others} where datname = current_database() and pid <> pg_backend_pid()"))

    def _report(
        self,
        planned: tuple[Planned, ...],
        answers: list[list[Action | PostdateError]],
        stuck: list[Broken],
        *,
        seed: int,
    ) -> ChaosReport:
        journal = read_journal(self.folder)
        with self.harness.kernel.transaction(None, read_only=True) as tx:
            actions, misplaced = everything(tx)
        evidence = Evidence(
            actions=actions,
            journal=journal,
            registry=self.harness.kernel.registry,
            hurt=self.crew.hurt.keys(),
            outage_until=self._outage_until,
        )
        wanted = {one.id for caller in answers for one in caller if isinstance(one, Action)}
        failed = [Broken(rule="no worker ends by itself", told=told) for told in self.crew.failed]
        return ChaosReport(
            seed=seed,
            faults=planned,
            runs=len(journal.runs),
            counts=Counter((action.status, action.reason) for action in actions.values()),
            refused=tuple(one for one in answers[0] if isinstance(one, PostdateError)),
            broken=(*failed, *stuck, *misplaced, *_divided(answers), *broken_by(evidence, wanted)),
        )

    def _begun(self) -> int:
        return len(read_journal(self.folder).runs)

    def _due(self) -> int:
        """Return how many actions are due and in nobody's hands."""
        return self._count(lambda queue, now: and_(queue.c.lease_token.is_(None), queue.c.due_at <= now))

    def _lost(self) -> int:
        """Return how many leases have run out."""
        return self._count(lambda queue, now: queue.c.lease_until <= now)

    def _count(self, condition: Callable[[Table, datetime], ColumnElement[bool]]) -> int:
        with self.harness.kernel.transaction(None, read_only=True) as tx:
            queue = tx.tables.queue
            counted = select(func.count()).select_from(queue).where(condition(queue, self.harness.kernel.now(tx)))
            found: int = tx.execute(counted).scalar_one()
        return found

    def _until(self, condition: Callable[[], bool], *, within: float = _PATIENCE) -> bool:
        """Wait until the condition holds, and say whether it came to that in time."""
        given_up = monotonic() + within
        while not _holds(condition):
            if monotonic() > given_up or len(self.crew.failed) > _FAILURES:
                return False
            self.crew.tend()
            Event().wait(_A_LOOK)
        return True


def _holds(condition: Callable[[], bool]) -> bool:
    """Whether it holds; not while the database, which it asks, is away."""
    try:
        return condition()
    except DBAPIError as error:
        if passes(error):
            return False
        raise


def _divided(answers: list[list[Action | PostdateError]]) -> list[Broken]:
    """Return the requests that made two actions."""
    first, *others = answers
    return [
        Broken(rule="one request makes one action", told=f"{one.id} and {again.id}", action=again.id)
        for caller in others
        for one, again in zip(first, caller, strict=True)
        if isinstance(one, Action) and isinstance(again, Action) and one.id != again.id
    ]
