"""Which due actions does this process take next?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from postdate.domain.pause import stopped_types
from postdate.domain.restore import gone_back
from postdate.domain.settle import duplicate, expired, settle
from postdate.engine.misfire import missed
from postdate.engine.quiet import QuietLook
from postdate.engine.settle import Ending, ending_of, settle_set
from postdate.store.pauses import hold_claimed, hold_due, in_force
from postdate.store.queue import claim_due
from postdate.store.terms import claim_terms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from postdate.domain.action import Claimed
    from postdate.kernel import ZoneOf
    from postdate.registry import ActionType
    from postdate.store.terms import Terms
    from postdate.store.transaction import Transaction

BATCH = 500
"""The most that is claimed of one type at once."""

LOOK_AHEAD = 5_000
"""Among how many due actions of a type a round that meets a paused workspace looks for others of that workspace."""


@dataclass(frozen=True, kw_only=True)
class ClaimRound:
    """What one look at the queue brought."""

    runnable: Sequence[Claimed]
    settled: int
    """Claimed, but not to be run: expired, duplicates of what went out, missed repetitions, or within quiet hours."""
    held: int = 0
    """Put on hold, since their workspace is paused."""
    stopped: frozenset[str] = field(default_factory=frozenset)
    """The types of which nothing was claimed, since they are paused."""
    barred: bool = False
    """Whether nothing was claimed, since the whole installation is on hold."""

    @property
    def claimed(self) -> int:
        """How many due actions were found."""
        return len(self.runnable) + self.settled + self.held


def claim_round(
    tx: Transaction,
    free: Mapping[str, int],
    types: Mapping[str, ActionType],
    *,
    now: datetime,
    lease: timedelta,
    margin: timedelta,
    token: UUID,
    worker: str,
    zone_of: ZoneOf | None = None,
    seen: datetime | None = None,
    due_by: datetime | None = None,
) -> ClaimRound:
    """Claim what is due, for each type at most its free slots, and settle or hold at once what must not run.

    A claim lasts as long as its type's time-out, at most `lease`, and the margin; longer runs are renewed. All of the
    round's claims have one token, by which the engine finds them again if it never hears whether they were committed.
    Nothing is claimed from a database on hold, or from one that has lost the tick `seen`. What is due by `due_by`, a
    little later than `now`, is claimed ahead, as of then.
    """
    due_by = due_by or now
    terms = claim_terms(tx)
    if terms.held or gone_back(terms.last_tick_at, seen):
        return ClaimRound(runnable=(), settled=0, barred=True)
    stopped = stopped_types(terms.pauses)
    runnable: list[Claimed] = []
    settled = held = 0
    for name, slots in free.items():
        if name in stopped:
            continue
        claimed = claim_due(
            tx,
            action_type=name,
            now=now,
            due_by=due_by,
            limit=min(slots, BATCH),
            lease_token=token,
            lease_until=lease_end(types[name], now=due_by, lease=lease, margin=margin),
            worker=worker,
        )
        barred = _barred(claimed)
        left = _without(claimed, {ending.action_id for ending in barred})
        on_hold, more = _held(tx, left, terms, action_type=name, token=token, now=now)
        left = _without(left, on_hold)
        not_run_late = missed(tx, left, types[name].policy, now=now)
        left = _without(left, {ending.action_id for ending in not_run_late})
        deferred = _deferred(tx, left, types[name], terms, now=due_by, zone_of=zone_of)
        endings = [*barred, *not_run_late, *deferred]
        settle_set(tx, types, endings, now=now)
        runnable += _without(left, {ending.action_id for ending in deferred})
        settled += len(endings)
        held += len(on_hold) + more
    return ClaimRound(runnable=runnable, settled=settled, held=held, stopped=stopped & set(free))


def lease_end(action_type: ActionType, *, now: datetime, lease: timedelta, margin: timedelta) -> datetime:
    """Return when the lease of a claim made now ends (UTC), unless it is renewed."""
    return now + min(action_type.timeout, lease) + margin


def _without(claimed: Sequence[Claimed], action_ids: set[UUID]) -> Sequence[Claimed]:
    return [one for one in claimed if one.action.id not in action_ids] if action_ids else claimed


def _barred(claimed: Sequence[Claimed]) -> list[Ending]:
    """Return the ending of what must not run.

    The claim has looked at the guard once more: a caller's transaction above READ COMMITTED can pass its trigger (P66,
    P91).
    """
    barred = []
    for one in claimed:
        action = one.action
        begins = action.submitted_at
        if action.expires_at is not None and begins is not None and action.expires_at < begins:
            barred.append(ending_of(one, expired(attempt_count=action.attempt_count)))
        elif one.guarded:
            barred.append(ending_of(one, duplicate(attempt_count=action.attempt_count)))
    return barred


def _held(
    tx: Transaction, claimed: Sequence[Claimed], terms: Terms, *, action_type: str, token: UUID, now: datetime
) -> tuple[set[UUID], int]:
    """Put what belongs to paused workspaces on hold, and what is due next there, so that no crowd is met one by one.

    Return which of the claimed actions that were, and how many others.
    """
    if not terms.pauses:
        return set(), 0
    workspaces = {one.action.workspace_id for one in claimed}
    pausing = {
        pause.id: pause.workspace_id
        for pause in terms.pauses
        if pause.workspace_id is not None
        and pause.workspace_id in workspaces
        and pause.stops(workspace_id=pause.workspace_id, action_type=action_type)
    }
    if not pausing:
        return set(), 0
    paused = {pausing[pause_id] for pause_id in in_force(tx, pausing)}
    waiting = [one.action.id for one in claimed if one.action.workspace_id in paused]
    if not waiting:
        return set(), 0
    held = hold_claimed(tx, lease_token=token, action_ids=waiting)
    more = hold_due(tx, action_type=action_type, workspace_ids=paused, now=now, among=LOOK_AHEAD)
    return held, more


def _deferred(
    tx: Transaction,
    claimed: Sequence[Claimed],
    action_type: ActionType,
    terms: Terms,
    *,
    now: datetime,
    zone_of: ZoneOf | None,
) -> list[Ending]:
    """Return the ending of what falls into the quiet hours of its workspace, the attempt given back."""
    if action_type.ignores_quiet_hours or not terms.any_quiet_hours or not claimed:
        return []
    look = QuietLook(tx, [one.action for one in claimed], now=now, zone_of=zone_of)
    return [
        ending_of(
            one,
            settle(deferral, attempt_count=one.action.attempt_count, policy=action_type.policy, now=now, jitter=0.0),
        )
        for one in claimed
        if (deferral := look.deferral(one.action)) is not None
    ]
