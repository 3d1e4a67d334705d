"""How does a person move an action from a shell?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from postdate.cli.command import command
from postdate.cli.failure import ExitCode, exit_code, tell
from postdate.cli.installation import Installation
from postdate.cli.options import (
    ActionId,
    ActionIds,
    ExpiresOption,
    FoldOption,
    GapOption,
    HandOptions,
    JsonFlag,
    NewAtOption,
    TzOption,
    ZonePolicyOption,
    hand_of,
)
from postdate.cli.printing import print_moved
from postdate.domain.states import Status
from postdate.errors import Invalid, MoveRefused, NotFound, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from postdate.domain.action import Action


@command
def cancel(
    installation: Installation,
    actions: ActionIds,
    *,
    free_idempotency_key: Annotated[
        bool, typer.Option("--free-idempotency-key", help="Let its idempotency key be used anew.")
    ] = False,
    as_json: JsonFlag = False,
    **hand: Unpack[HandOptions],
) -> None:
    """Cancel queued actions; one that is cancelled already stays so."""
    asked = hand_of(hand)
    with installation.opened() as app:

        def cancelled(action: str) -> Action:
            found = app.sync.cancel(action, free_idempotency_key=free_idempotency_key, **asked)
            if found.status is not Status.CANCELLED:
                raise MoveRefused(found.id, verb="cancel", status=found.status, reason=found.reason)
            return found

        _each(actions, cancelled, as_json=as_json)


@command
def reschedule(
    installation: Installation,
    action: ActionId,
    *,
    at: NewAtOption,
    tz: TzOption = None,
    gap: GapOption = None,
    fold: FoldOption = None,
    zone_policy: ZonePolicyOption = None,
    expires_at: ExpiresOption = None,
    as_json: JsonFlag = False,
    **hand: Unpack[HandOptions],
) -> None:
    """Move a queued action to another time: it is cancelled, and a new one takes its place.

    A wall time is read in --tz, else in the zone of the first one.
    """
    with installation.opened() as app:
        moved = app.sync.reschedule(
            action,
            at=at,
            tz=tz,
            gap=gap,
            fold=fold,
            zone_policy=zone_policy,
            expires_at=expires_at,
            **hand_of(hand),
        )
    print_moved(moved, as_json=as_json)


@command
def post_now(
    installation: Installation, action: ActionId, *, as_json: JsonFlag = False, **hand: Unpack[HandOptions]
) -> None:
    """Fire a queued action now, or publish once more one that is published; a new action takes its place."""
    with installation.opened() as app:
        moved = app.sync.post_now(action, **hand_of(hand))
    print_moved(moved, as_json=as_json)


@command
def retry(
    installation: Installation,
    actions: ActionIds,
    *,
    force: Annotated[bool, typer.Option("--force", help="Go beyond the type's attempts; needs --note.")] = False,
    as_json: JsonFlag = False,
    **hand: Unpack[HandOptions],
) -> None:
    """Queue failed actions again, due now."""
    asked = hand_of(hand)
    with installation.opened() as app:
        _each(actions, lambda action: app.sync.retry(action, force=force, **asked), as_json=as_json)


@command
def confirm(
    installation: Installation,
    action: ActionId,
    *,
    provider_id: Annotated[str | None, typer.Option(metavar="TEXT", help="What the provider calls it.")] = None,
    as_json: JsonFlag = False,
    **hand: Unpack[HandOptions],
) -> None:
    """Say that an unconfirmed action did go out: it is published."""
    with installation.opened() as app:
        found = app.sync.confirm(action, provider_id=provider_id, **hand_of(hand))
    print_moved(found, as_json=as_json)


@command
def dismiss(
    installation: Installation, action: ActionId, *, as_json: JsonFlag = False, **hand: Unpack[HandOptions]
) -> None:
    """Say that an unconfirmed action did not go out: it stays failed, and the thing can be scheduled again."""
    with installation.opened() as app:
        found = app.sync.dismiss(action, **hand_of(hand))
    print_moved(found, as_json=as_json)


def _each(actions: Sequence[str], move: Callable[[str], Action], *, as_json: bool) -> None:
    """Move several; one that cannot be moved is told and stops nothing else."""
    codes = []
    for action in actions:
        try:
            print_moved(move(action), as_json=as_json)
        except (Invalid, NotFound, Refused) as error:
            tell(error)
            codes.append(exit_code(error))
    if codes:
        raise typer.Exit(codes[0] if len(actions) == 1 else ExitCode.PARTLY_DONE)
