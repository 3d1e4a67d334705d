"""How many steps round the day until a slot is met?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from postdate.domain.recurrence.elapsed import _steps_to

if TYPE_CHECKING:
    from collections.abc import Callable


@st.composite
def rounds(draw: Callable[[st.SearchStrategy[int]], int]) -> tuple[int, int, int, tuple[int, int], int]:
    per_day = draw(st.integers(2, 60))
    first = draw(st.integers(0, per_day - 1))
    last = draw(st.integers(first, per_day - (2 if first == 0 else 1)))
    return per_day, draw(st.integers(0, per_day - 1)), draw(st.integers(1, 200)), (first, last), draw(st.integers(0, 1))


@settings(max_examples=500)
@given(rounds())
def test_as_many_as_trying_one_after_the_other_takes(asked: tuple[int, int, int, tuple[int, int], int]) -> None:
    per_day, slot, interval, (first, last), reach = asked
    named = {number % per_day for number in range(first - reach, last + 1)}
    tried = (steps for steps in range(1, per_day + 1) if (slot + steps * interval) % per_day in named)
    assert _steps_to([(first, last)], slot, interval, per_day, reach=reach) == next(tried, None)
