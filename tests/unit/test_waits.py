"""Do waits grow, no further than they may, and begin anew?"""

from __future__ import annotations

from postdate.engine.waits import Waits


def test_waits_double_up_to_the_longest_and_begin_anew_after_a_reset() -> None:
    waits = Waits(1.0, 5.0)
    assert [waits.next() for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert waits.count == 5
    waits.reset()
    assert (waits.count, waits.next(), waits.next()) == (0, 1.0, 2.0)
