"""When is a run that sent nothing tried again?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """Exponential back-off: `first * factor ** (attempt - 1)`, at most `longest`, spread by `spread`."""

    first: timedelta = timedelta(seconds=30)
    factor: float = 4.0
    longest: timedelta = timedelta(hours=1)
    spread: float = 0.2
    """The part of the wait that jitter may take away or add: 0.2 means 80 to 120 per cent."""

    def wait(self, attempt: int, *, jitter: float, retry_after: timedelta | None = None) -> timedelta:
        """Return how long to wait after attempt number `attempt` (from 1) sent nothing.

        `jitter` is a number from 0 to 1, drawn by the caller. A provider's `retry_after` is never undercut.
        """
        steps = min(max(attempt, 1) - 1, 64)  # beyond this every sensible wait has reached `longest`
        plain = min(self.first.total_seconds() * self.factor**steps, self.longest.total_seconds())
        spread = timedelta(seconds=plain * (1 + self.spread * (2 * jitter - 1)))
        return max(spread, retry_after or timedelta(0))
