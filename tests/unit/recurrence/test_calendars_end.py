"""Does a rule fire before its own start where that is near the end of the calendar?"""

from __future__ import annotations

import pytest

from postdate.domain.recurrence import rrule
from tests.unit.recurrence.cases import told


@pytest.mark.parametrize("tz", ["UTC", "America/New_York", "Pacific/Kiritimati"])
@pytest.mark.parametrize("freq", ["DAILY", "HOURLY", "MINUTELY", "SECONDLY", "HOURLY;COUNT=3", "HOURLY;BYMINUTE=0,30"])
@pytest.mark.parametrize("start", ["9999-12-29T20:00", "9999-12-30T12:00", "9999-12-31T12:00", "9999-12-31T23:59:59"])
def test_nothing_fires_before_the_start(start: str, freq: str, tz: str) -> None:
    """What steps by the clock ends two days before the calendar does; what steps by days, with it."""
    rule = rrule(f"FREQ={freq}", start=start, tz=tz)
    assert [early for early in told(rule.preview(5)) if early < _earliest(start)] == []


def _earliest(start: str) -> str:
    """Return an instant that no zone's clocks show later than the wall time: they are at most 14 hours ahead."""
    day = int(start[8:10])
    return f"9999-12-{day - 1:02}{start[10:]}"
