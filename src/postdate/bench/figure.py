"""What does one measurement say, and is that good enough?"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

from postdate.errors import PostdateError

if TYPE_CHECKING:
    from collections.abc import Sequence


class MeasurementFailed(PostdateError):
    """What was measured did not do its work, so that its speed says nothing."""


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A goal: the ratio must be at least `limit`, or the value at most."""

    of: Literal["ratio", "value"]
    limit: float

    def __str__(self) -> str:
        """Return it as a formula."""
        return f"{self.of} {'>=' if self.of == 'ratio' else '<='} {self.limit:g}"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measurement: the median of its rounds."""

    name: str
    value: float
    unit: str
    raw: float | None = None
    """The same, of what it is compared with."""
    ratio: float | None = None
    """The median of the rounds' own ratios: what the machine did meanwhile touched both sides of each."""
    goal: Bound | None = None

    @property
    def ok(self) -> bool | None:
        """Whether the goal is reached; None where there is none."""
        match self.goal:
            case None:
                return None
            case Bound(of="value", limit=limit):
                return self.value <= limit
            case Bound(limit=limit):
                return self.ratio is not None and self.ratio >= limit


def compared(name: str, ours: Sequence[float], raw: Sequence[float], *, unit: str, goal: Bound | None) -> Figure:
    """Return the figure of what was measured in turns with what it is compared with, round by round."""
    return Figure(
        name=name,
        value=median(ours),
        unit=unit,
        raw=median(raw),
        ratio=median(one / other for one, other in zip(ours, raw, strict=True)),
        goal=goal,
    )
