"""Do the promises hold while workers are killed, stopped and cut off, and does the harness tell where they do not?"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest
from sqlalchemy import delete, insert

from postdate import Context, Invalid, Misconfigured, NewAction, Postdate, Reason, Status
from postdate.testing.chaos import Fault, chaos, plan
from postdate.testing.chaos.invariants import Evidence, broken_by, everything
from postdate.testing.chaos.journal import CUT, Journal, JournalWriter, Run, read_journal
from postdate.testing.postgres import LocalPostgres
from postdate.testing.runs import ACTION_ID, submitted_action
from tests.databases import LOCAL
from tests.surfaces.testing import chaos_shop

if TYPE_CHECKING:
    from collections.abc import Iterable

SHOP = "tests.surfaces.testing.chaos_shop:app"
TYPES = ("post", "repeatable", "askable", "unlucky")
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
HEALTHY, HURT = 1, 2
"""Workers."""


pytestmark = pytest.mark.timeout(300)  # a dozen processes start one after the other, which a busy machine draws out


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])  # where the workers look for the app


def requests(count: int) -> list[NewAction]:
    return [
        NewAction(action_type=TYPES[n % len(TYPES)], payload={"thing_id": f"thing-{n}"}, at=LONG_AGO)
        for n in range(count)
    ]


def test_on_sqlite_every_promise_holds(sqlite_url: str) -> None:
    report = chaos(SHOP, sqlite_url, requests(24), seed=5, workers=2)
    assert report.sound, str(report)
    assert {one.fault for one in report.faults} == {Fault.KILL, Fault.STOP, Fault.CLOCK_STEP}
    assert report.counts.total() == 24
    assert report.runs >= 24


@pytest.mark.skipif(not LOCAL, reason="there is no PostgreSQL on this machine that may be restarted")
def test_on_postgresql_every_promise_holds_though_the_server_restarts() -> None:
    with LocalPostgres(fsync=False) as server:
        url = server.create_database("scratch")
        report = chaos(SHOP, url, requests(24), seed=6, workers=2, restart=server.restart)
    assert report.sound, str(report)
    assert {one.fault for one in report.faults} == set(Fault) - {Fault.DOUBLE_DELIVERY}
    assert report.counts.total() == 24


def test_an_app_that_breaks_a_promise_is_found_out(sqlite_url: str) -> None:
    request = NewAction(action_type="post", payload={"database_url": sqlite_url}, at=LONG_AGO)
    report = chaos("tests.surfaces.testing.meddling_shop:app", sqlite_url, [request], workers=2, faults=())
    assert {one.rule for one in report.broken} == {"nothing is run twice"}
    assert "BROKEN: nothing is run twice" in str(report)


def test_workers_that_cannot_even_start_are_told_and_not_waited_for(sqlite_url: str) -> None:
    request = NewAction(action_type="post", payload={}, at=LONG_AGO)
    report = chaos("tests.surfaces.testing.meddling_shop:unable", sqlite_url, [request], workers=2, faults=())
    assert {"no worker ends by itself", "what is due is fired"} <= {one.rule for one in report.broken}
    assert "post needs SHOP_URL" in str(report)


def test_the_same_seed_plans_the_same_faults_each_once_and_early_enough_to_hurt() -> None:
    plans = [plan(tuple(Fault), runs=100, seed=seed) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]
    for planned in plans:
        assert sorted(one.fault for one in planned) == sorted(set(Fault) - {Fault.DOUBLE_DELIVERY})
        moments = [one.after_runs for one in planned]
        assert moments == sorted(moments)
        assert set(moments) <= set(range(1, 76))


def test_what_cannot_be_done_is_refused(sqlite_url: str) -> None:
    with pytest.raises(Invalid, match="restart"):
        chaos(SHOP, sqlite_url, [], faults=[Fault.RESTART])
    with pytest.raises(Misconfigured, match="module:app"):
        chaos("tests.surfaces.testing.chaos_shop:found", sqlite_url, [])


def test_a_line_over_which_a_worker_was_killed_is_left_out(tmp_path: Path) -> None:
    action = submitted_action(chaos_shop.app.kernel.registry["post"], {})
    ctx = Context(action=action, now=LONG_AGO, deadline=LONG_AGO, http=None)  # type: ignore[arg-type]  # nothing is sent
    JournalWriter(tmp_path).answered(ctx, "Published")
    (file,) = tmp_path.glob("*.jsonl")
    file.write_text(file.read_text() + '{"line": "began", "ru')
    assert read_journal(tmp_path) == Journal(answers={ACTION_ID: {"Published"}})


def run(outcome: str | None, *, attempt: int = 1, worker: int = HEALTHY, early: bool = False, at: float = 0) -> Run:
    return Run(
        action=ACTION_ID,
        action_type="post",
        attempt=attempt,
        worker=worker,
        began=at + attempt,
        early=early,
        outcome=outcome,
    )


def rules(
    runs: Iterable[Run],
    status: Status,
    reason: Reason | None = None,
    *,
    action_type: str = "post",
    answers: set[str] | None = None,
    outage_until: float | None = None,
) -> set[str]:
    known = chaos_shop.app.kernel.registry[action_type]
    action = replace(submitted_action(known, {}), status=status, reason=reason)
    evidence = Evidence(
        actions={ACTION_ID: action},
        journal=Journal(runs=list(runs), answers={ACTION_ID: answers or set()}),
        registry=chaos_shop.app.kernel.registry,
        hurt={HURT},
        outage_until=outage_until,
    )
    return {broken.rule for broken in broken_by(evidence, {ACTION_ID})}


PUBLISHED, FAILED, UNCONFIRMED = Status.PUBLISHED, Status.FAILED, Reason.UNCONFIRMED
TWICE, DOUBT = {"nothing is run twice"}, {"unconfirmed is only what was cut off in mid-call"}


def test_a_run_may_be_repeated_only_where_that_is_safe() -> None:
    second = run("Published", attempt=2)
    assert rules([run("Published"), second], PUBLISHED) == TWICE
    assert rules([run(None, worker=HURT), second], PUBLISHED) == TWICE
    assert rules([run("NotSent"), second], PUBLISHED) == set()
    assert rules([run("Deferred"), run("Published", at=1)], PUBLISHED) == set()
    assert rules([run(None, worker=HURT), second], PUBLISHED, action_type="repeatable") == set()
    assert rules([run(None, worker=HURT), second], PUBLISHED, answers={"NotSent"}) == set()


def test_a_doubt_needs_somebody_who_was_hurt() -> None:
    assert rules([run("Published")], FAILED, UNCONFIRMED) == DOUBT
    assert rules([run(None)], FAILED, UNCONFIRMED) == DOUBT
    assert rules([run("Published", worker=HURT)], FAILED, UNCONFIRMED) == set()
    assert rules([run("Unconfirmed")], FAILED, UNCONFIRMED) == set()
    assert rules([run(CUT)], FAILED, UNCONFIRMED) == set()
    assert rules([run("Published")], FAILED, UNCONFIRMED, outage_until=5) == set()
    assert rules([run("Published", at=5)], FAILED, UNCONFIRMED, outage_until=5) == DOUBT


def test_whatever_else_is_wrong_is_told() -> None:
    assert rules([run("Published", early=True)], PUBLISHED) == {"nothing is early"}
    assert rules([run("NotSent"), run("Published", at=1)], PUBLISHED) == {"every run is an attempt of its own"}
    assert rules([run("NotSent")], PUBLISHED) == {"what is published was run"}
    assert rules([], PUBLISHED, answers={"Published"}) == set()
    assert rules([run("NotSent")], Status.QUEUED) == {"every action ends"}
    nothing = Evidence(
        actions={}, journal=Journal(), registry=chaos_shop.app.kernel.registry, hurt=set(), outage_until=None
    )
    assert {broken.rule for broken in broken_by(nothing, {ACTION_ID})} == {"no action is lost"}


def test_an_action_that_is_nowhere_or_that_nobody_asked_for_is_told(sqlite_url: str) -> None:
    app = Postdate(sqlite_url)
    app.action("act")(lambda ctx, payload: None)
    kept, lost = (app.sync.schedule("act", {}, at=LONG_AGO) for _ in range(2))
    stray = uuid4()
    with app.kernel.transaction(None) as tx:
        q = tx.tables.queue
        tx.execute(delete(q).where(q.c.action_id == lost.id))
        due = {"due_at": LONG_AGO, "attempt_count": 0}
        tx.execute(insert(q).values(action_id=stray, action_type="act", user_id=UUID(int=0), **due))
        actions, broken = everything(tx)
    assert set(actions) >= {kept.id}
    assert {(one.action, one.told) for one in broken} >= {(lost.id, "in 0: "), (stray, "nobody asked for it")}
    app.kernel.database.close_sync()
