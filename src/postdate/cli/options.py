"""Which options do several commands share?"""

from __future__ import annotations

import getpass
from typing import Annotated, TypedDict

import typer

from postdate.domain.intent import ZonePolicy
from postdate.domain.walltime import Fold, Gap

ActionId = Annotated[str, typer.Argument(metavar="ID", help="The action.", show_default=False)]
ActionIds = Annotated[list[str], typer.Argument(metavar="ID...", help="The actions.", show_default=False)]

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON: one object a line.")]
ActorOption = Annotated[
    str | None,
    typer.Option("--actor", metavar="TEXT", help="Who asks, for the history; cli: and the login name by default."),
]
NoteOption = Annotated[str | None, typer.Option("--note", metavar="TEXT", help="Why, for the history.")]
DisplayZone = Annotated[
    str | None, typer.Option("--tz", metavar="ZONE", help="Show times in this IANA zone rather than in UTC.")
]

PayloadOption = Annotated[str | None, typer.Option(metavar="JSON", help="The payload, a JSON object.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One text of the payload; repeatable.")
]
TargetOption = Annotated[str | None, typer.Option("--target", metavar="TEXT", help="Where to: a platform, a channel.")]
WorkspaceOption = Annotated[str | None, typer.Option("--workspace", metavar="UUID", help="The owning workspace.")]
UserOption = Annotated[str | None, typer.Option("--user", metavar="UUID", help="The owning user.")]

AT_HELP = "When: an instant (2027-03-14T09:00Z, ...+01:00), or a wall time (2027-03-14 09:00) in a zone."
TZ_HELP = "The IANA zone of a wall time, as in Europe/Lisbon; else that of the workspace or the user."
GAP_HELP = "Where clocks skip the wall time; forward by default."
FOLD_HELP = "Where clocks show the wall time twice; first by default."
ZONE_POLICY_HELP = "Where the wall time comes to mean another instant: go there, ask a person, or stay."
EXPIRES_HELP = "The instant after which it is too late to fire."

AtOption = Annotated[str | None, typer.Option("--at", metavar="WHEN", help=AT_HELP)]
NewAtOption = Annotated[str, typer.Option("--at", metavar="WHEN", help=AT_HELP)]
TzOption = Annotated[str | None, typer.Option("--tz", metavar="ZONE", help=TZ_HELP)]
GapOption = Annotated[Gap | None, typer.Option("--gap", help=GAP_HELP)]
FoldOption = Annotated[Fold | None, typer.Option("--fold", help=FOLD_HELP)]
ZonePolicyOption = Annotated[ZonePolicy | None, typer.Option("--zone-policy", help=ZONE_POLICY_HELP)]
ExpiresOption = Annotated[str | None, typer.Option("--expires-at", metavar="INSTANT", help=EXPIRES_HELP)]


class HandOptions(TypedDict, total=False):
    """Who asks, and why: the options of every command that changes something."""

    note: NoteOption
    actor: ActorOption


class Hand(TypedDict):
    """The same, as the verbs take it."""

    actor: str
    note: str | None


def hand_of(options: HandOptions) -> Hand:
    """Return who asks, and why."""
    return {"actor": actor_or_login(options.get("actor")), "note": options.get("note")}


def actor_or_login(actor: str | None) -> str:
    """Return who asks: as given, else `cli:` and the name of the login, else `cli`."""
    if actor is not None:
        return actor
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):  # a container's user need not have a name
        return "cli"
