"""What has to be done so that the queue holds what a source wants, and what must stay as it is?

`plan` is the whole decision. What a source has said, what is active and what has ended go in; what to insert, replace,
withdraw and keep comes out. It looks at nothing else and trusts no earlier plan (P56).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from postdate.domain.action import SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime
    from uuid import UUID

YOUNG = timedelta(minutes=2)
"""How old an action must be before it is withdrawn (P53): a source may not have heard of it yet."""

BY_HAND = "api"
"""The origin of what a person or a program scheduled itself."""


def thing_of(key: str) -> str:
    """Return the thing of a key."""
    return key.split(SEPARATOR)[1]


class Parent(StrEnum):
    """How the thing stands upstream. A thing that a source does not know any more has no such state."""

    OPEN = "open"
    FINISHED = "finished"
    """Published or failed for good, so that an action under it is one that a person asked for."""


class Kept(StrEnum):
    """Why something stays as it is."""

    UNCHANGED = "unchanged"
    """It is scheduled, and its source says what it said."""
    TERMINAL = "terminal"
    """It went out, failed, or a person cancelled it: never again (P50)."""
    CLAIMED = "claimed"
    """Somebody has it in hand."""
    YOUNG = "young"
    """It was scheduled less than two minutes ago (P53)."""
    PARENT_FINISHED = "parent_finished"
    """A person retried or posted it under a thing that is done (P54)."""
    POSTED_AGAIN = "posted_again"
    """A person posted what had gone out once more, and its thing is still there."""
    ANOTHERS = "anothers"
    """Another source, another workspace or another hand made it."""
    REPEATED = "repeated"
    """The source said it before."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a source wants for one key."""

    key: str
    fingerprint: str
    """Of everything that the source says about it: another one means that it says something else now."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """An active action with a key."""

    action_id: UUID
    key: str
    origin: str
    source: str | None
    """The source that wants it; None where none does."""
    workspace_id: UUID | None
    fingerprint: str | None
    """Of what its source said: a person's move keeps it, posting once more what went out does not. None for none."""
    created_at: datetime
    claimed: bool
    overlap_key: str | None = None

    @property
    def thing_id(self) -> str:
        """The thing of its key."""
        return thing_of(self.key)


@dataclass(frozen=True, kw_only=True)
class History:
    """What is known about the keys in question, in one workspace and for one source."""

    source: str
    workspace_id: UUID | None
    active: Mapping[str, Standing] = field(default_factory=dict)
    """By key."""
    terminal: Collection[str] = frozenset()
    """The keys of what went out, failed, was skipped or cancelled by a person; not of what the engine withdrew."""
    parents: Mapping[str, Parent] = field(default_factory=dict)
    """How things stand upstream whose actions nobody wants any more."""

    def owns(self, standing: Standing) -> bool:
        """Whether this source, for this workspace, is the one that wants the action."""
        return (standing.source, standing.workspace_id) == (self.source, self.workspace_id)

    def takes_over(self, standing: Standing) -> bool:
        """Whether the action was scheduled by hand in this workspace: the source is the truth for what it wants."""
        unclaimed = standing.source is None and standing.origin == BY_HAND
        return unclaimed and standing.workspace_id == self.workspace_id


@dataclass(frozen=True, kw_only=True)
class Insert:
    """Schedule what is missing (P45)."""

    key: str


@dataclass(frozen=True, kw_only=True)
class Replace:
    """Put another action in the place of one, since its source says something else now (P46)."""

    key: str
    action_id: UUID
    overlap_key: str | None = None
    """What the one keeps others from overlapping with, and so does the other."""


@dataclass(frozen=True, kw_only=True)
class Withdraw:
    """Cancel what nobody wants any more (P47)."""

    key: str
    action_id: UUID


@dataclass(frozen=True, kw_only=True)
class Keep:
    """Leave it alone."""

    key: str
    reason: Kept
    action_id: UUID | None = None


Step: TypeAlias = Insert | Replace | Withdraw | Keep


def plan(desired: Iterable[Wish], history: History, *, now: datetime) -> list[Step]:
    """Return a step for each wish, in their order, and then one for each action of the source that nobody wants.

    `history` must know of the key of every wish, and of no action of the source that is wanted though not in `desired`.
    """
    wishes = list(desired)
    first = {wish.key: wish for wish in reversed(wishes)}
    steps = [
        _wanted(wish, history) if first[wish.key] is wish else Keep(key=wish.key, reason=Kept.REPEATED)
        for wish in wishes
    ]
    unwanted = [one for key, one in history.active.items() if key not in first and history.owns(one)]
    return steps + [_unwanted(standing, history, now) for standing in unwanted]


def _wanted(wish: Wish, history: History) -> Step:
    """Look at what has ended first (P52)."""
    standing = history.active.get(wish.key)
    if wish.key in history.terminal:
        return Keep(key=wish.key, reason=Kept.TERMINAL, action_id=None if standing is None else standing.action_id)
    if standing is None:
        return Insert(key=wish.key)
    owned = history.owns(standing)
    if owned and standing.fingerprint == wish.fingerprint:
        return _kept(standing, Kept.UNCHANGED)
    if not owned and not history.takes_over(standing):
        return _kept(standing, Kept.ANOTHERS)
    if standing.claimed:
        return _kept(standing, Kept.CLAIMED)
    return Replace(key=wish.key, action_id=standing.action_id, overlap_key=standing.overlap_key)


def _unwanted(standing: Standing, history: History, now: datetime) -> Step:
    parent = history.parents.get(standing.thing_id)
    if standing.claimed:
        return _kept(standing, Kept.CLAIMED)
    if now - standing.created_at < YOUNG:
        return _kept(standing, Kept.YOUNG)
    if parent is Parent.FINISHED:
        return _kept(standing, Kept.PARENT_FINISHED)
    if parent is Parent.OPEN and standing.fingerprint is None:
        return _kept(standing, Kept.POSTED_AGAIN)
    return Withdraw(key=standing.key, action_id=standing.action_id)


def _kept(standing: Standing, reason: Kept) -> Keep:
    return Keep(key=standing.key, reason=reason, action_id=standing.action_id)
