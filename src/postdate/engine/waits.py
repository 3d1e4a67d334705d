"""How long does the engine wait before it tries again what has failed?"""

from __future__ import annotations


class Waits:
    """Waits that double from `first` up to `longest`, in seconds."""

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._next = first
        self.count = 0
        """How often there was something to wait for since the last reset."""

    def next(self) -> float:
        """Return how many seconds to wait this time."""
        wait, self._next = self._next, min(self._next * 2, self._longest)
        self.count += 1
        return wait

    def reset(self) -> None:
        """Begin anew with the first wait: it went well."""
        self._next = self._first
        self.count = 0
