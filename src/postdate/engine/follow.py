"""How are queued actions moved to the instants that their wall times mean now?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError

from postdate.domain.action import ENGINE, SCHEDULED, replacement
from postdate.domain.rule import nominal_instant
from postdate.domain.states import Cause, Reason
from postdate.engine.renaming import rename_occurrences
from postdate.errors import PostdateError
from postdate.hooks import tell_settled
from postdate.store.actions import insert_actions
from postdate.store.events import append_events, event_row
from postdate.store.occurrences import relink_line
from postdate.store.outcomes import withdraw_queued
from postdate.store.owners import hold_existing_owners
from postdate.store.passing import passes
from postdate.store.queue import lock_queued
from postdate.store.reading import find_actions
from postdate.store.rules import hold_rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.action import Action, Request
    from postdate.domain.intent import Shift
    from postdate.domain.rule import RecurringRule
    from postdate.kernel import Kernel
    from postdate.store.transaction import Transaction


class NotAdmitted(PostdateError):
    """Not every replacement got in, so that nothing of the set may stay. `action_ids` are the replaced ones."""

    def __init__(self, action_ids: Sequence[UUID]) -> None:
        """Keep which."""
        self.action_ids = tuple(action_ids)
        super().__init__(f"{len(self.action_ids)} replacements are refused")


async def follow(kernel: Kernel, shifts: Sequence[Shift], *, now: datetime) -> tuple[set[UUID], list[UUID]]:
    """Replace these actions, and return which were, and which cannot be since the database refuses their replacement.

    Those in neither were out of reach: somebody else has them in hand. One that is refused holds no other back.
    """
    try:
        return await kernel.work(lambda tx: follow_at_once(kernel, tx, shifts, now=now)), []
    except (NotAdmitted, DBAPIError) as error:
        if passes(error):
            raise
        if len(shifts) == 1:
            return set(), [shifts[0].intended.action_id]
    followed: set[UUID] = set()
    refused: list[UUID] = []
    for each in shifts:
        done, not_done = await follow(kernel, [each], now=now)
        followed |= done
        refused += not_done
    return followed, refused


def follow_at_once(kernel: Kernel, tx: Transaction, shifts: Sequence[Shift], *, now: datetime) -> set[UUID]:
    """Replace those of the actions that are queued and in nobody's hand, and return them. Raises `NotAdmitted`."""
    by_id = {each.intended.action_id: each for each in shifts}
    hold_existing_owners(
        tx,
        workspaces={each.intended.workspace_id for each in shifts},
        users={each.intended.user_id for each in shifts},
    )
    rules = _hold_rules(tx, by_id.values())
    held = lock_queued(tx, list(by_id))
    olds = find_actions(tx, held)
    notes = {action_id: _note(by_id[action_id]) for action_id in olds}
    gone = _withdraw(kernel, tx, olds, notes, now=now)
    names = _renamed(kernel, tx, rules, [(olds[action_id], by_id[action_id]) for action_id in gone], now=now)
    news = {action_id: _moved(kernel, olds[action_id], by_id[action_id], names, now=now) for action_id in sorted(gone)}
    _insert(tx, news, notes, now=now)
    for old, new in news.items():
        rule_id = by_id[old].intended.rule_id
        if rule_id in rules:
            relink_line(tx, rule_id, old=old, new=new.id, publish_at=new.publish_at)
    return gone


def _hold_rules(tx: Transaction, shifts: Iterable[Shift]) -> dict[UUID, RecurringRule]:
    """Hold the rules whose occurrences these are, behind the owners and before the queue as every verb does."""
    named = sorted({each.intended.rule_id for each in shifts if each.intended.rule_id is not None})
    held = {rule_id: hold_rule(tx, rule_id) for rule_id in named}
    return {rule_id: rule for rule_id, rule in held.items() if rule is not None}


def _withdraw(
    kernel: Kernel, tx: Transaction, olds: Mapping[UUID, Action], notes: Mapping[UUID, str], *, now: datetime
) -> set[UUID]:
    """Take these actions out of the queue, and return those that nobody else had in hand."""
    gone: set[UUID] = set()
    for note in sorted(set(notes.values())):  # mostly one: the events of a set share theirs
        told = [action_id for action_id in olds if notes[action_id] == note]
        gone |= withdraw_queued(
            tx, told, cause=Cause.REPLACE, reason=Reason.RESCHEDULED, now=now, actor=ENGINE, note=note
        )
    tell_settled(tx, kernel.registry, {action_id: olds[action_id].action_type for action_id in gone}, now=now)
    return gone


def _renamed(
    kernel: Kernel,
    tx: Transaction,
    rules: Mapping[UUID, RecurringRule],
    shifts: Sequence[tuple[Action, Shift]],
    *,
    now: datetime,
) -> dict[tuple[UUID | None, str], str]:
    """Return what occurrences are called now, by the rule and what they were called."""
    names: dict[tuple[UUID | None, str], str] = {}
    for rule_id, rule in rules.items():
        mine = [(old, each) for old, each in shifts if each.intended.rule_id == rule_id]
        followed = {old.publish_at: each.means for old, each in mine if each.means is not None and _is_nominal(old)}
        for before, after in (rename_occurrences(kernel, tx, rule, followed, now=now) if mine else {}).items():
            names[rule_id, before] = after
    return names


def _is_nominal(old: Action) -> bool:
    """Whether an occurrence is to happen when its rule says, and was not moved."""
    return nominal_instant(old.occurrence) == old.publish_at


def _moved(
    kernel: Kernel, old: Action, shift: Shift, names: Mapping[tuple[UUID | None, str], str], *, now: datetime
) -> Request:
    return replacement(
        old,
        id=kernel.new_id(now),
        created_at=now,
        publish_at=shift.means,
        intent=replace(shift.intended.intent, tz=shift.tz),
        occurrence=names.get((shift.intended.rule_id, old.occurrence), old.occurrence),
    )


def _note(shift: Shift) -> str:
    intent = shift.intended.intent
    zone = shift.tz if shift.tz == intent.tz else f"{shift.tz}, no longer {intent.tz},"
    return f"{intent.wall_time} in {zone} is another instant now"


def _insert(tx: Transaction, news: Mapping[UUID, Request], notes: Mapping[UUID, str], *, now: datetime) -> None:
    admitted = insert_actions(tx, list(news.values())).admitted
    refused = [old for old, new in news.items() if new.id not in admitted]
    if refused:
        raise NotAdmitted(refused)
    append_events(
        tx,
        [
            event_row(
                new.id,
                new.workspace_id,
                at=now,
                cause=SCHEDULED,
                actor=ENGINE,
                note=notes[old],
                replaces=str(old),
            )
            for old, new in news.items()
        ],
    )
