"""Whose actions are these, do the owners exist, and in which zone do they live?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from postdate.errors import OwnerNotFound
from postdate.store.schema import SYSTEM_PROFILE
from postdate.store.sets import one_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from sqlalchemy import Table

    from postdate.store.transaction import Transaction

WORKSPACE, PROFILE = "workspace", "profile"
"""What an owner is."""


def hold_owners(tx: Transaction, *, workspaces: Iterable[UUID | None], users: Iterable[UUID]) -> None:
    """Keep these owners from being deleted until the transaction ends, as a foreign key would.

    Raises `OwnerNotFound` naming the first that does not exist.
    """
    missing = missing_owners(tx, workspaces=workspaces, users=users)
    for error in missing.values():
        raise error


def missing_owners(
    tx: Transaction, *, workspaces: Iterable[UUID | None], users: Iterable[UUID]
) -> dict[tuple[str, UUID], OwnerNotFound]:
    """Hold the owners that exist, and return an error for each that does not: by what it is, and its id."""
    wanted_workspaces = {workspace for workspace in workspaces if workspace is not None}
    wanted_users = set(users) - {SYSTEM_PROFILE}  # the system profile cannot be deleted
    return {
        **_missing(tx, tx.tables.workspaces, WORKSPACE, wanted_workspaces),
        **_missing(tx, tx.tables.profiles, PROFILE, wanted_users),
    }


def _missing(tx: Transaction, table: Table, what: str, wanted: set[UUID]) -> dict[tuple[str, UUID], OwnerNotFound]:
    if not wanted:
        return {}
    held = select(table.c.id).where(one_of(tx, table.c.id, wanted)).order_by(table.c.id)
    found = set(tx.execute(held.with_for_update(read=True, key_share=True)).scalars())
    return {(what, owner): OwnerNotFound(what=what, ident=owner) for owner in sorted(wanted - found)}


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
