"""How are recurring rules made, looked at, changed and ended from a shell?"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

import typer

from postdate.cli.command import command
from postdate.cli.installation import Installation
from postdate.cli.options import (
    ActorOption,
    DisplayZone,
    FoldOption,
    GapOption,
    JsonFlag,
    NoteOption,
    TzOption,
    actor_or_login,
)
from postdate.cli.printing import action_json, event_json, print_json, print_line
from postdate.cli.rule_text import print_missed, print_rule, print_upcoming, rule_json
from postdate.cli.scheduling import payload_of
from postdate.domain.misfire import Misfire
from postdate.domain.rule import Overlap, RuleStatus
from postdate.errors import Invalid
from postdate.verbs import UNCHANGED

rules = typer.Typer(
    name="rules", help="Look after recurring rules: what is to happen again and again.", no_args_is_help=True
)

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


@command
def create(
    installation: Installation,
    action_type: Annotated[str, typer.Argument(metavar="TYPE", help="The action type.", show_default=False)],
    *,
    payload: PayloadOption = None,
    set_: SetOption = None,
    rrule: RRuleOption = None,
    cron: CronOption = None,
    every: EveryOption = None,
    start: StartOption = None,
    tz: TzOption = None,
    gap: GapOption = None,
    fold: FoldOption = None,
    ends_at: EndsOption = None,
    exdate: ExdateOption = None,
    rdate: RdateOption = None,
    holidays: HolidaysOption = None,
    target: TargetOption = None,
    workspace: WorkspaceOption = None,
    user: UserOption = None,
    misfire: MisfireOption = None,
    grace: GraceOption = None,
    overlap: OverlapOption = None,
    note: NoteOption = None,
    actor: ActorOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Let an action happen again and again: by an RRULE, a cron expression or an interval."""
    with installation.opened() as app:
        made = app.sync.create_rule(
            action_type,
            payload_of(payload, set_ or []),
            rrule=rrule,
            cron=cron,
            every=every,
            start=start,
            tz=tz,
            gap=gap or "forward",
            fold=fold or "first",
            ends_at=ends_at,
            exdates=exdate,
            rdates=rdate,
            holidays=holidays,
            target=target,
            workspace=workspace,
            user=user,
            misfire=misfire or "once",
            grace=timedelta(hours=1) if grace is None else grace,
            overlap=overlap or "allow",
            actor=actor_or_login(actor),
            note=note,
        )
    print_rule(made, as_json=as_json)


@command
def list_(
    installation: Installation,
    *,
    workspace: WorkspaceOption = None,
    user: UserOption = None,
    status: Annotated[RuleStatus | None, typer.Option("--status", help="Those that stand so.")] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="At most so many, up to 10000.")] = 100,
    after: Annotated[str | None, typer.Option("--after", metavar="ID", help="Those behind this rule.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List rules in the order in which they were made."""
    with installation.opened() as app:
        for found in app.sync.list_rules(workspace=workspace, user=user, status=status, limit=limit, after=after):
            print_rule(found, as_json=as_json)


@command
def show(installation: Installation, rule: RuleId, *, tz: DisplayZone = None, as_json: JsonFlag = False) -> None:
    """Show a rule, what comes next, and what people did to it."""
    with installation.opened() as app:
        found = app.sync.get_rule(rule)
        history = app.sync.rule_history(rule)
        upcoming = [] if found.status is RuleStatus.ENDED else app.sync.preview_rule(rule, n=5)
    if as_json:
        print_json(rule_json(found) | {"history": [event_json(event) for event in history]})
        return
    print_rule(found, upcoming=upcoming, history=history, tz=tz)


@command
def update(
    installation: Installation,
    rule: RuleId,
    *,
    following: Annotated[
        str | None, typer.Option("--following", metavar="WHEN", help="From this occurrence on, as a rule of its own.")
    ] = None,
    payload: PayloadOption = None,
    set_: SetOption = None,
    rrule: RRuleOption = None,
    cron: CronOption = None,
    every: EveryOption = None,
    start: StartOption = None,
    tz: TzOption = None,
    gap: GapOption = None,
    fold: FoldOption = None,
    ends_at: EndsOption = None,
    exdate: ExdateOption = None,
    rdate: RdateOption = None,
    holidays: HolidaysOption = None,
    target: TargetOption = None,
    misfire: MisfireOption = None,
    grace: GraceOption = None,
    overlap: OverlapOption = None,
    note: NoteOption = None,
    actor: ActorOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Change a rule, for all that is still to come or from one occurrence on. An empty option takes its value away."""
    given = None if payload is None and not set_ else payload_of(payload, set_ or [])
    with installation.opened() as app:
        changed = app.sync.update_rule(
            rule,
            following=following,
            payload=given,
            rrule=rrule,
            cron=cron,
            every=every,
            start=start,
            tz=tz,
            gap=gap,
            fold=fold,
            ends_at=UNCHANGED if ends_at is None else ends_at or None,
            exdates=exdate,
            rdates=rdate,
            holidays=UNCHANGED if holidays is None else holidays or None,
            target=UNCHANGED if target is None else target or None,
            misfire=misfire,
            grace=grace,
            overlap=overlap,
            actor=actor_or_login(actor),
            note=note,
        )
    print_rule(changed, as_json=as_json)


@command
def pause(
    installation: Installation,
    rule: RuleId,
    *,
    note: NoteOption = None,
    actor: ActorOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Let nothing more start of a rule; what it has queued is withdrawn."""
    with installation.opened() as app:
        print_rule(app.sync.pause_rule(rule, actor=actor_or_login(actor), note=note), as_json=as_json)


@command
def resume(
    installation: Installation,
    rule: RuleId,
    *,
    note: NoteOption = None,
    actor: ActorOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Let a paused rule go on; what is still to come is brought back."""
    with installation.opened() as app:
        print_rule(app.sync.resume_rule(rule, actor=actor_or_login(actor), note=note), as_json=as_json)


@command
def end(
    installation: Installation,
    rule: RuleId,
    *,
    note: NoteOption = None,
    actor: ActorOption = None,
    as_json: JsonFlag = False,
) -> None:
    """End a rule for good; what runs goes on."""
    with installation.opened() as app:
        print_rule(app.sync.end_rule(rule, actor=actor_or_login(actor), note=note), as_json=as_json)


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
    if as_json:
        print_json(action_json(action))
    else:
        print_line(action)


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
    if as_json:
        print_json(action_json(action))
    else:
        print_line(action)


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


for _name, _command in {
    "create": create,
    "list": list_,
    "show": show,
    "update": update,
    "pause": pause,
    "resume": resume,
    "end": end,
    "skip": skip,
    "move": move,
    "override": override,
    "run-now": run_now,
    "preview": preview,
    "missed": missed,
}.items():
    rules.command(_name)(_command)
