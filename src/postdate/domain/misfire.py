"""What becomes of a repetition that did not run in its time, because nothing ran at all?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Literal, assert_never

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

Misfire = Literal["skip", "once", "all"]
"""None of the missed repetitions runs, or the latest of them, or each."""

DEFAULT_GRACE = timedelta(hours=1)
"""How late a repetition may begin without having been missed."""


def runs_late(misfire: Misfire, *, late: timedelta, grace: timedelta, superseded: bool) -> bool:
    """Whether a repetition runs that begins late by so much; `superseded` where a later one of its rule is due too.

    Within the grace it runs under every policy.
    """
    if late <= grace:
        return True
    match misfire:
        case "skip":
            return False
        case "once":
            return not superseded
        case "all":
            return True
        case _:
            assert_never(misfire)


def split(
    past: Sequence[datetime], misfire: Misfire, *, now: datetime, grace: timedelta
) -> tuple[list[datetime], list[datetime]]:
    """Return which of these instants, rising and none after `now`, still run, and which were missed for good."""
    runs: list[datetime] = []
    missed: list[datetime] = []
    for instant in past:
        late = runs_late(misfire, late=now - instant, grace=grace, superseded=instant != past[-1])
        (runs if late else missed).append(instant)
    return runs, missed
