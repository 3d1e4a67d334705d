"""How are recurring rules made, looked at, changed and ended from a shell?"""

from __future__ import annotations

from typing import Annotated, Unpack

import typer

from postdate.cli import rule_single
from postdate.cli.command import command
from postdate.cli.installation import Installation
from postdate.cli.options import (
    ActorOption,
    HandOptions,
    JsonFlag,
    NoteOption,
    PayloadOption,
    SetOption,
    UserOption,
    WorkspaceOption,
    actor_or_login,
    hand_of,
)
from postdate.cli.payload import payload_of
from postdate.cli.printing import history_json
from postdate.cli.records import print_json, record_json
from postdate.cli.rule_options import RuleId, RuleOptions, RuleZone, asked_of
from postdate.cli.rule_text import print_rule, rule_json, show_rule, tell_if_over, tell_of_empty_calendar
from postdate.domain.rule import RuleStatus
from postdate.errors import Invalid

rules = typer.Typer(
    name="rules", help="Look after recurring rules: what is to happen again and again.", no_args_is_help=True
)


@command
def create(
    installation: Installation,
    action_type: Annotated[str, typer.Argument(metavar="TYPE", help="The action type.", show_default=False)],
    *,
    payload: PayloadOption = None,
    set_: SetOption = None,
    workspace: WorkspaceOption = None,
    user: UserOption = None,
    note: NoteOption = None,
    actor: ActorOption = None,
    as_json: JsonFlag = False,
    **options: Unpack[RuleOptions],
) -> None:
    """Let an action happen again and again: by an RRULE, a cron expression or an interval."""
    with installation.opened() as app:
        made = app.sync.create_rule(
            action_type,
            payload_of(payload, set_) or {},
            workspace=workspace,
            user=user,
            actor=actor_or_login(actor),
            note=note,
            **asked_of(options),
        )
        tell_of_empty_calendar(app, made, options)
    print_rule(made, as_json=as_json)
    tell_if_over(made)


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
def show(installation: Installation, rule: RuleId, *, tz: RuleZone = None, as_json: JsonFlag = False) -> None:
    """Show a rule, what comes next, and what people did to it."""
    with installation.opened() as app:
        found = app.sync.get_rule(rule)
        history = app.sync.rule_history(rule)
        upcoming = [] if found.last_error is not None else app.sync.preview_rule(rule, n=5)
    if as_json:
        print_json(rule_json(found) | {"upcoming": [record_json(each) for each in upcoming]} | history_json(history))
    else:
        show_rule(found, upcoming, history, tz=tz)


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
    note: NoteOption = None,
    actor: ActorOption = None,
    as_json: JsonFlag = False,
    **options: Unpack[RuleOptions],
) -> None:
    """Change a rule, for all that is still to come or from one occurrence on.

    What is not given stays; an empty `--ends-at`, `--holidays` or `--target` takes that away. `--payload` and `--set`
    take the place of the whole payload.
    """
    said, asked = payload_of(payload, set_), asked_of(options)
    if said is None and not asked:
        raise Invalid(field="rule", rule="is given nothing to change, such as --set, --cron or --ends-at")
    with installation.opened() as app:
        changed = app.sync.update_rule(
            rule,
            following=following,
            payload=said,
            actor=actor_or_login(actor),
            note=note,
            **asked,
        )
        tell_of_empty_calendar(app, changed, options)
    print_rule(changed, as_json=as_json)
    tell_if_over(changed)


@command
def pause(installation: Installation, rule: RuleId, *, as_json: JsonFlag = False, **hand: Unpack[HandOptions]) -> None:
    """Let nothing more start of a rule; what it has queued is withdrawn."""
    with installation.opened() as app:
        print_rule(app.sync.pause_rule(rule, **hand_of(hand)), as_json=as_json)


@command
def resume(installation: Installation, rule: RuleId, *, as_json: JsonFlag = False, **hand: Unpack[HandOptions]) -> None:
    """Let a paused rule go on; what is still to come is brought back."""
    with installation.opened() as app:
        print_rule(app.sync.resume_rule(rule, **hand_of(hand)), as_json=as_json)


@command
def end(installation: Installation, rule: RuleId, *, as_json: JsonFlag = False, **hand: Unpack[HandOptions]) -> None:
    """End a rule for good; what runs goes on."""
    with installation.opened() as app:
        print_rule(app.sync.end_rule(rule, **hand_of(hand)), as_json=as_json)


for _name, _command in {
    "create": create,
    "list": list_,
    "show": show,
    "update": update,
    "pause": pause,
    "resume": resume,
    "end": end,
    "skip": rule_single.skip,
    "move": rule_single.move,
    "override": rule_single.override,
    "run-now": rule_single.run_now,
    "preview": rule_single.preview,
    "missed": rule_single.missed,
}.items():
    rules.command(_name)(_command)
