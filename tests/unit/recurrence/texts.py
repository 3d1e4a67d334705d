"""Which rules might somebody write?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from postdate.domain.recurrence.parts import WEEKDAYS

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

DAYS_AND_MORE = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")


def _list(values: SearchStrategy[int] | SearchStrategy[str], most: int = 3) -> SearchStrategy[str]:
    return st.lists(values.map(str), min_size=1, max_size=most, unique=True).map(",".join)


def _signed(most: int) -> SearchStrategy[int]:
    return st.integers(-most, most).filter(bool)


PLAIN_DAYS = _list(st.sampled_from(WEEKDAYS), 5)
COUNTED_DAYS = _list(st.tuples(_signed(5), st.sampled_from(WEEKDAYS)).map(lambda day: f"{day[0]}{day[1]}"))
MIXED_DAYS = st.tuples(PLAIN_DAYS, COUNTED_DAYS).map(",".join)
CLOCK = {
    "BYHOUR": _list(st.integers(0, 23)),
    "BYMINUTE": _list(st.sampled_from([0, 15, 30, 59])),
    "BYSECOND": _list(st.sampled_from([0, 30])),
}
BY_DAY = {
    "DAILY": {"BYMONTHDAY": _list(_signed(31), 6), "BYDAY": PLAIN_DAYS},
    "WEEKLY": {"BYDAY": PLAIN_DAYS, "WKST": st.sampled_from(WEEKDAYS)},
    "MONTHLY": {"BYMONTHDAY": _list(_signed(31), 6), "BYDAY": PLAIN_DAYS | COUNTED_DAYS | MIXED_DAYS},
    "YEARLY": {
        "BYMONTHDAY": _list(_signed(31), 6),
        "BYDAY": PLAIN_DAYS | COUNTED_DAYS | MIXED_DAYS,
        "BYYEARDAY": _list(_signed(366), 6),
        "BYWEEKNO": _list(_signed(53), 6),
        "WKST": st.sampled_from(WEEKDAYS),
    },
}
BY_CLOCK = {
    "HOURLY": {"BYMONTHDAY": _list(_signed(31), 6), "BYDAY": PLAIN_DAYS, "BYYEARDAY": _list(_signed(366), 6)},
    "MINUTELY": {"BYMONTHDAY": _list(_signed(31), 6), "BYDAY": PLAIN_DAYS},
    "SECONDLY": {"BYDAY": PLAIN_DAYS},
}


@st.composite
def texts_by_day(draw: DrawFn) -> str:
    """Return a rule that repeats by days or more, whose parts go together."""
    freq = draw(st.sampled_from(DAYS_AND_MORE))
    text = _text(draw, freq, BY_DAY[freq])
    return f"{text};INTERVAL={draw(st.integers(2, 6))}" if draw(st.booleans()) else text


@st.composite
def texts_by_clock(draw: DrawFn) -> str:
    """Return a rule that repeats by hours or less, whose parts go together."""
    freq = draw(st.sampled_from(sorted(BY_CLOCK)))
    intervals = {"HOURLY": st.integers(2, 50), "MINUTELY": st.integers(45, 3000), "SECONDLY": st.integers(1799, 90_000)}
    return f"{_text(draw, freq, BY_CLOCK[freq])};INTERVAL={draw(intervals[freq])}"


def _text(draw: DrawFn, freq: str, possible: dict[str, SearchStrategy[str]]) -> str:
    possible = {"BYMONTH": _list(st.integers(1, 12), 6), **possible, **CLOCK}
    names = draw(st.lists(st.sampled_from(sorted(possible)), max_size=4, unique=True))
    given = {name: draw(possible[name]) for name in names}
    if "BYWEEKNO" in given and "BYDAY" in given:
        given["BYDAY"] = draw(PLAIN_DAYS)
    if any(name.startswith("BY") for name in given) and draw(st.booleans()):
        given["BYSETPOS"] = draw(_list(_signed(4)))
    if draw(st.integers(0, 3)) == 0:
        given["COUNT"] = str(draw(st.integers(1, 60)))
    return ";".join([f"FREQ={freq}", *(f"{name}={value}" for name, value in given.items())])
