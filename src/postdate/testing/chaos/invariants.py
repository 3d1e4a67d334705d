"""What must hold, whatever was done to the workers?"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlalchemy import select

from postdate.domain.states import Reason, Status
from postdate.store.reading import find_actions
from postdate.testing.chaos.journal import CUT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from uuid import UUID

    from postdate.domain.action import Action
    from postdate.registry import Registry
    from postdate.store.transaction import Transaction
    from postdate.testing.chaos.journal import Journal, Run

_SAFE = frozenset({"NotSent", "Deferred"})
"""Outcomes after which a run may be repeated, whatever its type."""

_DOUBT = frozenset({"Unconfirmed", CUT})


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A rule that did not hold; `action` where it is about one."""

    rule: str
    told: str
    action: UUID | None = None


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What the rules are held against."""

    actions: Mapping[UUID, Action]
    journal: Journal
    registry: Registry
    hurt: Collection[int]
    """The processes that were killed, stopped, or given a wrong clock."""
    outage_until: float | None
    """When the server was back from its last restart, by the monotonic clock."""

    @property
    def runs(self) -> dict[UUID, list[Run]]:
        """The runs of each action, in order."""
        by_action: defaultdict[UUID, list[Run]] = defaultdict(list)
        for run in self.journal.runs:
            by_action[run.action].append(run)
        return by_action


def everything(tx: Transaction) -> tuple[dict[UUID, Action], list[Broken]]:
    """Return all actions, and those that are not in exactly one place."""
    a, q, o = tx.tables.actions, tx.tables.queue, tx.tables.outcomes
    asked, queued, ended = (
        set(tx.execute(select(column)).scalars()) for column in (a.c.id, q.c.action_id, o.c.action_id)
    )
    broken = [
        Broken(rule="each action is in exactly one place", told=f"in {len(places)}: {', '.join(places)}", action=one)
        for one in asked | queued | ended
        if len(places := [name for name, held in (("queue", queued), ("outcomes", ended)) if one in held]) != 1
    ]
    broken += [
        Broken(rule="each action is in exactly one place", told="nobody asked for it", action=one)
        for one in (queued | ended) - asked
    ]
    return find_actions(tx, list(asked)), broken


def broken_by(evidence: Evidence, wanted: Collection[UUID]) -> Iterator[Broken]:
    """Yield what does not hold of the actions that were asked for, and of those that came of them."""
    for lost in set(wanted) - evidence.actions.keys():
        yield Broken(rule="no action is lost", told="it is gone", action=lost)
    runs = evidence.runs
    for action in evidence.actions.values():
        yield from _of_its_end(action, runs.get(action.id, []), evidence)
        yield from _of_its_runs(action, runs.get(action.id, []), evidence)


def _of_its_end(action: Action, runs: list[Run], evidence: Evidence) -> Iterator[Broken]:
    if action.status.active:
        yield Broken(rule="every action ends", told=f"it is still {action.status}", action=action.id)
    said = {run.outcome for run in runs} | evidence.journal.answers.get(action.id, set())
    if action.status is Status.PUBLISHED and "Published" not in said:
        yield Broken(rule="what is published was run", told=f"its runs said {said or 'nothing'}", action=action.id)
    if action.reason is Reason.UNCONFIRMED and not _excused(runs, evidence):
        told = f"no worker of its {len(runs)} runs was hurt: {action.last_error}"
        yield Broken(rule="unconfirmed is only what was cut off in mid-call", told=told, action=action.id)


def _excused(runs: list[Run], evidence: Evidence) -> bool:
    """Whether a doubt is one: the handler's own, or that of a worker that could not write what it knew."""
    if not runs:
        return bool(evidence.hurt)  # claimed, and its worker was killed before the handler began
    last = runs[-1]
    if last.outcome in _DOUBT or last.worker in evidence.hurt:
        return True
    return evidence.outage_until is not None and last.began < evidence.outage_until


def _of_its_runs(action: Action, runs: list[Run], evidence: Evidence) -> Iterator[Broken]:
    known = evidence.registry.get(action.action_type)
    may_repeat = known is not None and known.policy.idempotent
    cleared = "NotSent" in evidence.journal.answers.get(action.id, set())
    for run in runs:
        if run.early:
            yield Broken(rule="nothing is early", told=f"by the clock of worker {run.worker}", action=action.id)
    for before, after in pairwise(runs):
        if not (before.outcome in _SAFE or may_repeat or cleared):
            told = f"worker {before.worker} had it ({before.outcome or 'not ended'}), then worker {after.worker}"
            yield Broken(rule="nothing is run twice", told=told, action=action.id)
        if after.attempt <= before.attempt and before.outcome != "Deferred":
            told = f"attempt {after.attempt} came after attempt {before.attempt}"
            yield Broken(rule="every run is an attempt of its own", told=told, action=action.id)
