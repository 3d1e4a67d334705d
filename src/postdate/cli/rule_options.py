"""Which options say what a recurring rule is?"""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import typer

from postdate.cli.options import FoldOption, GapOption, TargetOption, TzOption
from postdate.domain.misfire import Misfire
from postdate.domain.rule import Overlap

RuleId = Annotated[str, typer.Argument(metavar="RULE", help="The rule's id.", show_default=False)]
Occurrence = Annotated[
    str,
    typer.Argument(metavar="WHEN", help="The occurrence: its instant, or its wall time there.", show_default=False),
]


RuleZone = Annotated[
    str | None, typer.Option("--tz", metavar="ZONE", help="Show times in this IANA zone rather than in the rule's.")
]


class RecurrenceOptions(TypedDict, total=False):
    """When it fires: the arguments of the verbs, by their names."""

    rrule: Annotated[str | None, typer.Option("--rrule", metavar="TEXT", help="An RRULE: FREQ=WEEKLY;BYDAY=TU.")]
    cron: Annotated[str | None, typer.Option("--cron", metavar="TEXT", help="Five fields: 0 9 * * MON-FRI.")]
    every: Annotated[float | None, typer.Option("--every", metavar="SECONDS", help="So many seconds apart.")]
    start: Annotated[
        str | None,
        typer.Option(
            "--start", metavar="WHEN", help="When it begins; now by default. An RRULE has its time of day from it."
        ),
    ]
    tz: TzOption
    gap: GapOption
    fold: FoldOption
    ends_at: Annotated[str | None, typer.Option("--ends-at", metavar="WHEN", help="Nothing fires after that.")]
    exdates: Annotated[
        list[str] | None, typer.Option("--exdate", metavar="WHEN", help="Left out of an RRULE; repeatable.")
    ]
    rdates: Annotated[list[str] | None, typer.Option("--rdate", metavar="WHEN", help="Added to an RRULE; repeatable.")]
    holidays: Annotated[
        str | None, typer.Option("--holidays", metavar="CALENDAR", help="The calendar on whose days nothing fires.")
    ]


class RuleOptions(RecurrenceOptions, total=False):
    """When it fires, where to, and what becomes of late ones."""

    target: TargetOption
    misfire: Annotated[
        Misfire | None, typer.Option("--misfire", help="Which of several that were missed run late; once by default.")
    ]
    grace: Annotated[
        int | None, typer.Option("--grace", metavar="SECONDS", help="How late is not missed yet; an hour by default.")
    ]
    overlap: Annotated[
        Overlap | None,
        typer.Option("--overlap", help="Whether one may begin before the last has ended; allow by default."),
    ]


_TAKEN_AWAY_BY_NOTHING = ("ends_at", "holidays", "target")


def asked_of(options: RecurrenceOptions) -> dict[str, Any]:
    """Return the arguments of a verb that the options give; an empty one takes its value away."""
    given = {name: value for name, value in options.items() if value is not None}
    return given | {name: None for name in _TAKEN_AWAY_BY_NOTHING if given.get(name) == ""}
