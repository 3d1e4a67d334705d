"""Which endpoints are disabled, for whom and since when?

The owner is the action's workspace, else its user. A disabled endpoint goes with the action that found it gone, and so
with the owner.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, select

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import Select

    from postdate.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class DisabledEndpoint:
    """An address to which nothing is sent any more, and the action that was told so.

    `url` is in the spelling under which it is known. It is disabled for the action's workspace, else for its user.
    """

    url: str
    workspace_id: UUID | None
    user_id: UUID
    action_id: UUID
    disabled_at: datetime


def find_disabled(tx: Transaction, *, owner: UUID, url: str) -> DisabledEndpoint | None:
    """Return the endpoint as it was disabled; None where it is not."""
    table = tx.tables.disabled_endpoints
    found = _described(tx).where(table.c.owner_id == owner, table.c.digest == _digest(url))
    row = tx.execute(found).mappings().one_or_none()
    return None if row is None else DisabledEndpoint(**row)


def disable_if_action_exists(tx: Transaction, *, owner: UUID, url: str, action_id: UUID, now: datetime) -> bool:
    """Disable the endpoint, if the action is still there, and say whether that changed anything.

    An action whose owner is being deleted is gone when that transaction has ended, and disables nothing.
    """
    actions, table = tx.tables.actions, tx.tables.disabled_endpoints
    held = select(actions.c.id).where(actions.c.id == action_id).with_for_update(read=True, key_share=True)
    if tx.execute(held).scalar() is None:
        return False
    row = {"owner_id": owner, "digest": _digest(url), "url": url, "action_id": action_id, "disabled_at": now}
    disabling = tx.insert(table).values(row).on_conflict_do_nothing().returning(table.c.digest)
    return tx.execute(disabling).scalar() is not None


def enable_if_disabled(tx: Transaction, *, owner: UUID, url: str) -> bool:
    """Enable the endpoint, and say whether it was disabled."""
    table = tx.tables.disabled_endpoints
    gone = delete(table).where(table.c.owner_id == owner, table.c.digest == _digest(url))
    return tx.execute(gone.returning(table.c.digest)).scalar() is not None


def disabled_endpoints(tx: Transaction, *, owner: UUID | None, limit: int) -> list[DisabledEndpoint]:
    """Return the disabled endpoints of one owner, or of all where None is named, the latest first."""
    table = tx.tables.disabled_endpoints
    wanted = _described(tx).order_by(table.c.disabled_at.desc(), table.c.digest, table.c.owner_id).limit(limit)
    if owner is not None:
        wanted = wanted.where(table.c.owner_id == owner)
    return [DisabledEndpoint(**row) for row in tx.execute(wanted).mappings()]


def _described(tx: Transaction) -> Select[Any]:
    actions, table = tx.tables.actions, tx.tables.disabled_endpoints
    told = select(table.c.url, actions.c.workspace_id, actions.c.user_id, table.c.action_id, table.c.disabled_at)
    return told.join_from(table, actions, actions.c.id == table.c.action_id)


def _digest(url: str) -> str:
    """Return what stands for the URL in the key: a B-tree takes no text as long as a URL may be."""
    return hashlib.sha256(url.encode()).hexdigest()
