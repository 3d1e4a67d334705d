"""How does a person see which wall times have shifted, and say what becomes of them?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from postdate.domain.action import replacement
from postdate.domain.moment import expiry
from postdate.domain.states import Status
from postdate.domain.walltime import resolve
from postdate.domain.zones import tzdata_version
from postdate.engine.shifts import Walk
from postdate.engine.zones import rules_gone_by
from postdate.errors import Invalid, MoveRefused
from postdate.verbs.arguments import DEFAULT_ACTOR, action_uuid, actor_name, note_text, page_limit, workspace_uuid
from postdate.verbs.change import replace_queued
from postdate.verbs.read import existing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from postdate.domain.action import Action, Intent
    from postdate.domain.intent import Shift, ZonePolicy
    from postdate.kernel import Connectable, Kernel, Unbegun
    from postdate.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class ZoneCheck:
    """What would become of the queue by the zones and rules in force here."""

    tzdata: str
    """The version of the rules in force here."""
    gone_by: str | None
    """The newest version that the engine has gone over the queue by; None before it first did."""
    looked: int
    """How many actions by a wall time are still to come."""
    counts: Mapping[ZonePolicy, int]
    """How many have shifted, by what becomes of them."""
    shifts: Sequence[Shift]
    """The first of them."""
    problems: Sequence[str] = ()
    """Whose zone cannot be told, and why."""


def check_zones(
    kernel: Kernel,
    *,
    workspace: UUID | str | None = None,
    limit: int = 100,
    connection: Connectable | Unbegun | None = None,
) -> ZoneCheck:
    """Return which wall times mean another instant now than their queued actions have, and change nothing.

    It looks at everything that is still to come, or at what a workspace owns, and tells of the first `limit`. What is
    to be followed the engine replaces within a minute. Raises `Invalid`.
    """
    workspace_id = None if workspace is None else workspace_uuid(workspace)
    limit = page_limit(limit)
    counts: Counter[ZonePolicy] = Counter()
    told: list[Shift] = []
    with kernel.transaction(connection, read_only=True) as tx:
        walk = Walk(kernel, now=kernel.now(tx), workspace_id=workspace_id)
        walk.begin(tx)
        while (shifts := walk.following(tx)) is not None:
            counts.update(each.course for each in shifts)
            told += shifts[: limit - len(told)]
        gone_by = rules_gone_by(tx)
    return ZoneCheck(
        tzdata=tzdata_version()[0],
        gone_by=gone_by,
        looked=walk.looked,
        counts=counts,
        shifts=told,
        problems=walk.problems,
    )


def follow_zone(
    kernel: Kernel,
    action: UUID | str,
    *,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> Action:
    """Move a queued action to the instant that its wall time means now; one that is past fires it at once.

    Returns the new action, whose `replaces_id` names the old, or the old one where it means what it meant. A pin is
    taken away. Raises `MoveRefused` where it is not queued, `InvalidZone` or `InvalidWallTime` where it means nothing
    any more, and `Invalid` where it was not scheduled by a wall time.
    """
    actor, note = actor_name(actor), note_text(note)
    with kernel.transaction(connection) as tx:
        old, intent = _queued_by_wall_time(tx, action, verb="follow the zone of")
        tz = intent.tz
        if intent.tz_source == "owner":
            owners = kernel.default_zone(tx, workspace=old.workspace_id, user=old.user_id)
            tz = owners if owners is not None else tz
        means = resolve(intent.wall_time, tz, gap=intent.gap, fold=intent.fold)
        policy = None if intent.zone_policy == "pin" else intent.zone_policy
        if (means, policy) == (old.publish_at, intent.zone_policy):
            return old
        now = kernel.now(tx)
        new = replacement(
            old,
            id=kernel.new_id(now),
            created_at=now,
            publish_at=means,
            intent=replace(intent, tz=tz, zone_policy=policy),
            expires_at=expiry(old.expires_at, publish_at=means),
        )
        return replace_queued(kernel, tx, old, new, verb="follow the zone of", actor=actor, note=note)


def pin_zone(
    kernel: Kernel,
    action: UUID | str,
    *,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> Action:
    """Let a queued action keep its instant, whatever its wall time comes to mean.

    Returns the new action that says so, whose `replaces_id` names the old; one that is pinned stays. Raises
    `MoveRefused` where it is not queued, and `Invalid` where it was not scheduled by a wall time.
    """
    actor, note = actor_name(actor), note_text(note)
    with kernel.transaction(connection) as tx:
        old, intent = _queued_by_wall_time(tx, action, verb="pin")
        if intent.zone_policy == "pin":
            return old
        now = kernel.now(tx)
        new = replacement(old, id=kernel.new_id(now), created_at=now, intent=replace(intent, zone_policy="pin"))
        return replace_queued(kernel, tx, old, new, verb="pin", actor=actor, note=note)


def _queued_by_wall_time(tx: Transaction, action: UUID | str, *, verb: str) -> tuple[Action, Intent]:
    old = existing(tx, action_uuid(action))
    if old.intent is None:
        raise Invalid(field="action", rule="must have been scheduled by a wall time", value=str(old.id))
    if old.status is not Status.QUEUED:
        raise MoveRefused(old.id, verb=verb, status=old.status, reason=old.reason)
    return old, old.intent
