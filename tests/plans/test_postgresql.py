"""Do the hot statements stay on their indexes on PostgreSQL, whatever it knows or believes about the tables?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from postdate.store.names import Names
from postdate.store.transaction import Transaction
from tests.plans.conftest import Crowd, rolled_back
from tests.plans.postgresql import observed
from tests.plans.statements import BATCH, HANDFUL, STATEMENTS, Statement

if TYPE_CHECKING:
    from tests.plans.postgresql import Scan

FORGET = """
delete from pg_statistic where starelid in (select oid from pg_class where relnamespace = 'postdate'::regnamespace);
update pg_class set relpages = 0, relallvisible = 0, reltuples = case relkind when 'i' then 0 else {} end
where relnamespace = 'postdate'::regnamespace and relkind in ('r', 'i')
"""
STATISTICS = {
    "fresh": "select",
    "stale": "select",
    "none": FORGET.format(-1),  # as where nothing was ever analysed
    "emptied": FORGET.format(0),  # as where the tables were vacuumed while they were empty
}

INDEXED = {"Index Scan", "Index Only Scan", "Bitmap Index Scan", "Bitmap Heap Scan", "Tid Scan"}

MOST_ROWS = 3 * BATCH
"""What one scan may look at, all passes of a loop together; the tables hold 500 times as many as a batch."""

MOST_BLOCKS = 30 * BATCH


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)
@pytest.mark.parametrize("plans", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("statistics", STATISTICS)
def test_the_statement_reads_what_it_needs_by_its_index(
    postgres_crowd: Crowd, statistics: str, plans: str, statement: Statement
) -> None:
    with rolled_back(postgres_crowd.fresh if statistics == "fresh" else postgres_crowd.stale) as connection:
        connection.execute(text(STATISTICS[statistics]))
        connection.execute(text(f"set local plan_cache_mode = {plans}"))
        with observed(connection) as scans:
            statement.call(Transaction.on(connection, Names()))
    scans = [scan for scan in scans if not (scan.table or scan.index or "").startswith(HANDFUL)]
    assert {scan.kind for scan in scans if scan.rows > 1} <= INDEXED, told(scans)
    used = {scan.index for scan in scans} - {None}
    needed = statement.indexes | statement.by_triggers
    assert needed <= used <= needed | statement.either, told(scans)
    assert used & statement.either or not statement.either, told(scans)
    # the entries of a bitmap are counted with those that earlier statements left behind when they were rolled back
    assert all(scan.rows <= MOST_ROWS for scan in scans if scan.kind != "Bitmap Index Scan"), told(scans)
    assert all(scan.blocks <= MOST_BLOCKS for scan in scans), told(scans)


def told(scans: list[Scan]) -> str:
    return "\n".join(map(str, scans))
