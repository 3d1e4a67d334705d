"""How good is good enough?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postdate.bench.figure import Bound

if TYPE_CHECKING:
    from postdate.bench.place import Kind

_GOALS: dict[Kind, dict[str, Bound]] = {
    "postgresql": {
        "drain": Bound(of="ratio", limit=0.65),
        "drain_batch_1000": Bound(of="ratio", limit=0.8),
        "drain_batch_2000": Bound(of="ratio", limit=0.8),
        "drain_2": Bound(of="ratio", limit=1.25),
        "schedule_many": Bound(of="ratio", limit=0.7),
        "schedule": Bound(of="ratio", limit=0.6),
        "expand_old": Bound(of="ratio", limit=10),
        "expand_fresh": Bound(of="ratio", limit=2),
        "materialise": Bound(of="ratio", limit=0.6),
        "lateness_p50": Bound(of="value", limit=5),
        "lateness_p99": Bound(of="value", limit=50),
        "lateness_busy_p99": Bound(of="value", limit=100),
        "memory": Bound(of="value", limit=200),
        "reconcile_idle": Bound(of="value", limit=3),
        "reconcile_changes": Bound(of="value", limit=10),
        "reconcile_memory": Bound(of="value", limit=150),
    },
    "sqlite": {
        "drain": Bound(of="ratio", limit=0.5),
    },
}


def goal(kind: Kind, name: str) -> Bound | None:
    """Return the goal of a figure; None where it has none."""
    return _GOALS[kind].get(name)
