"""Was each action delivered once, and at its time?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from demo.plan import Row

NEVER_EARLY = timedelta(milliseconds=-5)
"""postdate fires nothing early; the clock of the receiver may differ by this much."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of the rows; `lost` to `late` name the things concerned."""

    sent: int
    """How many arrived, each counted once."""
    lost: Sequence[str]
    doubled: Sequence[str]
    early: Sequence[str]
    late: Sequence[str]
    lateness: Sequence[timedelta]
    """Of the first arrival of each, the shortest first."""

    @property
    def passed(self) -> bool:
        """Whether everything arrived once and in time."""
        return not (self.lost or self.doubled or self.early or self.late)

    def percentile(self, percent: int) -> timedelta | None:
        """Return the lateness that `percent` of what arrived did not exceed (nearest rank)."""
        if not self.lateness:
            return None
        return self.lateness[max(math.ceil(len(self.lateness) * percent / 100) - 1, 0)]


def judge(rows: Sequence[Row], arrivals: Mapping[str, Sequence[datetime]], *, late_after: timedelta) -> Verdict:
    """Compare what was scheduled with what arrived, which is given by thing and in order."""
    first = {row.thing: arrivals[row.thing][0] - row.due for row in rows if arrivals.get(row.thing)}
    return Verdict(
        sent=len(first),
        lost=[row.thing for row in rows if row.thing not in first],
        doubled=[row.thing for row in rows if len(arrivals.get(row.thing, ())) > 1],
        early=[thing for thing, lateness in first.items() if lateness < NEVER_EARLY],
        late=[thing for thing, lateness in first.items() if lateness > late_after],
        lateness=sorted(first.values()),
    )
