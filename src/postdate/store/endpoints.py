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

    from sqlalchemy import Column, Table

    from postdate.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class DisabledEndpoint:
    """An address to which nothing is sent any more, and the action that found it gone."""

    owner_id: UUID
    url: str
    action_id: UUID
    disabled_at: datetime


def disabled_since(tx: Transaction, *, owner: UUID, url: str) -> datetime | None:
    """Return when the endpoint was disabled; None where it is not."""
    table = tx.tables.disabled_endpoints
    found = select(table.c.disabled_at).where(table.c.owner_id == owner, table.c.digest == _digest(url))
    since: datetime | None = tx.execute(found).scalar()
    return since


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


def enable_if_disabled(tx: Transaction, *, owner: UUID, url: str) -> DisabledEndpoint | None:
    """Enable the endpoint and return what it was; None where it was not disabled."""
    table = tx.tables.disabled_endpoints
    gone = delete(table).where(table.c.owner_id == owner, table.c.digest == _digest(url))
    row = tx.execute(gone.returning(*_described(table))).mappings().first()
    return None if row is None else DisabledEndpoint(**row)


def disabled_endpoints(tx: Transaction, *, owner: UUID, limit: int) -> list[DisabledEndpoint]:
    """Return the owner's disabled endpoints, the latest first."""
    table = tx.tables.disabled_endpoints
    found = (
        select(*_described(table))
        .where(table.c.owner_id == owner)
        .order_by(table.c.disabled_at.desc(), table.c.digest)
        .limit(limit)
    )
    return [DisabledEndpoint(**row) for row in tx.execute(found).mappings()]


def _described(table: Table) -> list[Column[Any]]:
    return [table.c.owner_id, table.c.url, table.c.action_id, table.c.disabled_at]


def _digest(url: str) -> str:
    """Return what stands for the URL in the key: a B-tree takes no text as long as a URL may be."""
    return hashlib.sha256(url.encode()).hexdigest()
