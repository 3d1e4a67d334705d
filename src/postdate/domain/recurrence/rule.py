"""What can be asked of any rule, whichever form it was written in?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import islice
from typing import TYPE_CHECKING

from postdate.domain.instant import BEGINNING, END, utc
from postdate.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

MAX_PREVIEW = 1000


class Rule(ABC):
    """A recurrence: a frozen value that knows the instants (aware, UTC) at which it fires.

    Every answer is lazy, strictly rising and without repetition, and it ends: with the rule, with the calendar
    in the year 9999, or at once where the rule can never fire again.
    """

    def after(self, instant: datetime) -> Iterator[datetime]:
        """Return the instants later than `instant`. Raises `InvalidInstant` for a naive one."""
        return self._fired(utc(instant, field="after"), END)

    def between(self, lo: datetime, hi: datetime) -> Iterator[datetime]:
        """Return the instants later than `lo`, up to `hi` and that too.

        Windows that meet share no instant and miss none. Raises `InvalidInstant` for a naive end.
        """
        return self._fired(utc(lo, field="lo"), utc(hi, field="hi"))

    def preview(self, n: int, *, after: datetime | None = None) -> tuple[datetime, ...]:
        """Return the first `n` instants (at most 1000) later than `after`, or of all.

        Raises `Invalid` for another `n`, and `InvalidInstant` where a rule without a beginning is asked for its
        first.
        """
        if type(n) is not int or not 0 <= n <= MAX_PREVIEW:
            raise Invalid(field="n", rule=f"must be a whole number from 0 to {MAX_PREVIEW}", value=n)
        return tuple(islice(self._all() if after is None else self.after(after), n))

    def _all(self) -> Iterator[datetime]:
        return self._fired(BEGINNING, END)

    @abstractmethod
    def _fired(self, lo: datetime, hi: datetime) -> Iterator[datetime]:
        """Return the instants later than `lo`, up to `hi` and that too; both are in UTC."""

    @abstractmethod
    def describe(self) -> str:
        """Return the rule in English words."""

    @abstractmethod
    def dump(self) -> dict[str, object]:
        """Return the rule as a JSON object, of which `load` makes an equal rule."""
