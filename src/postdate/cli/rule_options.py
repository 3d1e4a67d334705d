"""Which options say what a recurring rule is?"""

from __future__ import annotations

from typing import Annotated

import typer

from postdate.domain.misfire import Misfire
from postdate.domain.rule import Overlap

RuleId = Annotated[str, typer.Argument(metavar="RULE", help="The rule's id.", show_default=False)]
Occurrence = Annotated[
    str,
    typer.Argument(metavar="WHEN", help="The occurrence: its instant, or its wall time there.", show_default=False),
]
PayloadOption = Annotated[str | None, typer.Option(metavar="JSON", help="The payload, a JSON object.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One text of the payload; repeatable.")
]
RRuleOption = Annotated[str | None, typer.Option("--rrule", metavar="TEXT", help="An RRULE: FREQ=WEEKLY;BYDAY=TU.")]
CronOption = Annotated[str | None, typer.Option("--cron", metavar="TEXT", help="Five fields: 0 9 * * MON-FRI.")]
EveryOption = Annotated[float | None, typer.Option("--every", metavar="SECONDS", help="So many seconds apart.")]
StartOption = Annotated[str | None, typer.Option("--start", metavar="WHEN", help="When it begins; now by default.")]
EndsOption = Annotated[str | None, typer.Option("--ends-at", metavar="WHEN", help="Nothing fires after that.")]
ExdateOption = Annotated[
    list[str] | None, typer.Option("--exdate", metavar="WHEN", help="Left out of an RRULE; repeatable.")
]
RdateOption = Annotated[
    list[str] | None, typer.Option("--rdate", metavar="WHEN", help="Added to an RRULE; repeatable.")
]
HolidaysOption = Annotated[
    str | None, typer.Option("--holidays", metavar="CALENDAR", help="The calendar on whose days nothing fires.")
]
TargetOption = Annotated[str | None, typer.Option("--target", metavar="TEXT", help="Where to: a platform, a channel.")]
WorkspaceOption = Annotated[str | None, typer.Option("--workspace", metavar="UUID", help="The owning workspace.")]
UserOption = Annotated[str | None, typer.Option("--user", metavar="UUID", help="The owning user.")]
MisfireOption = Annotated[
    Misfire | None, typer.Option("--misfire", help="Which of several that were missed run late; once by default.")
]
GraceOption = Annotated[
    int | None, typer.Option("--grace", metavar="SECONDS", help="How late is not missed yet; an hour by default.")
]
OverlapOption = Annotated[
    Overlap | None, typer.Option("--overlap", help="Whether one may begin before the last has ended; allow by default.")
]
