"""How does a person move an action from a shell?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from postdate.cli.command import command
from postdate.cli.failure import ExitCode, exit_code, tell
from postdate.cli.installation import Installation
from postdate.cli.options import (
    ActionId,
    ActionIds,
    ActorOption,
    ExpiresOption,
    FoldOption,
    GapOption,
    JsonFlag,
    NewAtOption,
    NoteOption,
    TzOption,
    ZonePolicyOption,
    actor_or_login,
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
    note: NoteOption = None,
    actor: ActorOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Cancel queued actions; one that is cancelled already stays so."""
    who = actor_or_login(actor)
    with installation.opened() as app:

        def cancelled(action: str) -> Action:
            found = app.sync.cancel(action, actor=who, note=note, free_idempotency_key=free_idempotency_key)
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
    note: NoteOption = None,
    actor: ActorOption = None,
    as_json: JsonFlag = False,
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
            actor=actor_or_login(actor),
            note=note,
        )
    print_moved(moved, as_json=as_json)


@command
def post_now(
    installation: Installation,
    action: ActionId,
    *,
    note: NoteOption = None,
    actor: ActorOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Fire a queued action now, or publish once more one that is published; a new action takes its place."""
    with installation.opened() as app:
        moved = app.sync.post_now(action, actor=actor_or_login(actor), note=note)
    print_moved(moved, as_json=as_json)


@command
def retry(
    installation: Installation,
    actions: ActionIds,
    *,
    force: Annotated[bool, typer.Option("--force", help="Go beyond the type's attempts; needs --note.")] = False,
    note: NoteOption = None,
    actor: ActorOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Queue failed actions again, due now."""
    who = actor_or_login(actor)
    with installation.opened() as app:
        _each(actions, lambda action: app.sync.retry(action, force=force, actor=who, note=note), as_json=as_json)


@command
def confirm(
    installation: Installation,
    action: ActionId,
    *,
    provider_id: Annotated[str | None, typer.Option(metavar="TEXT", help="What the provider calls it.")] = None,
    note: NoteOption = None,
    actor: ActorOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Say that an unconfirmed action did go out: it is published."""
    with installation.opened() as app:
        found = app.sync.confirm(action, provider_id=provider_id, actor=actor_or_login(actor), note=note)
    print_moved(found, as_json=as_json)


@command
def dismiss(
    installation: Installation,
    action: ActionId,
    *,
    note: NoteOption = None,
    actor: ActorOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Say that an unconfirmed action did not go out: it stays failed, and the thing can be scheduled again."""
    with installation.opened() as app:
        found = app.sync.dismiss(action, actor=actor_or_login(actor), note=note)
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
