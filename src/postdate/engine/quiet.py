"""What of a claim falls into the quiet hours of its workspace, and when may it run?"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from postdate.domain.outcome import Deferred
from postdate.domain.quiet import quiet_until
from postdate.domain.text import cleaned
from postdate.errors import InvalidZone
from postdate.kernel import default_zone
from postdate.store.quiet import quiet_hours

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.action import Action
    from postdate.domain.quiet import QuietHours
    from postdate.kernel import ZoneOf
    from postdate.store.transaction import Transaction

LOOK_AGAIN = timedelta(hours=1)
"""When quiet hours are looked at again whose zone nobody can read: until then nothing disturbs anybody."""

_A_MOMENT = timedelta(seconds=1)


class QuietLook:
    """One look at the quiet hours of the workspaces whose actions were claimed."""

    def __init__(self, tx: Transaction, actions: Sequence[Action], *, now: datetime, zone_of: ZoneOf | None) -> None:
        self._tx = tx
        self._now = now
        self._zone_of = None if zone_of is None else partial(_told, zone_of)
        self._hours = _by_workspace(tx, {action.workspace_id for action in actions})
        self._ends: dict[tuple[object, ...], datetime | None] = {}

    def deferral(self, action: Action) -> Deferred | None:
        """Return until when the action waits; None where it may run now.

        One that expires first does not wait longer than that.
        """
        hours = tuple(
            each
            for of_type, each in self._hours.get(action.workspace_id, ())
            if of_type is None or of_type == action.action_type
        )
        if not hours:
            return None
        try:
            end = self._end(hours, action)
            why = "quiet hours"
        except InvalidZone as error:
            end, why = self._now + LOOK_AGAIN, f"quiet hours that cannot be read: {error}"
        if end is None:
            return None
        return Deferred(end if action.expires_at is None else min(end, action.expires_at + _A_MOMENT), why)

    def _end(self, hours: tuple[QuietHours, ...], action: Action) -> datetime | None:
        needed = any(each.tz is None for each in hours)
        place = (action.workspace_id, action.user_id if needed else None, hours)
        if place not in self._ends:
            tz = self._zone(action) if needed else "UTC"  # which is not read where each of them has its own
            self._ends[place] = quiet_until(hours, now=self._now, tz=tz)
        return self._ends[place]

    def _zone(self, action: Action) -> str:
        found = default_zone(self._tx, self._zone_of, workspace=action.workspace_id, user=action.user_id)
        if found is None:
            raise InvalidZone(field="tz", rule="is needed: neither the hours nor the workspace name one")
        return found


def _told(zone_of: ZoneOf, workspace: UUID | None, user: UUID) -> str | None:
    """Return what the host's function answers. Raises `InvalidZone` where that fails, whatever with."""
    try:
        return zone_of(workspace, user)
    except Exception as error:
        rule = f"is needed, and zone_of failed: {type(error).__name__}: {cleaned(error, limit=200)}"
        raise InvalidZone(field="tz", rule=rule) from error


def _by_workspace(
    tx: Transaction, workspaces: set[UUID | None]
) -> Mapping[UUID | None, Sequence[tuple[str | None, QuietHours]]]:
    wanted = {workspace for workspace in workspaces if workspace is not None}
    by_workspace: defaultdict[UUID | None, list[tuple[str | None, QuietHours]]] = defaultdict(list)
    for each in quiet_hours(tx, workspace_ids=wanted) if wanted else ():
        by_workspace[each.workspace_id].append((each.action_type, each.hours))
    return by_workspace
