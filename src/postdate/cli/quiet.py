"""How does a person say from a shell at which hours a workspace is to be left in peace?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer
from rich.text import Text

from postdate.cli.command import command
from postdate.cli.failure import plain
from postdate.cli.installation import Installation
from postdate.cli.options import HandOptions, JsonFlag, hand_of
from postdate.cli.printing import Stdout
from postdate.cli.records import instant_text, print_json, record_json

if TYPE_CHECKING:
    from postdate.domain.quiet import WorkspaceQuietHours

quiet_hours = typer.Typer(
    name="quiet-hours", help="Say when nothing is to go out in a workspace.", no_args_is_help=True
)

Workspace = Annotated[str, typer.Argument(metavar="WORKSPACE", help="Its uuid.", show_default=False)]
TypeOption = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="For actions of this type only.")]


@command
def set_(
    installation: Installation,
    workspace: Workspace,
    hours: Annotated[
        list[str],
        typer.Argument(metavar="HOURS...", help='"22:00-08:00", or "sat,sun 00:00-00:00".', show_default=False),
    ],
    *,
    action_type: TypeOption = None,
    tz: Annotated[
        str | None, typer.Option("--tz", metavar="ZONE", help="Their IANA zone; else that of the workspace.")
    ] = None,
    as_json: JsonFlag = False,
    **hand: Unpack[HandOptions],
) -> None:
    """Set the quiet hours of a workspace, in place of those it has: what falls due in them goes out at their end."""
    with installation.opened() as app:
        kept = app.sync.set_quiet_hours(workspace, hours, action_type=action_type, tz=tz, **hand_of(hand))
    for each in kept:
        _print(each, as_json=as_json)


@command
def clear(
    installation: Installation, workspace: Workspace, *, action_type: TypeOption = None, as_json: JsonFlag = False
) -> None:
    """Take the quiet hours of a workspace away, and print what they were."""
    with installation.opened() as app:
        for each in app.sync.clear_quiet_hours(workspace, action_type=action_type):
            _print(each, as_json=as_json)


@command
def list_(
    installation: Installation,
    *,
    workspace: Annotated[str | None, typer.Option("--workspace", metavar="UUID", help="Of this one.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List quiet hours."""
    with installation.opened() as app:
        for each in app.sync.quiet_hours(workspace=workspace):
            _print(each, as_json=as_json)


def _print(found: WorkspaceQuietHours, *, as_json: bool) -> None:
    if as_json:
        print_json(_json(found))
        return
    line = Text(f"{found.workspace_id} {plain(found.action_type or 'every type')} {found.hours}")
    line.append(f" in {plain(found.hours.tz or 'the zone of the workspace')}")
    said = found.set_by if found.note is None else f"{found.set_by}: {found.note}"
    Stdout().print(line.append(f", set {instant_text(found.set_at)} by {plain(said)}", style="dim"))


def _json(found: WorkspaceQuietHours) -> dict[str, Any]:
    return record_json(found) | {"hours": str(found.hours), "tz": found.hours.tz}


quiet_hours.command("set")(set_)
quiet_hours.command("clear")(clear)
quiet_hours.command("list")(list_)
