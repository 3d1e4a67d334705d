"""What does the reader of the demo see?"""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.text import Text

from postdate.clock import host_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from demo.delivery import Delivery
    from demo.ledger import Ledger
    from demo.verdict import Verdict

PROMPT = timedelta(milliseconds=100)
TOLERABLE = timedelta(seconds=1)


class Screen:
    """A terminal, where a line at the bottom counts along, or a file, which gets plain lines."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)

    def say(self, text: str = "", style: str = "") -> None:
        """Print a line as it is, however long: Rich would break it and read its brackets."""
        self._console.print(Text(text, style=style), soft_wrap=True)

    def command(self, arguments: Sequence[str]) -> None:
        """Show a command that the demo runs."""
        self.say(f"  $ postdate {shlex.join(arguments)}", style="cyan")

    def delivery(self, delivery: Delivery, *, due: datetime | None, asked_for: str = "") -> None:
        """Show what has arrived, when it was due if that is known, and the words it was scheduled with."""
        lateness = None if due is None else delivery.arrived - due
        line = Text(f"  {_clock(due)}  {_clock(delivery.arrived)}  ")
        line.append(f"{_ms(lateness):>10}", style=_colour(lateness))
        line.append(f"  {delivery.what}").append(f"  {asked_for}", style="dim")
        self._console.print(line, soft_wrap=True)

    @contextmanager
    def counting(self, ledger: Ledger) -> Iterator[None]:
        """Print the head of the table; on a terminal, say below it what is still to come."""
        self.say(f"\n  {'due':<12}  {'arrived':<12}  {'lateness':>10}", style="bold")
        if not self._console.is_terminal:
            yield
            return
        with Live(
            console=self._console, get_renderable=lambda: _progress(ledger), transient=True, refresh_per_second=10
        ):
            yield

    def verdict(self, verdict: Verdict) -> None:
        """Print the summary."""
        p50, p99, longest = (verdict.percentile(percent) for percent in (50, 99, 100))
        numbers = " · ".join(f"{name} {_ms(value)}" for name, value in (("p50", p50), ("p99", p99), ("max", longest)))
        self.say(
            f"\n  {verdict.sent} sent · {len(verdict.lost)} lost · {len(verdict.doubled)} doubled"
            f" · {len(verdict.early)} early · {len(verdict.late)} late · lateness {numbers}",
            style="bold green" if verdict.passed else "bold red",
        )
        for name in ("lost", "doubled", "early", "late"):
            if things := getattr(verdict, name):
                self.say(f"  {name}: {', '.join(things)}", style="red")


def _progress(ledger: Ledger) -> Text:
    waiting = ledger.waiting()
    text = f"\n  {len(ledger.rows) - len(waiting)} of {len(ledger.rows)} arrived"
    if waiting:
        seconds = (min(row.due for row in waiting) - host_time()).total_seconds()
        text += f", the next one is due in {max(seconds, 0):.1f} s"
    return Text(text, style="bold")


def _clock(instant: datetime | None) -> str:
    return f"{instant.astimezone():%H:%M:%S.%f}"[:12] if instant else f"{'-':12}"


def _ms(lateness: timedelta | None) -> str:
    return "-" if lateness is None else f"{lateness / timedelta(milliseconds=1):.1f} ms"


def _colour(lateness: timedelta | None) -> str:
    if lateness is None:
        return "dim"
    return "green" if lateness <= PROMPT else "yellow" if lateness <= TOLERABLE else "red"
