"""Does an app of yours keep its promises while its workers are killed, stopped and cut off from the database?

`chaos("shop:app", url, requests)` starts worker processes on a scratch database, lets them fire what you ask for, hurts
them, lets everything come to its end, and holds what happened against rules that must hold whatever happens.
"""

from __future__ import annotations

from postdate.testing.chaos.faults import Fault, Planned, plan
from postdate.testing.chaos.invariants import Broken
from postdate.testing.chaos.scenario import ChaosReport, chaos

__all__ = ["Broken", "ChaosReport", "Fault", "Planned", "chaos", "plan"]
