"""How does a person let an installation go on from a shell that was put on hold?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from postdate.cli.command import command
from postdate.cli.failure import ExitCode, plain, tell
from postdate.cli.installation import Installation
from postdate.cli.options import HandOptions, JsonFlag, hand_of
from postdate.cli.records import instant_text, print_record
from postdate.errors import NotHeld

if TYPE_CHECKING:
    from postdate.verbs.releasing import Hold, Release


@command
def release(
    installation: Installation,
    *,
    cancel_due_before: Annotated[
        str | None,
        typer.Option(metavar="INSTANT", help="Cancel what is queued and due before then: it went out already."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask: let what is due go out.")] = False,
    as_json: JsonFlag = False,
    **hand: Unpack[HandOptions],
) -> None:
    """Let an installation fire again that is on hold since a backup was put back; say what is due, and ask first."""
    with installation.opened() as app:
        held = app.sync.held()
        if held is None:
            raise NotHeld
        _tell(held, cancel_due_before)
        if not yes and not typer.confirm("Release it?", err=True):
            tell("still on hold")
            raise typer.Exit(ExitCode.REFUSED)
        released = app.sync.release(cancel_due_before=cancel_due_before, **hand_of(hand))
    _print(released, as_json=as_json)


def _tell(held: Hold, cancel_due_before: str | None) -> None:
    tell(f"on hold since {instant_text(held.since)}: {held.because}")
    for due in held.due:
        tell(f"due: {due.count} of {due.action_type}, the first since {instant_text(due.since)}")
    if held.due and cancel_due_before is None:
        tell("what went out since the backup was made would go out again: see --cancel-due-before")


def _print(released: Release, *, as_json: bool) -> None:
    if as_json:
        print_record(released)
        return
    at, by = instant_text(released.released_at), plain(released.released_by)
    print(f"released {at} by {by}, {released.cancelled} cancelled")  # noqa: T201 - the answer
