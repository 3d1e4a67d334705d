"""Which due actions does this process take next?"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from postdate.domain.pause import stopped_types
from postdate.domain.restore import gone_back
from postdate.domain.settle import duplicate, expired, settle
from postdate.engine.misfire import missed
from postdate.engine.quiet import QuietLook
from postdate.engine.settle import Ending, EndingSet, ending_of, settle_set
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

    by_type: Sequence[Sequence[Claimed]] = ()
    """What is to be run; it may not have been read yet."""
    settled: int = 0
    """Claimed, but not to be run: expired, duplicates of what went out, missed repetitions, or within quiet hours."""
    held: int = 0
    """Put on hold, since their workspace is paused."""
    stopped: frozenset[str] = field(default_factory=frozenset)
    """The types of which nothing was claimed, since they are paused."""
    barred: bool = False
    """Whether nothing was claimed, since the whole installation is on hold."""

    @property
    def runnable(self) -> Sequence[Claimed]:
        """What is to be run, of all types."""
        return [one for claimed in self.by_type for one in claimed]

    def read(self) -> Self:
        """Return the same with what is to be run read, which takes longer than a transaction should be open for it."""
        return replace(self, by_type=[list(claimed) for claimed in self.by_type])

    @property
    def due_count(self) -> int:
        """How many due actions were found."""
        return sum(map(len, self.by_type)) + self.settled + self.held

    def __add__(self, other: ClaimRound) -> ClaimRound:
        """Return what both brought together."""
        return ClaimRound(
            by_type=[*self.by_type, *other.by_type],
            settled=self.settled + other.settled,
            held=self.held + other.held,
            stopped=self.stopped | other.stopped,
            barred=self.barred or other.barred,
        )


@dataclass(frozen=True, kw_only=True)
class Claimer:
    """Who claims in a round, for how long, and where those live for whom it claims.

    A claim lasts as long as its type's time-out, at most `lease`, and the margin; longer runs are renewed. All of the
    round's claims have one token, by which the engine finds them again if it never hears whether they were committed.
    """

    worker: str
    token: UUID
    lease: timedelta
    margin: timedelta
    zone_of: ZoneOf | None = None


def claim_round(
    tx: Transaction,
    claimer: Claimer,
    free: Mapping[str, int],
    types: Mapping[str, ActionType],
    *,
    now: datetime,
    seen: datetime | None = None,
    due_by: datetime | None = None,
) -> ClaimRound:
    """Claim what is due, for each type at most its free slots, and settle or hold at once what must not run.

    Nothing is claimed from a database on hold, or from one that has lost the tick `seen`. What is due by `due_by`, a
    little later than `now`, is claimed ahead, as of then.
    """
    terms = claim_terms(tx)
    if terms.held or gone_back(terms.last_tick_at, seen):
        return ClaimRound(barred=True)
    stopped = stopped_types(terms.pauses)
    found = ClaimRound(stopped=stopped & set(free))
    for name, slots in free.items():
        if name not in stopped:
            found += _claim_type(tx, claimer, types[name], slots, terms=terms, now=now, due_by=due_by or now)
    return found


def _claim_type(
    tx: Transaction,
    claimer: Claimer,
    action_type: ActionType,
    slots: int,
    *,
    terms: Terms,
    now: datetime,
    due_by: datetime,
) -> ClaimRound:
    """Claim what is due of one type."""
    claimed = claim_due(
        tx,
        action_type=action_type.name,
        now=now,
        due_by=due_by,
        limit=min(slots, BATCH),
        lease_token=claimer.token,
        lease_until=lease_end(action_type, now=due_by, lease=claimer.lease, margin=claimer.margin),
        worker=claimer.worker,
    )
    if claimed.is_plain and not terms.pauses and not terms.any_quiet_hours:
        return ClaimRound(by_type=[claimed])
    endings = _expired_or_duplicate(claimed)
    left = _without(claimed, endings)
    on_hold, more = _held(tx, left, terms, action_type=action_type.name, token=claimer.token, now=now)
    left = [one for one in left if one.action.id not in on_hold] if on_hold else left
    not_run_late = missed(tx, left, action_type.policy, now=now)
    left = _without(left, not_run_late)
    deferred = _deferred(tx, left, action_type, terms, now=due_by, zone_of=claimer.zone_of)
    endings += [*not_run_late, *deferred]
    settle_set(tx, {action_type.name: action_type}, EndingSet.of(tx.tables, endings), now=now)
    return ClaimRound(by_type=[_without(left, deferred)], settled=len(endings), held=len(on_hold) + more)


def lease_end(action_type: ActionType, *, now: datetime, lease: timedelta, margin: timedelta) -> datetime:
    """Return when the lease of a claim made now ends (UTC), unless it is renewed."""
    return now + min(action_type.timeout, lease) + margin


def _without(claimed: Sequence[Claimed], endings: Sequence[Ending]) -> Sequence[Claimed]:
    ended = {ending.action_id for ending in endings}
    return [one for one in claimed if one.action.id not in ended] if ended else claimed


def _expired_or_duplicate(claimed: Sequence[Claimed]) -> list[Ending]:
    """Return the ending of what must not run.

    The claim has looked at the guard once more: a caller's transaction above READ COMMITTED can pass its trigger (P66,
    P91).
    """
    endings = []
    for one in claimed:
        action = one.action
        begins = action.submitted_at
        if action.expires_at is not None and begins is not None and action.expires_at < begins:
            endings.append(ending_of(one, expired(attempt_count=action.attempt_count)))
        elif one.guarded:
            endings.append(ending_of(one, duplicate(attempt_count=action.attempt_count)))
    return endings


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
