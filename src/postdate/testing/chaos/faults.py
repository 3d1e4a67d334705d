"""What goes wrong, and when?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

CLOCK_STEPS = (-300, 300)
"""By how many seconds a worker's clock is stepped."""


class Fault(StrEnum):
    """What can be done to workers and their database."""

    KILL = "kill"
    """kill -9 of the worker that has just begun a run."""
    STOP = "stop"
    """SIGSTOP of the worker that has just begun a run until its lease is over and another has recovered it."""
    CLOCK_STEP = "clock step"
    """The worker's clock is five minutes off from now on, ahead or behind."""
    DOUBLE_DELIVERY = "double delivery"
    """Every request to schedule is made twice at the same moment."""
    DISCONNECT = "disconnect"
    """Every connection of every worker breaks, in the middle of whatever it was about (PostgreSQL)."""
    TERMINATE = "terminate"
    """The server ends every session of the database (PostgreSQL)."""
    RESTART = "restart"
    """The server is restarted, where a way to do so is given."""


OF_SERVERS = frozenset({Fault.DISCONNECT, Fault.TERMINATE, Fault.RESTART})
"""What only a database server can suffer."""


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A fault, and after how many begun runs it comes; `step` is what a clock is moved by, in seconds."""

    fault: Fault
    after_runs: int
    step: int = 0


def plan(faults: Sequence[Fault], *, runs: int, seed: int) -> tuple[Planned, ...]:
    """Return when each fault comes, within the first three quarters of the runs: the same for the same seed."""
    random = Random(seed)  # noqa: S311 - a seed is what makes it repeatable
    sudden = [fault for fault in faults if fault is not Fault.DOUBLE_DELIVERY]
    order = random.sample(sudden, len(sudden))
    moments = sorted(random.randint(1, max(runs * 3 // 4, 1)) for _ in order)
    return tuple(
        Planned(
            fault=fault,
            after_runs=moment,
            step=random.choice(CLOCK_STEPS) if fault is Fault.CLOCK_STEP else 0,
        )
        for fault, moment in zip(order, moments, strict=True)
    )
