"""What can be measured, and with how many actions?"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

from postdate.bench.drain import drain_figures, memory_figures
from postdate.bench.enqueue import enqueue_figures
from postdate.bench.expand import expand_figures
from postdate.bench.lateness import lateness_figures
from postdate.bench.place import Kind, place
from postdate.bench.reconcile import reconcile_figures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from postdate.bench.figure import Figure


class What(StrEnum):
    """What to measure."""

    DRAIN = "drain"
    ENQUEUE = "enqueue"
    EXPAND = "expand"
    LATENESS = "lateness"
    MEMORY = "memory"
    RECONCILE = "reconcile"


ROWS = {
    What.DRAIN: 20_000,
    What.ENQUEUE: 20_000,
    What.EXPAND: 10_000,
    What.LATENESS: 30,
    What.MEMORY: 100_000,
    What.RECONCILE: 50_000,
}
"""How many each takes by default: actions, rules, desired rows, or seconds of lateness."""


def measure(
    what: What,
    *,
    rows: int | None = None,
    rounds: int = 5,
    processes: int = 2,
    database_url: str | None = None,
    kind: Kind = "postgresql",
) -> Iterator[Figure]:
    """Measure, and yield each figure once it is known.

    `database_url` names the database to measure on; without one it is made for the purpose, of `kind`. Raises
    `Misconfigured`, and `MeasurementFailed` where what was measured did not do its work.
    """
    rows = rows or ROWS[what]
    with place(database_url, kind) as here:
        match what:
            case What.DRAIN:
                yield from drain_figures(here, rows=rows, rounds=rounds, processes=processes)
            case What.ENQUEUE:
                yield from enqueue_figures(here, rows=rows)
            case What.EXPAND:
                yield from expand_figures(here, rows=rows, rounds=rounds)
            case What.LATENESS:
                yield from lateness_figures(here, rows=rows)
            case What.MEMORY:
                yield from memory_figures(here, rows=rows)
            case What.RECONCILE:
                yield from reconcile_figures(here, rows=rows)
            case _:
                assert_never(what)
