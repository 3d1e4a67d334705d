"""Which row does a delivery belong to, and what is still to come?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from demo.verdict import judge

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from demo.delivery import Delivery
    from demo.plan import Row
    from demo.verdict import Verdict


class Ledger:
    """The rows of the plan, and when each of them arrived."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self._rows = {row.thing: row for row in rows}
        self._arrivals: dict[str, list[datetime]] = {row.thing: [] for row in rows}

    def note(self, delivery: Delivery) -> Row | None:
        """Write down a delivery and return its row; None where it belongs to none."""
        row = self._rows.get(delivery.thing)
        if row is not None:
            self._arrivals[row.thing].append(delivery.arrived)
        return row

    def waiting(self) -> list[Row]:
        """Return the rows of which nothing has arrived yet."""
        return [row for row in self.rows if not self._arrivals[row.thing]]

    def verdict(self, *, late_after: timedelta) -> Verdict:
        """Return what has become of the rows so far."""
        return judge(self.rows, self._arrivals, late_after=late_after)
