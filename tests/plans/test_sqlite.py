"""Do the hot statements stay on their indexes on SQLite, with statistics and without?"""

from __future__ import annotations

import re

import pytest
from sqlalchemy import text

from postdate.store.names import Names
from postdate.store.transaction import Transaction
from tests.plans.conftest import rolled_back
from tests.plans.crowd import FILL
from tests.plans.sqlite import observed
from tests.plans.statements import HANDFUL, STATEMENTS, Statement

STATISTICS = {"fresh": "select 1", "none": "delete from sqlite_stat1"}
CONSTRAINTS = ("_pkey", "_key", "_overlap")
"""How indexes end that SQLite names in its own way, since they belong to constraints."""

GLANCED_AT = "quiet_hours"
"""Of which one row is enough, where it is not searched."""

MOST_INSTRUCTIONS = 400_000
"""Looking through one of the tables takes at least six for each of its rows."""


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)
@pytest.mark.parametrize("statistics", STATISTICS)
def test_the_statement_searches_by_its_index(sqlite_crowd: str, statistics: str, statement: Statement) -> None:
    with rolled_back(sqlite_crowd) as connection:
        connection.execute(text(STATISTICS[statistics]))
        connection.execute(text("analyze sqlite_schema"))  # reads the statistics anew
        with observed(connection) as seen:
            statement.call(Transaction.on(connection, Names()))
    plan = "\n".join(seen.lines)
    # a partial index may be read as a whole: it holds what is wanted
    scanned = {
        table
        for table, index in re.findall(r"^SCAN (\w+)(?: USING INDEX (\w+))?", plan, re.MULTILINE)
        if index not in statement.indexes
    }
    assert scanned.isdisjoint(FILL.keys() - {*HANDFUL, GLANCED_AT}), plan
    named = {index for index in statement.indexes if not index.endswith(CONSTRAINTS)}
    assert named <= set(re.findall(r"INDEX (\w+)", plan)), plan
    assert seen.instructions <= MOST_INSTRUCTIONS, plan
