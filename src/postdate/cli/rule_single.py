"""How does a person look at the occurrences of a rule from a shell, and decide about one alone?"""

from __future__ import annotations

from typing import Annotated, Any, Unpack
from uuid import UUID

import typer

from postdate.cli.command import command
from postdate.cli.installation import Installation
from postdate.cli.options import (
    DisplayZone,
    HandOptions,
    JsonFlag,
    PayloadOption,
    SetOption,
    WorkspaceOption,
    hand_of,
)
from postdate.cli.payload import payload_of
from postdate.cli.printing import print_moved
from postdate.cli.rule_options import Occurrence, RecurrenceOptions, RuleId, asked_of
from postdate.cli.rule_text import print_occurrence, print_override, print_upcoming, zone_of
from postdate.domain.instant import instant
from postdate.errors import Invalid
from postdate.verbs.rules_asked import named_instant

_CRON_FIELDS = 5


@command
def skip(
    installation: Installation,
    rule: RuleId,
    when: Occurrence,
    *,
    as_json: JsonFlag = False,
    **hand: Unpack[HandOptions],
) -> None:
    """Leave one occurrence out."""
    with installation.opened() as app:
        skipped = app.sync.skip_occurrence(rule, when, **hand_of(hand))
        tz = zone_of(app.sync.get_rule(rule))
    print_occurrence(skipped, tz=tz, as_json=as_json)


@command
def move(
    installation: Installation,
    rule: RuleId,
    when: Occurrence,
    *,
    to: Annotated[str, typer.Option("--to", metavar="WHEN", help="When it happens instead.")],
    as_json: JsonFlag = False,
    **hand: Unpack[HandOptions],
) -> None:
    """Let one occurrence happen at another time."""
    with installation.opened() as app:
        action = app.sync.move_occurrence(rule, when, to=to, **hand_of(hand))
    print_moved(action, as_json=as_json)


@command
def override(
    installation: Installation,
    rule: RuleId,
    when: Occurrence,
    *,
    payload: PayloadOption = None,
    set_: SetOption = None,
    as_json: JsonFlag = False,
    **hand: Unpack[HandOptions],
) -> None:
    """Give one occurrence something else in its payload; nothing given takes that back."""
    given = payload_of(payload, set_)
    with installation.opened() as app:
        changed = app.sync.override_occurrence(rule, when, given, **hand_of(hand))
    print_override(changed, named_instant(changed, when, field="occurrence"), as_json=as_json)


@command
def run_now(
    installation: Installation, rule: RuleId, *, as_json: JsonFlag = False, **hand: Unpack[HandOptions]
) -> None:
    """Fire what a rule fires, now and beside its occurrences."""
    with installation.opened() as app:
        action = app.sync.run_now(rule, **hand_of(hand))
    print_moved(action, as_json=as_json)


@command
def preview(
    installation: Installation,
    rule: Annotated[
        str | None,
        typer.Argument(metavar="RULE", help="A rule's id, an RRULE or a cron expression.", show_default=False),
    ] = None,
    *,
    number: Annotated[int, typer.Option("--number", "-n", metavar="N", help="How many, up to 1000.")] = 10,
    after: Annotated[
        str | None, typer.Option("--after", metavar="INSTANT", help="Those later than then; than now by default.")
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonFlag = False,
    **options: Unpack[RecurrenceOptions],
) -> None:
    """Print when a rule fires next, or what would be one. Times are shown in its zone."""
    asked, since = asked_of(options), None if after is None else instant(after, field="after")
    tz = asked.get("tz")
    if rule is not None and not _is_id(rule):
        asked, rule = _asked_by_text(asked, rule), None
    with installation.opened() as app:
        if rule is None:
            upcoming = app.sync.preview_rule(n=number, after=since, workspace=workspace, **asked)
        else:
            asked.pop("tz", None)  # it says in which zone times are shown
            upcoming = app.sync.preview_rule(rule, n=number, after=since, **asked)
            tz = tz or app.sync.get_rule(rule).tz
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
    tz: DisplayZone = None,
    as_json: JsonFlag = False,
) -> None:
    """List occurrences that did not run in their time and were not run late, the latest first."""
    with installation.opened() as app:
        for occurrence in app.sync.missed(rule=rule, since=since, limit=limit):
            print_occurrence(occurrence, tz=tz, as_json=as_json)


def _form(text: str) -> str:
    """Return which argument of the verb a text is. Raises `Invalid` for one that looks like none."""
    if "=" in text:
        return "rrule"
    if text.startswith("@") or len(text.split()) == _CRON_FIELDS:
        return "cron"
    rule = "must be a rule's id, an RRULE (FREQ=WEEKLY;BYDAY=TU) or a cron expression of five fields (0 9 * * MON-FRI)"
    raise Invalid(field="rule", rule=rule, value=text)


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _asked_by_text(asked: dict[str, Any], text: str) -> dict[str, Any]:
    """Return what is asked for with a text, an RRULE or a cron expression, among it. Raises `Invalid`."""
    form = _form(text)
    if form in asked:
        raise Invalid(field=form, rule="must be given once", value=text)
    return {**asked, form: text}
