"""How does a person see from a shell which addresses get no webhooks any more, and let one be called again?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Unpack

import typer
from rich.text import Text

from postdate.cli.command import command
from postdate.cli.failure import plain
from postdate.cli.installation import Installation
from postdate.cli.options import HandOptions, JsonFlag, hand_of
from postdate.cli.printing import Stdout
from postdate.cli.records import instant_text, print_record

if TYPE_CHECKING:
    from postdate.store.endpoints import DisabledEndpoint

endpoints = typer.Typer(
    name="endpoints", help="Look after addresses that answered 410 to a webhook.", no_args_is_help=True
)

WorkspaceOption = Annotated[str | None, typer.Option("--workspace", metavar="UUID", help="Disabled for this one.")]
UserOption = Annotated[
    str | None, typer.Option("--user", metavar="UUID", help="Disabled for the actions of this user without workspace.")
]
DEFAULT_LIMIT = 100


@command
def list_(
    installation: Installation,
    *,
    workspace: WorkspaceOption = None,
    user: UserOption = None,
    limit: Annotated[int, typer.Option(metavar="N", help="At most so many, up to 10000.")] = DEFAULT_LIMIT,
    as_json: JsonFlag = False,
) -> None:
    """List the addresses that are disabled, the latest first: for everybody where no owner is named."""
    with installation.opened() as app:
        for found in app.sync.disabled_endpoints(workspace=workspace, user=user, limit=limit):
            _print(found, as_json=as_json)


@command
def enable(
    installation: Installation,
    url: Annotated[str, typer.Argument(metavar="URL", help="The address.", show_default=False)],
    *,
    workspace: WorkspaceOption = None,
    user: UserOption = None,
    as_json: JsonFlag = False,
    **hand: Unpack[HandOptions],
) -> None:
    """Let webhooks be sent to an address again; print since when they were not. Retry what was refused yourself."""
    with installation.opened() as app:
        enabled = app.sync.enable_endpoint(url, workspace=workspace, user=user, **hand_of(hand))
    _print(enabled, as_json=as_json)


def _print(found: DisabledEndpoint, *, as_json: bool) -> None:
    if as_json:
        print_record(found)
        return
    owner = f"user {found.user_id}" if found.workspace_id is None else f"workspace {found.workspace_id}"
    line = Text(f"{instant_text(found.disabled_at)} {plain(found.url)}")
    Stdout().print(line.append(f" {owner}, action {found.action_id}", style="dim"))


endpoints.command("list")(list_)
endpoints.command("enable")(enable)
