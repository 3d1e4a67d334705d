"""What is still to come by a wall time: in which zone, and of which owner?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy import Text, func, literal, literal_column, null, select, tuple_

from postdate.domain.action import RECURRING
from postdate.domain.intent import Intended
from postdate.store.actions import INTENT, intent_of

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Row
    from sqlalchemy.sql.expression import ColumnElement

    from postdate.store.transaction import Transaction

_INTENDED = (
    "id",
    "action_type",
    "workspace_id",
    "user_id",
    "publish_at",
    "expires_at",
    *INTENT,
    "origin",
    "origin_id",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Owner:
    """Who has something to come in a zone that was theirs when it was scheduled."""

    user_id: UUID
    workspace_id: UUID | None


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnersZone:
    """A zone that was an owner's when they scheduled something, and the one that our own tables tell now."""

    owner: Owner
    tz: str
    now_in: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """What is still to come in one zone: of everybody, or of one owner whose zone it was."""

    tz: str
    owner: Owner | None = None


def zones_in_use(tx: Transaction) -> list[str]:
    """Return every zone that an action names, however many there are: from one to the next in the index."""
    a = tx.tables.actions
    first = select(a.c.tz).where(a.c.tz.is_not(None)).order_by(a.c.tz).limit(1)
    found = select(first.scalar_subquery().label("tz")).cte("found", recursive=True)
    following = select(a.c.tz).where(a.c.tz > found.c.tz).order_by(a.c.tz).limit(1).correlate(found).scalar_subquery()
    found = found.union_all(select(following).where(found.c.tz.is_not(None)))
    return list(tx.execute(select(found.c.tz).where(found.c.tz.is_not(None))).scalars())


def intended_in(
    tx: Transaction,
    stretch: Stretch,
    *,
    now: datetime,
    limit: int,
    after: Intended | None = None,
    workspace_id: UUID | None = None,
) -> list[Intended]:
    """Return up to `limit` unclaimed actions of the stretch that are due later than `now`, beginning behind `after`.

    They come in the order of `(publish_at, id)`; with `workspace_id`, those of one workspace.
    """
    a, q = tx.tables.actions, tx.tables.queue
    query = (
        select(*(a.c[name] for name in _INTENDED))
        .select_from(a.join(q, q.c.action_id == a.c.id))
        .where(*_within(tx, stretch), a.c.publish_at > now, q.c.lease_until.is_(None))
        .order_by(a.c.publish_at, a.c.id)
        .limit(limit)
    )
    if after is not None:
        place = literal(after.publish_at, a.c.publish_at.type), literal(after.action_id, a.c.id.type)
        query = query.where(tuple_(a.c.publish_at, a.c.id) > tuple_(*place))
    if workspace_id is not None:
        query = query.where(a.c.workspace_id == workspace_id)
    return [_intended(row) for row in tx.execute(query)]


def _within(tx: Transaction, stretch: Stretch) -> list[ColumnElement[bool]]:
    a = tx.tables.actions
    if stretch.owner is None:
        return [a.c.tz == stretch.tz]
    workspace = stretch.owner.workspace_id
    return [
        _in_owners_zone(tx),
        a.c.user_id == stretch.owner.user_id,
        a.c.workspace_id.is_(None) if workspace is None else a.c.workspace_id == workspace,
        a.c.tz == stretch.tz,
    ]


def _in_owners_zone(tx: Transaction) -> ColumnElement[bool]:
    # written out, so that every plan sees that the partial index of owners' zones will do
    return tx.tables.actions.c.tz_source == literal_column("'owner'")


def _intended(row: Row[Any]) -> Intended:
    return Intended(
        action_id=row.id,
        action_type=row.action_type,
        workspace_id=row.workspace_id,
        user_id=row.user_id,
        publish_at=row.publish_at,
        expires_at=row.expires_at,
        intent=intent_of([getattr(row, name) for name in INTENT]),
        rule_id=_rule_id(row) if row.origin == RECURRING else None,
    )


def _rule_id(row: Row[Any]) -> UUID | None:
    try:
        return UUID(row.origin_id)
    except (TypeError, ValueError):  # other programs may write what they like
        return None


def owners_zones(
    tx: Transaction, *, now: datetime, limit: int, after: OwnersZone | None = None, moved_only: bool = False
) -> list[OwnersZone]:
    """Return up to `limit` zones of owners in which something is due later than `now`, beginning behind `after`.

    With `moved_only`, those whose owner has another zone by our own tables. Those without a workspace come last.
    """
    found: list[OwnersZone] = []
    if after is None or after.owner.workspace_id is not None:
        found = _owners_page(tx, in_workspace=True, now=now, limit=limit, after=after, moved_only=moved_only)
        after = None
    if len(found) < limit:
        left = limit - len(found)
        found += _owners_page(tx, in_workspace=False, now=now, limit=left, after=after, moved_only=moved_only)
    return found


def _owners_page(
    tx: Transaction, *, in_workspace: bool, now: datetime, limit: int, after: OwnersZone | None, moved_only: bool
) -> list[OwnersZone]:
    """Return a page in the order of the index, in which nulls stand first or last: so they have pages of their own."""
    a = tx.tables.actions
    in_order = ("user_id", "workspace_id", "tz") if in_workspace else ("user_id", "tz")
    there = a.c.workspace_id.is_not(None) if in_workspace else a.c.workspace_id.is_(None)
    zones = (
        select(a.c.user_id, a.c.workspace_id, a.c.tz).distinct().where(_in_owners_zone(tx), there, a.c.publish_at > now)
    )
    if after is not None:
        told = {"user_id": after.owner.user_id, "workspace_id": after.owner.workspace_id, "tz": after.tz}
        place = (literal(told[name], a.c[name].type) for name in in_order)
        zones = zones.where(tuple_(*(a.c[name] for name in in_order)) > tuple_(*place))
    found = zones.subquery("found")
    now_in = _zone_now(tx, found.c.user_id, found.c.workspace_id)
    page = select(found, now_in.label("now_in")).order_by(*(found.c[name] for name in in_order)).limit(limit)
    if moved_only:
        page = page.where(now_in != found.c.tz)
    return [
        OwnersZone(owner=Owner(user_id=row.user_id, workspace_id=row.workspace_id), tz=row.tz, now_in=row.now_in)
        for row in tx.execute(page)
    ]


def _zone_now(tx: Transaction, user_id: ColumnElement[Any], workspace_id: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return what `zone_of_owner` returns, for many: the workspace's zone, else the profile's (P5)."""
    workspaces, profiles = tx.tables.workspaces, tx.tables.profiles
    told: list[ColumnElement[Any]] = [null()]  # so that there is something to choose from
    if "settings" in workspaces.c:
        named = workspaces.c.settings.op("->>", return_type=Text())(literal_column("'account_timezone'", Text))
        told.append(select(named).where(workspaces.c.id == workspace_id).scalar_subquery())
    if "tz" in profiles.c:
        told.append(select(profiles.c.tz).where(profiles.c.id == user_id).scalar_subquery())
    return func.coalesce(*told, null(), type_=Text())
