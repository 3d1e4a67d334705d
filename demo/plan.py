"""What is going to be scheduled, and when is each of it due?"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from pathlib import Path

# Five, so that e-mails and webhooks, which take turns, meet every one of them. These zones never change their
# clocks: a wall time in them names one instant, whenever the demo runs. None stands for an instant.
ZONES = ("Asia/Tokyo", None, "Asia/Kolkata", "America/Phoenix", None)
PEOPLE = ("Ana", "Bjarne", "Chiara", "Dmitri", "Emeka", "Fatima", "Grace")
COLUMNS = ("type", "at", "tz", "thing", "to", "subject", "text", "url")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One action of the demo: its line of the CSV, and what to expect of it."""

    thing: str
    due: datetime
    cells: dict[str, str]
    """The columns of the CSV; one that is not here is empty."""

    @property
    def asked_for(self) -> str:
        """The time of day that it was scheduled for, and where: in a zone, or with an offset."""
        _, _, time = self.cells["at"].partition("T")
        return f"{time} {self.cells['tz']}" if "tz" in self.cells else time


def plan(*, count: int, start: datetime, seconds: float, webhook_url: str) -> list[Row]:
    """Return `count` rows, due evenly over `seconds` from `start` (UTC) on."""
    start = start.replace(microsecond=start.microsecond // 1000 * 1000)  # what the CSV can say
    rows = []
    for place in range(count):
        thing = f"demo-{place + 1:03}"
        due = start + timedelta(milliseconds=round(1000 * seconds * place / count))
        what = _webhook(thing, webhook_url) if place % 2 else _email(thing, PEOPLE[place % len(PEOPLE)])
        rows.append(Row(thing=thing, due=due, cells=what | _when(due, ZONES[place % len(ZONES)])))
    return rows


def write_csv(rows: list[Row], file: Path) -> None:
    """Write the rows as `postdate schedule --csv` reads them."""
    with file.open("w", encoding="utf-8", newline="") as opened:
        lines = csv.DictWriter(opened, COLUMNS)
        lines.writeheader()
        lines.writerows(row.cells for row in rows)


def _email(thing: str, name: str) -> dict[str, str]:
    return {
        "type": "send_email",
        "thing": thing,
        "to": f"{name.lower()}@example.com",
        "subject": f"{thing}: We miss you, {name}",
        "text": "Your basket is still here. So are we.",
    }


def _webhook(thing: str, url: str) -> dict[str, str]:
    return {"type": "call_webhook", "thing": thing, "url": f"{url}/orders/{thing}"}


def _when(due: datetime, zone: str | None) -> dict[str, str]:
    """Say when it is due: as an instant, or as clocks show it in a zone."""
    if zone is None:
        return {"at": due.isoformat(timespec="milliseconds")}
    wall_time = due.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    return {"at": wall_time.isoformat(timespec="milliseconds"), "tz": zone}
