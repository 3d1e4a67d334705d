"""How does a person say from a shell on which days the rules that keep a calendar fire nothing?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from postdate.cli.command import command
from postdate.cli.failure import plain, tell
from postdate.cli.installation import Installation
from postdate.cli.options import JsonFlag
from postdate.cli.printing import Stdout
from postdate.cli.records import print_json

if TYPE_CHECKING:
    from collections.abc import Mapping

holidays = typer.Typer(
    name="holidays", help="Say on which days the rules that keep a calendar fire nothing.", no_args_is_help=True
)

Calendar = Annotated[
    str, typer.Argument(metavar="CALENDAR", help="Its name, as rules give it by --holidays.", show_default=False)
]


@command
def show(installation: Installation, calendar: Calendar, *, as_json: JsonFlag = False) -> None:
    """Print the days of a calendar, with their names."""
    with installation.opened() as app:
        days = app.sync.holidays(calendar)
    _print(days, as_json=as_json)
    if not days:
        tell(f"the calendar {calendar} has no days")


@command
def set_(
    installation: Installation,
    calendar: Calendar,
    days: Annotated[
        list[str] | None,
        typer.Argument(metavar="DAY...", help="2027-12-25, or with a name 2027-12-25=Christmas.", show_default=False),
    ] = None,
    *,
    as_json: JsonFlag = False,
) -> None:
    """Let these be the days of a calendar, in place of those it has: none at all empties it.

    What is queued for such a day is withdrawn within a minute, and comes back when it is none any more.
    """
    named = {day: name or None for day, _, name in (each.partition("=") for each in days or ())}
    with installation.opened() as app:
        _print(app.sync.set_holidays(calendar, named), as_json=as_json)


def _print(days: Mapping[str, str | None], *, as_json: bool) -> None:
    for day, name in days.items():
        if as_json:
            print_json({"day": day, "name": name})
        else:
            Stdout().print(Text(day if name is None else f"{day} {plain(name)}"))


holidays.command("set")(set_)
holidays.command("show")(show)
