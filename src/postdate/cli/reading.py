"""How is one shown what stands in the database?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypedDict, Unpack

import typer

from postdate.cli.command import command
from postdate.cli.failure import tell
from postdate.cli.installation import Installation
from postdate.cli.options import ActionId, DisplayZone, JsonFlag
from postdate.cli.printing import action_json, history_json, print_action, print_actions
from postdate.cli.records import print_json
from postdate.domain.moment import moment
from postdate.domain.states import Reason, Status
from postdate.domain.zones import zone
from postdate.errors import Invalid

if TYPE_CHECKING:
    from datetime import datetime

DEFAULT_LIMIT = 100


class FilterOptions(TypedDict, total=False):
    """Which actions are meant: the arguments of the verb, by their names."""

    status: Annotated[Status | None, typer.Option(help="How it stands.")]
    reason: Annotated[Reason | None, typer.Option(help="Why it ended.", metavar="REASON")]
    action_type: Annotated[str | None, typer.Option("--type", metavar="TYPE", help="What kind it is.")]
    workspace: Annotated[str | None, typer.Option(metavar="UUID", help="Which workspace owns it.")]
    user: Annotated[str | None, typer.Option(metavar="UUID", help="Which user owns it.")]
    thing: Annotated[str | None, typer.Option(metavar="TEXT", help="What is published.")]
    target: Annotated[str | None, typer.Option(metavar="TEXT", help="Where to.")]


@command
def list_(
    installation: Installation,
    *,
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="Due then or later; a wall time is read in --tz.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="WHEN", help="Due before then.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", help="At most so many, up to 10000.")] = DEFAULT_LIMIT,
    after: Annotated[str | None, typer.Option(metavar="ID", help="The last action of the page before.")] = None,
    tz: DisplayZone = None,
    as_json: JsonFlag = False,
    **filters: Unpack[FilterOptions],
) -> None:
    """List actions in the order in which they are due."""
    first, end = _bound(since, tz, field="since"), _bound(until, tz, field="until")
    if tz is not None:
        zone(tz)
    with installation.opened() as app:
        found = app.sync.list(since=first, until=end, limit=limit, after=after, **filters)
    if as_json:
        for action in found:
            print_json(action_json(action))
    else:
        print_actions(found, tz=tz)
    if len(found) == limit:
        tell(f"{limit} shown; what follows: --after {found[-1].id}")


@command
def show(installation: Installation, action: ActionId, *, tz: DisplayZone = None, as_json: JsonFlag = False) -> None:
    """Show an action: what was asked, how it stands, and its history."""
    if tz is not None:
        zone(tz)
    with installation.opened() as app:
        found, history = app.sync.get(action), app.sync.history(action)
    if as_json:
        print_json(action_json(found) | history_json(history))
    else:
        print_action(found, history, tz=tz)


def _bound(value: str | None, tz: str | None, *, field: str) -> datetime | None:
    if value is None:
        return None
    try:
        return moment(value, tz=tz, gap="forward", fold="first", default_zone=lambda: None).publish_at
    except Invalid as error:
        named = field if error.field == "at" else error.field
        raise Invalid(field=named, rule=error.rule, value=error.value) from None
