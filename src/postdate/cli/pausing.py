"""How does a person stop what is due from a shell, and let it go on?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Unpack

import typer
from rich.text import Text

from postdate.cli.command import command
from postdate.cli.failure import plain, tell
from postdate.cli.installation import Installation
from postdate.cli.options import HandOptions, JsonFlag, hand_of
from postdate.cli.printing import Stdout
from postdate.cli.records import instant_text, print_record
from postdate.domain.pause import EndedPause

if TYPE_CHECKING:
    from postdate.domain.pause import Pause

WorkspaceOption = Annotated[str | None, typer.Option("--workspace", metavar="UUID", help="What this one owns.")]
TypeOption = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Actions of this type.")]
DEFAULT_LIMIT = 100


@command
def pause(
    installation: Installation,
    *,
    workspace: WorkspaceOption = None,
    action_type: TypeOption = None,
    as_json: JsonFlag = False,
    **hand: Unpack[HandOptions],
) -> None:
    """Let nothing more start of a workspace, of an action type, or of one type in one workspace.

    What runs goes on; what falls due waits for resume, and then goes out late unless it has expired.
    """
    with installation.opened() as app:
        begun = app.sync.pause(workspace=workspace, action_type=action_type, **hand_of(hand))
        if action_type is not None and app.kernel.registry.get(action_type) is None:
            known = ", ".join(each.name for each in app.kernel.registry)
            tell(f"nothing here has the action type {action_type!r}, which is paused all the same (known: {known})")
    _print(begun, as_json=as_json)


@command
def resume(
    installation: Installation,
    *,
    workspace: WorkspaceOption = None,
    action_type: TypeOption = None,
    as_json: JsonFlag = False,
    **hand: Unpack[HandOptions],
) -> None:
    """End the pause of exactly this workspace and type; what waited for it goes out."""
    with installation.opened() as app:
        ended = app.sync.resume(workspace=workspace, action_type=action_type, **hand_of(hand))
    _print(ended, as_json=as_json)


@command
def pauses(
    installation: Installation,
    *,
    ended: Annotated[bool, typer.Option("--ended", help="Those that were ended, the latest first.")] = False,
    limit: Annotated[int, typer.Option(metavar="N", help="At most so many that were ended.")] = DEFAULT_LIMIT,
    as_json: JsonFlag = False,
) -> None:
    """List what is paused, oldest first."""
    with installation.opened() as app:
        for found in app.sync.ended_pauses(limit=limit) if ended else app.sync.paused():
            _print(found, as_json=as_json)


def _print(found: Pause, *, as_json: bool) -> None:
    if as_json:
        print_record(found, without=("id",))
        return
    of_type = "every type" if found.action_type is None else found.action_type
    where = "" if found.workspace_id is None else f" in workspace {found.workspace_id}"
    line = Text(f"{instant_text(found.paused_at)} {plain(of_type)}{where}")
    line.append(f" by {plain(_said(found.paused_by, found.note))}", style="dim")
    if isinstance(found, EndedPause):
        line.append(f", ended {instant_text(found.ended_at)}")
        line.append(f" by {plain(_said(found.ended_by, found.ended_note))}", style="dim")
    Stdout().print(line)


def _said(actor: str, note: str | None) -> str:
    return actor if note is None else f"{actor}: {note}"
