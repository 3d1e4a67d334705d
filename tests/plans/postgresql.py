"""Which plans did PostgreSQL run, and how much did they read?"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from psycopg.errors import Diagnostic
    from sqlalchemy import Connection

OBSERVE = """
load 'auto_explain';
set local auto_explain.log_min_duration = 0;
set local auto_explain.log_level = notice;
set local auto_explain.log_format = json;
set local auto_explain.log_nested_statements = on;
set local auto_explain.log_analyze = on;
set local auto_explain.log_buffers = on;
set local auto_explain.log_timing = off;
"""
"""What ran is what is looked at, the statements of triggers included: none is copied here, or explained again."""


@dataclass(frozen=True)
class Scan:
    """One node of a plan that reads a table or an index."""

    kind: str
    table: str | None
    index: str | None
    rows: float
    """All that it looked at, what it threw away included."""
    blocks: int

    def __str__(self) -> str:
        return f"{self.kind} on {self.table} by {self.index}: {self.rows:g} rows, {self.blocks} blocks"


@contextmanager
def observed(connection: Connection) -> Iterator[list[Scan]]:
    """Give the scans of all statements that run within, complete when it ends."""
    scans: list[Scan] = []
    driver: Any = connection.connection.driver_connection

    def hear(diagnostic: Diagnostic) -> None:
        _, found, plan = (diagnostic.message_primary or "").partition("plan:\n")
        if found:
            scans.extend(_scans(json.loads(plan)["Plan"]))

    connection.exec_driver_sql(OBSERVE)
    driver.add_notice_handler(hear)
    try:
        yield scans
        connection.exec_driver_sql("select 1")  # a statement is told of when the next one takes its place
    finally:
        driver.remove_notice_handler(hear)


def _scans(node: dict[str, Any]) -> Iterator[Scan]:
    below: Sequence[dict[str, Any]] = node.get("Plans", ())
    if "Scan" in node["Node Type"] and ("Relation Name" in node or "Index Name" in node):
        loops = node["Actual Loops"]
        read = node["Actual Rows"] + sum(node.get(f"Rows Removed by {what}", 0) for what in ("Filter", "Index Recheck"))
        blocks = node["Shared Hit Blocks"] + node["Shared Read Blocks"]
        yield Scan(node["Node Type"], node.get("Relation Name"), node.get("Index Name"), read * loops, blocks)
    for each in below:
        yield from _scans(each)
