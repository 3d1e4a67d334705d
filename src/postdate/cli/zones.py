"""How does a person see from a shell which wall times have shifted, and say what becomes of them?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer
from rich.text import Text

from postdate.cli.command import command
from postdate.cli.failure import plain, tell
from postdate.cli.installation import Installation
from postdate.cli.options import ActionId, HandOptions, JsonFlag, hand_of
from postdate.cli.printing import Stdout, print_moved
from postdate.cli.records import instant_text, print_json

if TYPE_CHECKING:
    from postdate.domain.intent import Shift
    from postdate.verbs.zones import ZoneCheck

zones = typer.Typer(
    name="zones", help="See which wall times mean another instant than they did, and decide.", no_args_is_help=True
)

DEFAULT_LIMIT = 100


@command
def check(
    installation: Installation,
    *,
    workspace: Annotated[str | None, typer.Option("--workspace", metavar="UUID", help="What this one owns.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", help="Tell of at most so many.")] = DEFAULT_LIMIT,
    as_json: JsonFlag = False,
) -> None:
    """List what is queued for another instant than its wall time means now, by the rules in force here.

    Changes nothing. What says `follow` the engine moves within a minute; what says `ask` waits for your word, and
    otherwise goes out when it was to; what says `pin` stays.
    """
    with installation.opened() as app:
        checked = app.sync.check_zones(workspace=workspace, limit=limit)
    for shift in checked.shifts:
        if as_json:
            print_json(_json(shift))
        else:
            _print(shift)
    _tell(checked)


@command
def follow(
    installation: Installation, action: ActionId, *, as_json: JsonFlag = False, **hand: Unpack[HandOptions]
) -> None:
    """Move an action to the instant that its wall time means now; one that is past fires it at once."""
    with installation.opened() as app:
        moved = app.sync.follow_zone(action, **hand_of(hand))
    print_moved(moved, as_json=as_json)


@command
def pin(
    installation: Installation, action: ActionId, *, as_json: JsonFlag = False, **hand: Unpack[HandOptions]
) -> None:
    """Let an action keep its instant, whatever its wall time comes to mean."""
    with installation.opened() as app:
        pinned = app.sync.pin_zone(action, **hand_of(hand))
    print_moved(pinned, as_json=as_json)


def _print(shift: Shift) -> None:
    intended, intent = shift.intended, shift.intended.intent
    zone = shift.tz if shift.tz == intent.tz else f"{intent.tz}, now {shift.tz}"
    means = "nothing" if shift.means is None else instant_text(shift.means)
    line = Text(f"{intended.action_id} {plain(intended.action_type)} {plain(intent.wall_time)} in {plain(zone)}: ")
    line.append(f"due {instant_text(intended.publish_at)}, means {means}")
    line.append(f": {shift.course}" + ("" if shift.doubt is None else f" ({shift.doubt})"), style="bold")
    Stdout().print(line)


def _tell(checked: ZoneCheck) -> None:
    gone_by = "never gone over by the engine" if checked.gone_by is None else f"gone over by {checked.gone_by}"
    courses = (
        ", ".join(f"{course} {count}" for course, count in sorted(checked.counts.items())) or "nothing has shifted"
    )
    tell(f"zone rules {checked.tzdata} (the queue was {gone_by}); looked at {checked.looked}: {courses}")
    for problem in checked.problems:
        tell(plain(problem))


def _json(shift: Shift) -> dict[str, Any]:
    intended, intent = shift.intended, shift.intended.intent
    return {
        "id": str(intended.action_id),
        "action_type": intended.action_type,
        "workspace_id": None if intended.workspace_id is None else str(intended.workspace_id),
        "user_id": str(intended.user_id),
        "wall_time": intent.wall_time,
        "tz": intent.tz,
        "tz_source": intent.tz_source,
        "tz_now": shift.tz,
        "publish_at": instant_text(intended.publish_at),
        "means": None if shift.means is None else instant_text(shift.means),
        "course": shift.course,
        "doubt": shift.doubt,
    }


zones.command("check")(check)
zones.command("follow")(follow)
zones.command("pin")(pin)
