"""Does a settle see what was committed between its look at the rows and its locks on them?

Only PostgreSQL lets anybody in between. A policy on the queue's rows, which waits at a gate, holds that moment open.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from sqlalchemy import select, text, update

from postdate import NotSent
from tests.races.racing import A_WHILE
from tests.races.stage import NOON, PUBLISHED, REJECTED, Stage, things

if TYPE_CHECKING:
    from collections.abc import Iterator

    from postdate.domain.action import Claimed
    from postdate.domain.outcome import Outcome

AT_THE_GATE = "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'advisory'"

GATE = """
create function postdate.pass_gate() returns boolean language plpgsql
    as 'begin perform pg_advisory_xact_lock_shared(1); return true; end';
create role {role};
grant usage on schema postdate to {role};
grant all on all tables in schema postdate to {role};
grant all on all sequences in schema postdate to {role};
create policy gate on postdate.queue to {role} using (postdate.pass_gate());
alter table postdate.queue enable row level security
"""


@pytest.fixture
def gated(postgres_stage: Stage) -> Iterator[str]:
    """A role whose every look at a row of the queue waits until the gate is open."""
    role = f"gated_{uuid4().hex}"
    with postgres_stage.app.kernel.transaction(None) as tx:
        for statement in GATE.format(role=role).split(";\n"):
            tx.execute(text(statement.strip().rstrip(";")))
    yield role
    with postgres_stage.app.kernel.transaction(None) as tx:
        tx.execute(text(f"drop owned by {role}"))
        tx.execute(text(f"drop role {role}"))


@contextmanager
def settling(stage: Stage, role: str, claimed: list[Claimed], outcome: Outcome) -> Iterator[list[frozenset[object]]]:
    """Settle beside the block, which runs when the settle has looked and has not locked yet; yield who has won."""
    won: list[frozenset[object]] = []

    def settle() -> None:
        with stage.app.kernel.transaction(None) as tx:
            tx.execute(text(f"set local role {role}"))
            won.append(stage.settle(tx, claimed, outcome))

    engine = stage.app.kernel.database.sync_engine
    with ThreadPoolExecutor(1) as thread, engine.connect() as gate:
        gate.execute(text("select pg_advisory_lock(1)"))
        running = thread.submit(settle)
        try:
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as view:
                while not view.scalar(text(AT_THE_GATE)) and not running.done():
                    pass
            yield won
        finally:
            gate.execute(text("select pg_advisory_unlock(1)"))
            running.result(A_WHILE)


@pytest.mark.parametrize("outcome", [PUBLISHED, REJECTED, NotSent("busy")])
def test_a_lease_that_is_taken_over_in_between_is_lost(postgres_stage: Stage, gated: str, outcome: Outcome) -> None:
    """P58, P60: the row that is locked is not the one that was seen."""
    stage = postgres_stage
    claimed = stage.running(things(2))
    taken_over, kept = claimed[0].action.id, claimed[1].action.id
    new = uuid4()
    with settling(stage, gated, claimed, outcome) as won, stage.app.kernel.transaction(None) as tx:
        q = tx.tables.queue
        later = NOON + timedelta(hours=1)
        tx.execute(update(q).where(q.c.action_id == taken_over).values(lease_token=new, lease_until=later))
    assert won == [frozenset({kept})]
    with stage.app.kernel.transaction(None) as tx:
        q = tx.tables.queue
        assert tx.execute(select(q.c.lease_token).where(q.c.action_id == taken_over)).scalar_one() == new
    stage.assert_sound()


def test_a_claim_that_is_settled_in_between_is_settled_once(postgres_stage: Stage, gated: str) -> None:
    """P58: two settles of one row, of which the second has seen what the first was about to take."""
    stage = postgres_stage
    claimed = stage.running(things(2))
    with settling(stage, gated, claimed, PUBLISHED) as won, stage.app.kernel.transaction(None) as tx:
        stage.settle(tx, claimed[:1], PUBLISHED)
    assert won == [frozenset({claimed[1].action.id})]
    stage.assert_sound()
