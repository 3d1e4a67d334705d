"""How does a person look at the occurrences of a rule from a shell, and decide about one alone?"""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import typer

from postdate.cli.command import command
from postdate.cli.installation import Installation
from postdate.cli.options import (
    ActorOption,
    FoldOption,
    GapOption,
    JsonFlag,
    NoteOption,
    TzOption,
    actor_or_login,
)
from postdate.cli.printing import print_moved
from postdate.cli.rule_options import (
    EndsOption,
    ExdateOption,
    HolidaysOption,
    Occurrence,
    PayloadOption,
    RdateOption,
    RuleId,
    SetOption,
    StartOption,
)
from postdate.cli.rule_text import print_missed, print_rule, print_upcoming
from postdate.cli.scheduling import payload_of
from postdate.errors import Invalid


@command
def skip(
    installation: Installation,
    rule: RuleId,
    when: Occurrence,
    *,
    note: NoteOption = None,
    actor: ActorOption = None,
) -> None:
    """Leave one occurrence out."""
    with installation.opened() as app:
        app.sync.skip_occurrence(rule, when, actor=actor_or_login(actor), note=note)


@command
def move(
    installation: Installation,
    rule: RuleId,
    when: Occurrence,
    *,
    to: Annotated[str, typer.Option("--to", metavar="WHEN", help="When it happens instead.")],
    note: NoteOption = None,
    actor: ActorOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Let one occurrence happen at another time."""
    with installation.opened() as app:
        action = app.sync.move_occurrence(rule, when, to=to, actor=actor_or_login(actor), note=note)
    print_moved(action, as_json=as_json)


@command
def override(
    installation: Installation,
    rule: RuleId,
    when: Occurrence,
    *,
    payload: PayloadOption = None,
    set_: SetOption = None,
    note: NoteOption = None,
    actor: ActorOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Give one occurrence something else in its payload; nothing given takes that back."""
    given = None if payload is None and not set_ else payload_of(payload, set_ or [])
    with installation.opened() as app:
        changed = app.sync.override_occurrence(rule, when, given, actor=actor_or_login(actor), note=note)
    print_rule(changed, as_json=as_json)


@command
def run_now(
    installation: Installation,
    rule: RuleId,
    *,
    note: NoteOption = None,
    actor: ActorOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Fire what a rule fires, now and beside its occurrences."""
    with installation.opened() as app:
        action = app.sync.run_now(rule, actor=actor_or_login(actor), note=note)
    print_moved(action, as_json=as_json)


@command
def preview(
    installation: Installation,
    rule: Annotated[
        str,
        typer.Argument(metavar="RULE", help="A rule's id, an RRULE or a cron expression.", show_default=False),
    ],
    *,
    number: Annotated[int, typer.Option("--number", "-n", metavar="N", help="How many, up to 1000.")] = 10,
    start: StartOption = None,
    tz: TzOption = None,
    gap: GapOption = None,
    fold: FoldOption = None,
    ends_at: EndsOption = None,
    exdate: ExdateOption = None,
    rdate: RdateOption = None,
    holidays: HolidaysOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Print when a rule fires next, or what would be one. Times are shown in its zone."""
    asked: dict[str, Any] = {
        "start": start,
        "tz": tz,
        "gap": gap or "forward",
        "fold": fold or "first",
        "ends_at": ends_at,
        "exdates": exdate,
        "rdates": rdate,
        "holidays": holidays,
    }
    with installation.opened() as app:
        if _is_id(rule):
            if any(asked[name] for name in ("start", "ends_at", "exdates", "rdates", "holidays")):
                raise Invalid(field="rule", rule="says all of that itself", value=rule)
            tz = tz or app.sync.get_rule(rule).tz
            upcoming = app.sync.preview_rule(rule, n=number)
        else:
            asked["rrule" if "=" in rule else "cron"] = rule
            upcoming = app.sync.preview_rule(n=number, **asked)
    print_upcoming(upcoming, tz=tz, as_json=as_json)


@command
def missed(
    installation: Installation,
    rule: Annotated[
        str | None, typer.Argument(metavar="RULE", help="Of one rule; of all by default.", show_default=False)
    ] = None,
    *,
    since: Annotated[str | None, typer.Option("--since", metavar="INSTANT", help="Those from then on.")] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="At most so many, up to 10000.")] = 100,
    as_json: JsonFlag = False,
) -> None:
    """List occurrences that did not run in their time and were not run late, the latest first."""
    with installation.opened() as app:
        print_missed(app.sync.missed(rule=rule, since=since, limit=limit), as_json=as_json)


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
