"""How is a queued action cancelled or moved?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from postdate.domain.action import SCHEDULED, replacement
from postdate.domain.moment import expiry, moment
from postdate.domain.states import Cause, Reason, Status
from postdate.errors import MoveRefused
from postdate.hooks import tell_settled
from postdate.store.actions import insert_actions
from postdate.store.events import append_events, event_row
from postdate.store.idempotency import release_keys_of
from postdate.store.outcomes import withdraw_queued
from postdate.store.owners import hold_owners
from postdate.verbs.arguments import DEFAULT_ACTOR, action_uuid, actor_name, note_text
from postdate.verbs.intake import why_refused
from postdate.verbs.read import existing

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.action import Action, Request
    from postdate.domain.intent import ZonePolicy
    from postdate.domain.walltime import Fold, Gap
    from postdate.kernel import Connectable, Kernel, Unbegun
    from postdate.store.transaction import Transaction


def cancel(
    kernel: Kernel,
    action: UUID | str,
    *,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    free_idempotency_key: bool = False,
    connection: Connectable | Unbegun | None = None,
) -> Action:
    """Cancel an action if it is still queued, and return it as it then stands (P68).

    Idempotent; past queued it changes nothing, and the answer's `status` says so. Raises `ActionNotFound`.
    """
    action_id, actor, note = action_uuid(action), actor_name(actor), note_text(note)
    with kernel.transaction(connection) as tx:
        now = kernel.now(tx)
        withdrawn = withdraw_queued(
            tx, [action_id], cause=Cause.CANCEL, reason=Reason.USER, now=now, actor=actor, note=note
        )
        if withdrawn and free_idempotency_key:
            release_keys_of(tx, action_id)
        found = existing(tx, action_id)
        tell_settled(tx, kernel.registry, dict.fromkeys(withdrawn, found.action_type), now=now)
        return found


def reschedule(
    kernel: Kernel,
    action: UUID | str,
    *,
    at: datetime | str,
    tz: str | None = None,
    gap: Gap | None = None,
    fold: Fold | None = None,
    zone_policy: ZonePolicy | None = None,
    expires_at: datetime | str | None = None,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> Action:
    """Move a queued action: cancel it and insert one that is the same but for its time (P31, P69).

    A wall time is read in `tz`, else in the zone of the first wall time, else in the owner's; `gap`, `fold` and
    `zone_policy` are those of the first one, unless they are given. Returns the new action, whose `replaces_id` names
    the old. Raises `MoveRefused` where the old one is no longer queued, and what `schedule` raises.
    """
    actor, note = actor_name(actor), note_text(note)
    with kernel.transaction(connection) as tx:
        old = existing(tx, action_uuid(action))

        def zone() -> str | None:
            if old.intent is not None:
                return old.intent.tz
            return kernel.default_zone(tx, workspace=old.workspace_id, user=old.user_id)

        when = moment(
            at,
            tz=tz,
            gap=gap or (old.intent.gap if old.intent else "forward"),
            fold=fold or (old.intent.fold if old.intent else "first"),
            default_zone=zone,
            zone_policy=zone_policy or (old.intent.zone_policy if old.intent else None),
        )
        intent = when.intent
        if tz is None and intent is not None and old.intent is not None:
            intent = replace(intent, tz_source=old.intent.tz_source)
        now = kernel.now(tx)
        new = replacement(
            old,
            id=kernel.new_id(now),
            created_at=now,
            publish_at=when.publish_at,
            intent=intent,
            expires_at=expiry(expires_at or old.expires_at, publish_at=when.publish_at),
        )
        return replace_queued(kernel, tx, old, new, verb="reschedule", actor=actor, note=note)


def post_now(
    kernel: Kernel,
    action: UUID | str,
    *,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> Action:
    """Fire a queued action now, by moving it; one that is published goes out once more, as a new occurrence.

    Returns the new action. Raises `MoveRefused` in every other state, and what `reschedule` raises.
    """
    actor, note = actor_name(actor), note_text(note)
    with kernel.transaction(connection) as tx:
        old = existing(tx, action_uuid(action))
        now = kernel.now(tx)
        new = replacement(old, id=kernel.new_id(now), created_at=now, publish_at=now, intent=None)
        if old.status is Status.PUBLISHED:
            hold_owners(tx, workspaces=[old.workspace_id], users=[old.user_id])
            again = replace(new, expires_at=None, occurrence=now.isoformat(), fingerprint=None)
            return _insert(tx, again, actor=actor, note=note)
        expiry(old.expires_at, publish_at=now)
        return replace_queued(kernel, tx, old, new, verb="post now", actor=actor, note=note)


def replace_queued(
    kernel: Kernel, tx: Transaction, old: Action, new: Request, *, verb: str, actor: str, note: str | None
) -> Action:
    """Put a request in the place of a queued action. Raises `MoveRefused`, or what stands in the request's way."""
    hold_owners(tx, workspaces=[old.workspace_id], users=[old.user_id])
    withdrawn = withdraw_queued(
        tx, [old.id], cause=Cause.REPLACE, reason=Reason.RESCHEDULED, now=new.created_at, actor=actor, note=note
    )
    if not withdrawn:
        found = existing(tx, old.id)
        raise MoveRefused(old.id, verb=verb, status=found.status, reason=found.reason)
    tell_settled(tx, kernel.registry, {old.id: old.action_type}, now=new.created_at)
    return _insert(tx, new, actor=actor, note=note)


def _insert(tx: Transaction, new: Request, *, actor: str, note: str | None) -> Action:
    admission = insert_actions(tx, [new])
    if new.id not in admission.admitted:
        raise admission.invalid.get(new.id) or why_refused(tx, [new])[new.id]
    replaced = str(new.replaces_id)
    event = event_row(
        new.id, new.workspace_id, at=new.created_at, cause=SCHEDULED, actor=actor, note=note, replaces=replaced
    )
    append_events(tx, [event])
    return existing(tx, new.id)
