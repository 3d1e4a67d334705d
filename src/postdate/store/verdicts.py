"""What may a person still decide about an action that failed?

Every function here names its guard and has it in the WHERE, and says whether it found what it was to change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert, null, select, update

from postdate.domain.action import RECONCILER
from postdate.domain.states import Cause, Reason, Status
from postdate.store.actions import announce_queued
from postdate.store.events import append_events, event_row

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from postdate.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class Sibling:
    """An active action with the same key, and whether somebody has it in hand."""

    action_id: UUID
    running: bool


def reopen_failed(
    tx: Transaction, action_id: UUID, *, below: int | None, now: datetime, actor: str, note: str | None = None
) -> bool:
    """Queue a failed action again, due now, and say whether it was there (P71, P73).

    With `below`, only where fewer attempts than that were made. The publish guard looks at the new queue row: an
    IntegrityError means that a sibling went out.
    """
    o, a, q = tx.tables.outcomes, tx.tables.actions, tx.tables.queue
    within = () if below is None else (o.c.attempt_count < below,)
    old = tx.execute(
        delete(o)
        .where(o.c.action_id == action_id, o.c.status == Status.FAILED, *within)
        .returning(o.c.workspace_id, o.c.attempt_count, o.c.reason, o.c.last_error, o.c.user_id, o.c.key)
    ).one_or_none()
    if old is None:
        return False
    asked = tx.execute(
        select(a.c.action_type, a.c.overlap_key, a.c.origin, a.c.origin_id).where(a.c.id == action_id)
    ).one()
    tx.execute(
        insert(q).values(
            action_id=action_id,
            action_type=asked.action_type,
            workspace_id=old.workspace_id,
            user_id=old.user_id,
            key=old.key,
            overlap_key=asked.overlap_key,
            source=asked.origin_id if asked.origin == RECONCILER else None,
            due_at=now,
            attempt_count=old.attempt_count,
        )
    )
    event = event_row(
        action_id,
        old.workspace_id,
        at=now,
        cause=Cause.RETRY,
        actor=actor,
        reason=old.reason,
        error=old.last_error,
        attempt=old.attempt_count,
        note=note,
    )
    append_events(tx, [event])
    announce_queued(tx, [now], now=now)
    return True


def confirm_unconfirmed(
    tx: Transaction,
    action_id: UUID,
    *,
    provider_id: str | None,
    now: datetime,
    actor: str,
    note: str | None = None,
) -> bool:
    """Record that an unconfirmed action did go out, and say whether it was unconfirmed."""
    verdict = {"status": Status.PUBLISHED, "reason": null(), "provider_id": provider_id}
    return _verdict(tx, action_id, verdict, cause=Cause.CONFIRM, now=now, actor=actor, note=note)


def dismiss_unconfirmed(
    tx: Transaction, action_id: UUID, *, now: datetime, actor: str, note: str | None = None
) -> bool:
    """Record that an unconfirmed action did not go out, and say whether it was unconfirmed. Its key is free."""
    verdict = {"reason": Reason.DISMISSED}
    return _verdict(tx, action_id, verdict, cause=Cause.DISMISS, now=now, actor=actor, note=note)


def _verdict(
    tx: Transaction,
    action_id: UUID,
    values: Mapping[str, Any],
    *,
    cause: Cause,
    now: datetime,
    actor: str,
    note: str | None,
) -> bool:
    o = tx.tables.outcomes
    row = tx.execute(
        update(o)
        .where(o.c.action_id == action_id, o.c.reason == Reason.UNCONFIRMED)
        .values(**values)
        .returning(o.c.workspace_id, o.c.last_error)
    ).one_or_none()
    if row is None:
        return False
    append_events(
        tx,
        [event_row(action_id, row.workspace_id, at=now, cause=cause, actor=actor, error=row.last_error, note=note)],
    )
    return True


def siblings(tx: Transaction, key: str) -> list[Sibling]:
    """Return the active actions with this key, their rows locked until the transaction ends."""
    q = tx.tables.queue
    active = select(q.c.action_id, q.c.lease_token.is_not(None).label("running")).where(q.c.key == key)
    return [Sibling(**row) for row in tx.execute(active.with_for_update()).mappings()]
