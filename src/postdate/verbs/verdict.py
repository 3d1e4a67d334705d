"""How does a person decide about an action that failed?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy.exc import IntegrityError

from postdate.domain import text
from postdate.domain.settle import Policy
from postdate.domain.states import Cause, Reason, Status
from postdate.errors import Invalid, MoveRefused, RetriesExhausted, SiblingRunning
from postdate.hooks import tell_settled
from postdate.store.actions import is_unique_violation
from postdate.store.outcomes import withdraw_queued
from postdate.store.owners import hold_owners
from postdate.store.verdicts import confirm_unconfirmed, dismiss_unconfirmed, reopen_failed, siblings
from postdate.verbs.arguments import DEFAULT_ACTOR, action_uuid, actor_name, note_text
from postdate.verbs.intake import why_refused
from postdate.verbs.read import existing

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.action import Action
    from postdate.kernel import Connectable, Kernel, Unbegun
    from postdate.store.transaction import Transaction


def retry(
    kernel: Kernel,
    action: UUID | str,
    *,
    force: bool = False,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> Action:
    """Queue a failed action again, due now: the same action, with one more attempt (P71-P73).

    Beyond the type's `max_attempts` only with `force=True` and a `note`. Raises `MoveRefused` unless it is failed,
    `RetriesExhausted`, and `AlreadyScheduled`, `AlreadyPublished` or `OverlapTaken` where a sibling stands in the way.
    """
    actor, note = actor_name(actor), note_text(note)
    if force and note is None:
        raise Invalid(field="note", rule="is needed to go beyond the retry budget")
    with kernel.transaction(connection) as tx:
        failed = _held(tx, action)
        known = kernel.registry.get(failed.action_type)
        budget = (known.policy if known else Policy()).max_attempts
        below = None if force else budget
        try:
            with tx.savepoint():
                reopened = reopen_failed(tx, failed.id, below=below, now=kernel.now(tx), actor=actor, note=note)
        except IntegrityError as error:
            if not is_unique_violation(error):
                raise
            raise why_refused(tx, [failed])[failed.id] from None
        found = existing(tx, failed.id)
        if not reopened and found.status is Status.FAILED:
            raise RetriesExhausted(found.id, attempt_count=found.attempt_count, max_attempts=budget)
        if not reopened:
            raise MoveRefused(found.id, verb="retry", status=found.status, reason=found.reason)
        return found


def confirm(
    kernel: Kernel,
    action: UUID | str,
    *,
    provider_id: str | None = None,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> Action:
    """Say that an unconfirmed action did go out: it is published, and queued siblings are cancelled as duplicates.

    Raises `MoveRefused` unless it is unconfirmed, `SiblingRunning` while another action for its key runs.
    """
    actor, note = actor_name(actor), note_text(note)
    provider_id = text.optional_name(provider_id, field="provider_id")
    with kernel.transaction(connection) as tx:
        doubtful = _held(tx, action)
        now = kernel.now(tx)
        if not confirm_unconfirmed(tx, doubtful.id, provider_id=provider_id, now=now, actor=actor, note=note):
            raise _not_unconfirmed(tx, doubtful.id, "confirm")
        ended = {doubtful.id, *_end_siblings(tx, doubtful, now=now, actor=actor)}
        tell_settled(tx, kernel.registry, dict.fromkeys(ended, doubtful.action_type), now=now)
        return existing(tx, doubtful.id)


def dismiss(
    kernel: Kernel,
    action: UUID | str,
    *,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> Action:
    """Say that an unconfirmed action did not go out: it stays failed, and its key is free.

    Raises `MoveRefused` unless it is unconfirmed.
    """
    actor, note = actor_name(actor), note_text(note)
    with kernel.transaction(connection) as tx:
        doubtful = _held(tx, action)
        now = kernel.now(tx)
        if not dismiss_unconfirmed(tx, doubtful.id, now=now, actor=actor, note=note):
            raise _not_unconfirmed(tx, doubtful.id, "dismiss")
        tell_settled(tx, kernel.registry, {doubtful.id: doubtful.action_type}, now=now)
        return existing(tx, doubtful.id)


def _held(tx: Transaction, action: UUID | str) -> Action:
    """Return the action, with its owners kept from being deleted meanwhile."""
    found = existing(tx, action_uuid(action))
    hold_owners(tx, workspaces=[found.workspace_id], users=[found.user_id])
    return found


def _end_siblings(tx: Transaction, confirmed: Action, *, now: datetime, actor: str) -> frozenset[UUID]:
    """Cancel queued actions for what has gone out. Raises `SiblingRunning` where one of them runs already."""
    if confirmed.key is None:
        return frozenset()
    waiting = []
    for sibling in siblings(tx, confirmed.key):
        if sibling.running:
            raise SiblingRunning(confirmed.id, sibling=sibling.action_id)
        waiting.append(sibling.action_id)
    return withdraw_queued(tx, waiting, cause=Cause.DUPLICATE, reason=Reason.DUPLICATE, now=now, actor=actor)


def _not_unconfirmed(tx: Transaction, action_id: UUID, verb: str) -> MoveRefused:
    found = existing(tx, action_id)
    return MoveRefused(action_id, verb=verb, status=found.status, reason=found.reason)
