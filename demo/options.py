"""What can the reader choose?"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_ROWS = 5000
MOST_SECONDS = 3600.0


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of `python3 run.py demo`."""

    leave: bool
    """Whether to end when everything has arrived."""
    postgres: bool
    seconds: float
    """Over how many seconds the actions are spread."""
    rows: int
    late_after: timedelta


def read(arguments: Sequence[str] | None = None) -> Options:
    """Read the command line. Ends the program with a usage message where it makes no sense."""
    parser = argparse.ArgumentParser(
        prog="run.py demo",
        description="Schedule e-mails and webhooks over the next seconds and watch them arrive, each of them once.",
    )
    parser.add_argument("--exit", action="store_true", help="end when all have arrived; fail if one was lost or late")
    parser.add_argument("--postgres", action="store_true", help="on a PostgreSQL server of its own instead of SQLite")
    parser.add_argument("--seconds", type=_seconds, default=20.0, help="spread them over so many seconds (20)")
    parser.add_argument("--rows", type=_rows, default=40, help="how many there are (40)")
    parser.add_argument("--late-after", type=_seconds, default=1.0, help="what is late, in seconds (1)")
    chosen = parser.parse_args(arguments)
    return Options(
        leave=chosen.exit,
        postgres=chosen.postgres,
        seconds=chosen.seconds,
        rows=chosen.rows,
        late_after=timedelta(seconds=chosen.late_after),
    )


def _seconds(text: str) -> float:
    number = float(text)
    if not math.isfinite(number) or not 0 < number <= MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"must be more than 0 and at most {MOST_SECONDS:g}")
    return number


def _rows(text: str) -> int:
    number = int(text)
    if not 1 <= number <= MOST_ROWS:
        raise argparse.ArgumentTypeError(f"must be from 1 to {MOST_ROWS}")
    return number
