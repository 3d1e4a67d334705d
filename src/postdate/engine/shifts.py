"""What is still to come whose wall time means another instant now?"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from postdate.domain.intent import shift
from postdate.domain.text import cleaned
from postdate.store.intents import Owner, Stretch, intended_in, owners_zones, zones_in_use

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.intent import Intended, Shift, ZonePolicy
    from postdate.kernel import Kernel
    from postdate.store.intents import OwnersZone
    from postdate.store.transaction import Transaction

Move: TypeAlias = tuple[Owner, str, str]
"""Whose zone was which, and is which now."""

_READ = 2000
"""How many actions, or owners, are looked at in one go."""


def policy_of(kernel: Kernel, intended: Intended) -> ZonePolicy:
    """Return what becomes of the action where its wall time shifts: by its own word, its type's, or the setting."""
    known = kernel.registry.get(intended.action_type)
    of_type = None if known is None else known.zone_policy
    return intended.intent.zone_policy or of_type or kernel.settings.zone_policy


def zone_now(kernel: Kernel, found: OwnersZone) -> str | None:
    """Return the zone that the owner has now, None for none. Raises what the host's `zone_of` raises."""
    zone_of, owner = kernel.zone_of, found.owner
    named = None if zone_of is None else zone_of(owner.workspace_id, owner.user_id)
    return named if named is not None else found.now_in


class Walk:
    """One walk over what is still to come by wall times, a batch at a time: only a batch is ever in memory."""

    def __init__(
        self,
        kernel: Kernel,
        *,
        now: datetime,
        by_rules: bool = True,
        but: Collection[Move] = frozenset(),
        workspace_id: UUID | None = None,
    ) -> None:
        """Walk over what was scheduled in owners' zones that are others now, but for `but`; with `by_rules`, over all.

        With `workspace_id`, over what that workspace owns.
        """
        self._kernel = kernel
        self._now = now
        self._by_rules = by_rules
        self._but = but
        self._workspace_id = workspace_id
        self._moved: dict[tuple[Owner, str], str] = {}
        self._stretches: list[Stretch] = []
        self._after: Intended | None = None
        self.looked = 0
        """How many actions were looked at so far."""
        self.problems: list[str] = []
        """What kept owners' zones from being known."""

    @property
    def moves(self) -> set[Move]:
        """The owners whose zone is another now."""
        return {(owner, tz, now_in) for (owner, tz), now_in in self._moved.items()}

    def begin(self, tx: Transaction) -> None:
        """Find out who has moved, and what there is to walk over."""
        self._find_moves(tx)
        looked_through = {(owner, tz) for owner, tz, now_in in self._but if self._moved.get((owner, tz)) == now_in}
        self._stretches = [
            Stretch(tz=tz, owner=owner)
            for owner, tz in self._moved
            if (owner, tz) not in looked_through and self._workspace_id in {None, owner.workspace_id}
        ]
        if self._by_rules:
            self._stretches += [Stretch(tz=tz) for tz in zones_in_use(tx)]
        self._stretches.reverse()

    def following(self, tx: Transaction) -> list[Shift] | None:
        """Return what has shifted in the next batch, maybe nothing; None at the end."""
        if not self._stretches:
            return None
        stretch = self._stretches[-1]
        batch = intended_in(tx, stretch, now=self._now, limit=_READ, after=self._after, workspace_id=self._workspace_id)
        self._after = batch[-1] if len(batch) == _READ else None
        if self._after is None:
            self._stretches.pop()
        if stretch.owner is not None:
            tz = self._moved[stretch.owner, stretch.tz]
        else:
            tz = stretch.tz
            batch = [each for each in batch if not self._has_moved(each)]  # they are walked over by themselves
        self.looked += len(batch)
        found = (shift(each, tz=tz, policy=policy_of(self._kernel, each), now=self._now) for each in batch)
        return [each for each in found if each is not None]

    def _find_moves(self, tx: Transaction) -> None:
        after, by_tables = None, self._kernel.zone_of is None
        while page := owners_zones(tx, now=self._now, limit=_READ, after=after, moved_only=by_tables):
            for each in page:
                now_in = self._now_in(each)
                if now_in is not None and now_in != each.tz:
                    self._moved[each.owner, each.tz] = now_in
            after = page[-1] if len(page) == _READ else None
            if after is None:
                return

    def _now_in(self, found: OwnersZone) -> str | None:
        try:
            return zone_now(self._kernel, found)
        except Exception as error:  # noqa: BLE001 - the host's own function; other owners have nothing to do with it
            owner = found.owner
            whose = f"workspace {owner.workspace_id}" if owner.workspace_id else f"user {owner.user_id}"
            self.problems.append(cleaned(f"zone_of {whose}: {type(error).__name__}: {error}", limit=200))
            return None

    def _has_moved(self, intended: Intended) -> bool:
        owner = Owner(user_id=intended.user_id, workspace_id=intended.workspace_id)
        return intended.intent.tz_source == "owner" and (owner, intended.intent.tz) in self._moved
