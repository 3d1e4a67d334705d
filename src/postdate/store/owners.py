"""Whose actions are these, do the owners exist, and in which zone do they live?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, literal_column, select, union_all

from postdate.errors import OwnerNotFound
from postdate.store.schema import SYSTEM_PROFILE
from postdate.store.sets import one_of_named, set_text
from postdate.store.types import Identifier

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from sqlalchemy import CompoundSelect

    from postdate.store.transaction import Transaction

WORKSPACE, PROFILE = "workspace", "profile"
"""What an owner is."""


def hold_owners(tx: Transaction, *, workspaces: Iterable[UUID | None], users: Iterable[UUID]) -> None:
    """Keep these owners from being deleted until the transaction ends, as a foreign key would.

    Raises `OwnerNotFound` naming the first that does not exist.
    """
    missing = hold_existing_owners(tx, workspaces=workspaces, users=users)
    for error in missing.values():
        raise error


def hold_existing_owners(
    tx: Transaction, *, workspaces: Iterable[UUID | None], users: Iterable[UUID]
) -> dict[tuple[str, UUID], OwnerNotFound]:
    """Keep those of these owners that exist from being deleted until the transaction ends, as `hold_owners` does.

    It comes before anything of theirs is locked: whoever deletes an owner takes the owner first, and what it owns
    afterwards. Returns an error for each owner that does not exist: by what it is, and its id.
    """
    owners = {
        WORKSPACE: {workspace for workspace in workspaces if workspace is not None},
        PROFILE: set(users) - {SYSTEM_PROFILE},  # which cannot be deleted
    }
    wanted = {what: ids for what, ids in owners.items() if ids}
    if not wanted:
        return {}
    texts = {what: set_text(tx.tables, Identifier(), ids) for what, ids in wanted.items()}
    found = {(row.what, row.id) for row in tx.execute(tx.prepared(_held, tuple(wanted)), texts)}
    asked = [(what, owner) for what, ids in wanted.items() for owner in sorted(ids)]
    return {each: OwnerNotFound(what=each[0], ident=each[1]) for each in asked if each not in found}


def _held(tx: Transaction, kinds: Sequence[str]) -> CompoundSelect[Any]:
    """Return the statement that holds owners of these kinds, and answers which there are."""
    tables = {WORKSPACE: tx.tables.workspaces, PROFILE: tx.tables.profiles}
    held = []
    for what in kinds:
        table = tables[what]
        rows = select(table.c.id).where(one_of_named(tx, table.c.id, what)).order_by(table.c.id)
        rows = rows.with_for_update(read=True, key_share=True)
        held.append(select(literal_column(f"'{what}'", Text).label("what"), rows.subquery(what).c.id))
    return union_all(*held)


def zone_of_owner(tx: Transaction, *, workspace: UUID | None, user: UUID) -> str | None:
    """Return the workspace's `settings.account_timezone`, else the profile's `tz`, else None (P5).

    Of tables of the host's own we know no zone: there `zone_of` answers.
    """
    workspaces, profiles = tx.tables.workspaces, tx.tables.profiles
    if workspace is not None and "settings" in workspaces.c:
        settings = tx.execute(select(workspaces.c.settings).where(workspaces.c.id == workspace)).scalar()
        zone = settings.get("account_timezone") if isinstance(settings, dict) else None
        if zone is not None:
            return str(zone)
    if "tz" not in profiles.c:
        return None
    return tx.execute(select(profiles.c.tz).where(profiles.c.id == user)).scalar()
