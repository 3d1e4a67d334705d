"""How is a part of what a source wants made true in one transaction, so that a clash drops only its row?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from postdate.domain.action import SCHEDULED, SEPARATOR
from postdate.domain.reconcile import History, Insert, Keep, Replace, Step, Wish, Withdraw, plan
from postdate.domain.states import Cause, Reason
from postdate.engine.wanted import wanted
from postdate.errors import Invalid
from postdate.hooks import tell_settled
from postdate.store.actions import insert_actions
from postdate.store.events import append_events, event_row
from postdate.store.outcomes import withdraw_queued
from postdate.store.reconcile import standing_under, terminal_keys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.action import Request
    from postdate.domain.reconcile import Parent, Standing
    from postdate.engine.wanted import Scope
    from postdate.kernel import Kernel
    from postdate.sources import Desired
    from postdate.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A step of a plan, and what came of it."""

    step: Step
    publish_at: datetime | None = None
    """When what is scheduled is due."""
    refused: str | None = None
    """Why it cannot be scheduled as its source says it; what there was stays."""
    clashed: bool = False
    """Whether somebody else was faster; the next pass looks again."""


def fulfil(tx: Transaction, *, kernel: Kernel, scope: Scope, desired: Mapping[str, Desired]) -> list[Planned]:
    """Plan for what is desired, by key; schedule and replace what the plan says, unless it is a dry run."""
    fingerprints, refused = _fingerprints(desired)
    # What is active first: what a person cancels between these two looks, the second one sees.
    active = standing_under(tx, fingerprints)
    history = History(
        source=scope.source, workspace_id=scope.workspace_id, active=active, terminal=terminal_keys(tx, fingerprints)
    )
    wishes = [Wish(key=key, fingerprint=fingerprint) for key, fingerprint in fingerprints.items()]
    steps = plan(wishes, history, now=scope.now)
    to_do = {step.key: step for step in steps if isinstance(step, Insert | Replace)}
    asked = wanted(tx, kernel=kernel, scope=scope, steps=to_do, desired=desired, fingerprints=fingerprints)
    requests = asked.requests
    done = requests.keys() if scope.dry_run else _Writing(tx, kernel, scope).scheduled(to_do, requests)
    planned = [Planned(step=step) for step in steps if isinstance(step, Keep)]
    for key, step in to_do.items():
        if key in requests:
            planned.append(Planned(step=step, publish_at=requests[key].publish_at, clashed=key not in done))
        else:
            planned.append(Planned(step=step, refused=str(asked.refused[key])))
    return planned + refused


def unwanted_steps(scope: Scope, unwanted: Sequence[Standing], parents: Mapping[str, Parent]) -> list[Step]:
    """Plan for actions of the source that nobody wants any more."""
    active = {standing.key: standing for standing in unwanted}
    history = History(source=scope.source, workspace_id=scope.workspace_id, active=active, parents=parents)
    return plan([], history, now=scope.now)


def withdraw(tx: Transaction, *, kernel: Kernel, scope: Scope, steps: Sequence[Step]) -> list[Planned]:
    """Cancel what these steps withdraw, unless it is a dry run."""
    types = {step.action_id: step.key.partition(SEPARATOR)[0] for step in steps if isinstance(step, Withdraw)}
    if scope.dry_run or not types:
        return [Planned(step=step) for step in steps]
    gone = withdraw_queued(
        tx, list(types), cause=Cause.WITHDRAW, reason=Reason.ORPHANED, now=scope.now, actor=scope.actor
    )
    tell_settled(tx, kernel.registry, {action_id: types[action_id] for action_id in gone}, now=scope.now)
    return [Planned(step=each, clashed=isinstance(each, Withdraw) and each.action_id not in gone) for each in steps]


def _fingerprints(desired: Mapping[str, Desired]) -> tuple[dict[str, str], list[Planned]]:
    fingerprints: dict[str, str] = {}
    refused: list[Planned] = []
    for key, each in desired.items():
        try:
            fingerprints[key] = each.fingerprint()
        except Invalid as error:
            refused.append(Planned(step=Insert(key=key), refused=str(error)))
    return fingerprints, refused


class _Undone(Exception):
    """Takes back what a savepoint holds."""


@dataclass(frozen=True)
class _Writing:
    """Writes requests, all at once where that goes well, else one by one (P55)."""

    tx: Transaction
    kernel: Kernel
    scope: Scope

    def scheduled(self, steps: Mapping[str, Insert | Replace], requests: Mapping[str, Request]) -> frozenset[str]:
        """Insert and replace, and return the keys of what is scheduled now."""
        new = [request for key, request in requests.items() if isinstance(steps[key], Insert)]
        replacing = {
            step.action_id: requests[key]
            for key, step in steps.items()
            if isinstance(step, Replace) and key in requests
        }
        made: frozenset[UUID] = frozenset()
        if new:
            made |= self._inserted(new)
        if replacing:
            made |= self._replaced(replacing)
        return frozenset(key for key, request in requests.items() if request.id in made)

    def _inserted(self, requests: Sequence[Request]) -> frozenset[UUID]:
        try:
            with self.tx.savepoint():
                return self._insert(requests)
        except _Undone:
            singly = requests if len(requests) > 1 else ()
            return frozenset().union(*(self._inserted([request]) for request in singly))

    def _insert(self, requests: Sequence[Request]) -> frozenset[UUID]:
        """Insert what the unique keys and the publish guard admit. Raises `_Undone` where a key has ended after all."""
        admitted = insert_actions(self.tx, requests).admitted
        # Now that we hold the keys nothing ends under them any more: what has ended meanwhile shows itself here.
        if terminal_keys(self.tx, [str(request.key) for request in requests if request.id in admitted]):
            raise _Undone
        return admitted

    def _replaced(self, replacing: Mapping[UUID, Request]) -> frozenset[UUID]:
        try:
            with self.tx.savepoint():
                return self._replace(replacing)
        except _Undone:
            singly = replacing.items() if len(replacing) > 1 else ()
            return frozenset().union(*(self._replaced({old: new}) for old, new in singly))

    def _replace(self, replacing: Mapping[UUID, Request]) -> frozenset[UUID]:
        """Put requests in the place of what is still queued. Raises `_Undone` where one of them does not get in."""
        tx, now, actor = self.tx, self.scope.now, self.scope.actor
        gone = withdraw_queued(tx, list(replacing), cause=Cause.REPLACE, reason=Reason.DRIFTED, now=now, actor=actor)
        coming = {old: replacing[old] for old in gone}
        admitted = insert_actions(tx, list(coming.values())).admitted
        if len(admitted) < len(coming):
            raise _Undone
        tell_settled(tx, self.kernel.registry, {old: new.action_type for old, new in coming.items()}, now=now)
        rows = [
            event_row(new.id, new.workspace_id, at=now, cause=SCHEDULED, actor=actor, replaces=str(old))
            for old, new in coming.items()
        ]
        append_events(tx, rows)
        return admitted
