"""Which options say what one action is? The columns of a file have their names."""

from __future__ import annotations

from typing import Annotated, TypedDict

import typer

from postdate.cli.options import (
    AtOption,
    ExpiresOption,
    FoldOption,
    GapOption,
    TargetOption,
    TzOption,
    UserOption,
    WorkspaceOption,
    ZonePolicyOption,
)


class ActionOptions(TypedDict, total=False):
    """What is asked of an action beside its type and its payload."""

    at: AtOption
    tz: TzOption
    gap: GapOption
    fold: FoldOption
    zone_policy: ZonePolicyOption
    target: TargetOption
    thing: Annotated[str | None, typer.Option(metavar="TEXT", help="What is published: goes out once to each target.")]
    workspace: WorkspaceOption
    user: UserOption
    occurrence: Annotated[str | None, typer.Option(metavar="TEXT", help="Which repetition of the thing.")]
    expires_at: ExpiresOption
    overlap_key: Annotated[
        str | None, typer.Option(metavar="TEXT", help="At most one active action of this type has it.")
    ]
    idempotency_key: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Asking again with it answers the same action.")
    ]
