"""What time is it? The only reader of time."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

from postdate.errors import ClockUnset

TRUSTED_FOR = timedelta(seconds=60)
"""How long a reading of the database's time is counted on from before it is asked again."""


_BOOT_TIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)
"""Where the host has a clock that goes on while it is suspended."""


class Clock(Protocol):
    """Tells UTC. Set from the database's time, so that all processes agree."""

    @property
    def leaps(self) -> bool:
        """Whether it is moved by hand, so that a long gap tells nothing about the database."""

    @property
    def is_stale(self) -> bool:
        """Whether the database should be asked again before `now`."""

    def set(self, database_time: datetime) -> None:
        """Take over the time that the database has just answered."""

    def now(self) -> datetime:
        """Return the time (UTC). Raises `ClockUnset` before the first `set`."""


class SystemClock:
    """The database's time, counted on with a clock that nobody sets: untouched by steps of this host's clock.

    Never ahead of the database, behind it by at most the round trip of the last `set`.
    """

    leaps = False

    def __init__(self) -> None:
        """Start unset."""
        self._set: tuple[datetime, float] | None = None
        """What was answered, and when: replaced as one, so that no thread sees half of it."""

    @property
    def is_stale(self) -> bool:
        """Whether a minute has gone by since the database was asked."""
        reading = self._set
        return reading is None or monotonic() - reading[1] >= TRUSTED_FOR.total_seconds()

    def set(self, database_time: datetime) -> None:
        """Count on from `database_time`, read just now."""
        self._set = (database_time, monotonic())

    def now(self) -> datetime:
        """Return the database's time."""
        reading = self._set
        if reading is None:
            raise ClockUnset
        read, at = reading
        return read + timedelta(seconds=monotonic() - at)


class ManualClock:
    """A clock that moves only when a test moves it."""

    def __init__(self, now: datetime, *, leaps: bool = True) -> None:
        """Stand at `now` (aware). With `leaps=False` a long gap tells of a restored backup, as by a real clock."""
        self.leaps = leaps
        self._now = now.astimezone(UTC)

    is_stale = False

    def set(self, database_time: datetime) -> None:
        """Ignore the database: the test says what time it is."""

    def now(self) -> datetime:
        """Return where the clock stands."""
        return self._now

    def advance(self, by: timedelta) -> datetime:
        """Move by `by`, forward or back, and return the new time."""
        self._now += by
        return self._now

    def move_to(self, instant: datetime) -> datetime:
        """Stand at `instant` (aware) and return it."""
        self._now = instant.astimezone(UTC)
        return self._now


def host_time() -> datetime:
    """Return this host's time, which is also the time of a SQLite database."""
    return datetime.now(UTC)


def monotonic() -> float:
    """Return seconds that only ever rise, and on Linux go on while the host is suspended."""
    return time.monotonic() if _BOOT_TIME is None else time.clock_gettime(_BOOT_TIME)
