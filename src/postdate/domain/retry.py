"""When is a run that sent nothing tried again?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from postdate.errors import Invalid

LONGEST_WAIT = timedelta(days=366)
"""No wait is longer, whoever asks for it."""


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """Exponential back-off: `first * factor ** (attempt - 1)`, at most `longest`, spread by `spread`."""

    first: timedelta = timedelta(seconds=30)
    factor: float = 4.0
    longest: timedelta = timedelta(hours=1)
    spread: float = 0.2
    """The part of the wait that jitter may take away or add: 0.2 means 80 to 120 per cent."""

    def __post_init__(self) -> None:
        """Refuse waits that would shrink, or end beyond the calendar."""
        if not timedelta(0) <= self.first <= self.longest <= LONGEST_WAIT:
            raise Invalid(
                field="backoff", rule=f"must keep 0 <= first <= longest <= {LONGEST_WAIT.days} days", value=self
            )
        if not 1 <= self.factor < float("inf"):
            raise Invalid(field="backoff.factor", rule="must be at least 1", value=self.factor)
        if not 0 <= self.spread <= 1:
            raise Invalid(field="backoff.spread", rule="must be 0 to 1", value=self.spread)

    def wait(self, attempt: int, *, jitter: float, retry_after: timedelta | None = None) -> timedelta:
        """Return how long to wait after attempt number `attempt` (from 1) sent nothing.

        `jitter` is a number from 0 to 1, drawn by the caller. A provider's `retry_after` is never undercut.
        """
        steps = min(max(attempt, 1) - 1, 64)  # beyond this every sensible wait has reached `longest`
        try:
            grown = self.first.total_seconds() * self.factor**steps
        except OverflowError:
            grown = self.longest.total_seconds()
        plain = min(grown, self.longest.total_seconds())
        jittered = timedelta(seconds=plain * (1 + self.spread * (2 * jitter - 1)))
        return max(jittered, retry_after or timedelta(0))
