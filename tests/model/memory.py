"""What would postdate do if everything lived in one list?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias
from uuid import UUID

from postdate import (
    AlreadyPublished,
    AlreadyScheduled,
    Deferred,
    IdempotencyConflict,
    InvalidInstant,
    MoveRefused,
    NotSent,
    OverlapTaken,
    OwnerNotFound,
    PostdateError,
    Published,
    Reason,
    Rejected,
    RetriesExhausted,
    SiblingRunning,
    Skipped,
    Status,
    Unconfirmed,
)
from postdate.domain.action import SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from postdate.domain.outcome import Outcome

NOT_YET = UUID(int=0)

AUTO_ATTEMPTS = 2
BACKOFF = timedelta(minutes=10)
REMEMBERED = timedelta(hours=1)
"""How long an idempotency key is known."""

PLAIN, IDEMPOTENT, ASKABLE = "plain", "idempotent", "askable"
"""Types: one as they are by default, one that may be repeated, one whose provider can be asked."""
TYPES = (PLAIN, IDEMPOTENT, ASKABLE)
MAX_ATTEMPTS = {PLAIN: 1, IDEMPOTENT: 2, ASKABLE: 3}


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What a caller asks for."""

    action_type: str
    at: datetime
    thing: str | None = None
    target: str | None = None
    occurrence: str = ""
    expires_at: datetime | None = None
    overlap_key: str | None = None
    idempotency_key: str | None = None
    workspace: UUID | None = None
    moody: bool = False
    """Whether the type's hook raises when it is told of this one."""

    @property
    def key(self) -> tuple[str, ...] | None:
        """What may be there once."""
        if self.thing is None:
            return None
        return (self.action_type, self.thing, self.target or "", self.occurrence)


@dataclass(kw_only=True)
class Item:
    """An action as it should stand."""

    ask: Ask
    due_at: datetime
    id: UUID = NOT_YET
    """Given by postdate, once it has answered."""
    status: Status = Status.QUEUED
    reason: Reason | None = None
    attempts: int = 0
    token: UUID | None = None
    lease_until: datetime | None = None

    @property
    def active(self) -> bool:
        """Whether it is still to do."""
        return self.status.active

    @property
    def bars(self) -> bool:
        """Whether it went out, or may have."""
        return self.status is Status.PUBLISHED or self.reason is Reason.UNCONFIRMED

    @property
    def state(self) -> tuple[object, ...]:
        """How its row should read."""
        key = None if self.ask.key is None else SEPARATOR.join(self.ask.key)
        if not self.active:
            return (self.status, self.reason, self.attempts, key)
        return (self.status, self.token, self.lease_until, self.attempts, key, self.ask.overlap_key, self.due_at)


Refusal: TypeAlias = type[PostdateError]


@dataclass
class Memory:
    """Every action there is, the idempotency keys, and what the hooks wrote."""

    items: list[Item] = field(default_factory=list)
    remembered: dict[tuple[UUID | None, str], tuple[Ask, Item, datetime]] = field(default_factory=dict)
    told: Counter[tuple[UUID, Status, Reason | None]] = field(default_factory=Counter)
    workspaces: set[UUID] = field(default_factory=set)

    # what callers ask for

    def schedule(self, asks: Sequence[Ask], *, now: datetime) -> list[Item | Refusal]:
        """Return for each what should come of it: an action, new or known, or the refusal."""
        results: dict[int, Item | Refusal] = {}
        taken: dict[tuple[UUID | None, str], int] = {}
        replays: list[int] = []
        for place, ask in enumerate(asks):
            if ask.expires_at is not None and ask.expires_at < ask.at:
                results[place] = InvalidInstant
            elif ask.workspace is not None and ask.workspace not in self.workspaces:
                results[place] = OwnerNotFound
            elif ask.idempotency_key is not None:
                under = (ask.workspace, ask.idempotency_key)
                known = self.remembered.get(under)
                if under in taken or (known is not None and known[2] > now):
                    replays.append(place)
                else:
                    taken[under] = place
        open_places = [place for place in range(len(asks)) if place not in results and place not in replays]
        self._admit(asks, open_places, results)
        for under, place in taken.items():
            self.remembered.pop(under, None)
            made = results[place]
            if isinstance(made, Item):
                self.remembered[under] = (asks[place], made, now + REMEMBERED)
        for place in replays:
            results[place] = self._replay(asks, place, taken, results)
        return [results[place] for place in range(len(asks))]

    def _admit(self, asks: Sequence[Ask], places: Sequence[int], results: dict[int, Item | Refusal]) -> None:
        for place in sorted(places, key=lambda p: (asks[p].overlap_key or "", asks[p].key or ())):
            if self._conflict(asks[place]) is None:
                item = Item(ask=asks[place], due_at=asks[place].at)
                self.items.append(item)
                results[place] = item
        for place in places:
            if place not in results:
                conflict = self._conflict(asks[place])
                assert conflict is not None
                results[place] = conflict

    def _replay(
        self,
        asks: Sequence[Ask],
        place: int,
        taken: dict[tuple[UUID | None, str], int],
        results: dict[int, Item | Refusal],
    ) -> Item | Refusal:
        ask = asks[place]
        under = (ask.workspace, str(ask.idempotency_key))
        if under in taken:
            return results[taken[under]] if asks[taken[under]] == ask else IdempotencyConflict
        first, item, _ = self.remembered[under]
        return item if first == ask else IdempotencyConflict

    def _conflict(self, ask: Ask, *, but: Item | None = None) -> Refusal | None:
        others = [item for item in self.items if item is not but]
        if ask.key is not None:
            same = [item for item in others if item.ask.key == ask.key]
            if any(item.active for item in same):
                return AlreadyScheduled
            if any(item.bars for item in same):
                return AlreadyPublished
        if ask.overlap_key is not None:
            holders = [item for item in others if item.active and item.ask.overlap_key == ask.overlap_key]
            if any(item.ask.action_type == ask.action_type for item in holders):
                return OverlapTaken
        return None

    def cancel(self, item: Item, *, free_idempotency_key: bool) -> Item:
        """Cancel what is queued; past that nothing happens."""
        if item.status is Status.QUEUED:
            self._end(item, Status.CANCELLED, Reason.USER)
            if free_idempotency_key:
                self.remembered = {under: kept for under, kept in self.remembered.items() if kept[1] is not item}
        return item

    def reschedule(self, item: Item, *, at: datetime) -> Item | Refusal:
        """Return what takes its place."""
        if item.ask.expires_at is not None and item.ask.expires_at < at:
            return InvalidInstant
        return self._replace(item, at=at)

    def post_now(self, item: Item, *, now: datetime) -> Item | Refusal:
        """Return what goes out at once."""
        if item.status is Status.PUBLISHED:
            again = replace(item.ask, at=now, occurrence=now.isoformat(), expires_at=None)
            return self._conflict(again) or self._new(again)
        if item.ask.expires_at is not None and item.ask.expires_at < now:
            return InvalidInstant
        return self._replace(item, at=now)

    def _replace(self, item: Item, *, at: datetime) -> Item | Refusal:
        if item.status is not Status.QUEUED:
            return MoveRefused
        new = replace(item.ask, at=at)
        conflict = self._conflict(new, but=item)
        if conflict is not None:
            return conflict
        self._end(item, Status.CANCELLED, Reason.RESCHEDULED)
        return self._new(new)

    def _new(self, ask: Ask) -> Item:
        item = Item(ask=replace(ask, idempotency_key=None), due_at=ask.at)
        self.items.append(item)
        return item

    def retry(self, item: Item, *, force: bool, now: datetime) -> Refusal | None:
        """Queue what failed again."""
        if item.status is not Status.FAILED:
            return MoveRefused
        if item.attempts >= MAX_ATTEMPTS[item.ask.action_type] and not force:
            return RetriesExhausted
        conflict = self._conflict(item.ask, but=item)
        if conflict is None:
            item.status, item.reason, item.due_at = Status.QUEUED, None, now
        return conflict

    def confirm(self, item: Item) -> Refusal | None:
        """Say that it went out."""
        if item.reason is not Reason.UNCONFIRMED:
            return MoveRefused
        siblings = [other for other in self.items if other.active and item.ask.key and other.ask.key == item.ask.key]
        if any(sibling.status is Status.SUBMITTED for sibling in siblings):
            return SiblingRunning
        self._end(item, Status.PUBLISHED, None)
        for sibling in siblings:
            self._end(sibling, Status.CANCELLED, Reason.DUPLICATE)
        return None

    def dismiss(self, item: Item) -> Refusal | None:
        """Say that it did not go out."""
        if item.reason is not Reason.UNCONFIRMED:
            return MoveRefused
        self._end(item, Status.FAILED, Reason.DISMISSED)
        return None

    def delete_workspace(self, workspace: UUID | None) -> None:
        """Forget all that it owned."""
        self.workspaces = self.workspaces - {workspace}
        self.items = [item for item in self.items if item.ask.workspace != workspace]
        self.remembered = {under: kept for under, kept in self.remembered.items() if under[0] != workspace}

    # what the engine does

    def claim(self, *, limit: int, now: datetime) -> list[Item]:
        """Take what is due and return what is to run, in order; the rest of what was taken has ended."""
        runnable = []
        for name in TYPES:
            due = [i for i in self.items if i.ask.action_type == name and i.status is Status.QUEUED and i.due_at <= now]
            for item in sorted(due, key=lambda i: (i.due_at, i.id))[:limit]:
                if item.ask.expires_at is not None and item.ask.expires_at < now:
                    self._end(item, Status.FAILED, Reason.EXPIRED)
                elif item.ask.key is not None and any(i.bars for i in self.items if i.ask.key == item.ask.key):
                    self._end(item, Status.CANCELLED, Reason.DUPLICATE)
                else:
                    item.status = Status.SUBMITTED
                    item.attempts += 1
                    runnable.append(item)
        return runnable

    def settle(self, item: Item, outcome: Outcome, *, now: datetime) -> None:
        """Let the run that holds the lease end so."""
        may_repeat = item.ask.action_type == IDEMPOTENT
        match outcome:
            case Published():
                self._end(item, Status.PUBLISHED, None)
            case Rejected():
                self._end(item, Status.FAILED, Reason.REJECTED)
            case Skipped():
                self._end(item, Status.CANCELLED, Reason.SKIPPED)
            case Deferred(until=until):
                item.attempts -= 1
                self._put_back(item, until)
            case Unconfirmed() if not may_repeat:
                self._end(item, Status.FAILED, Reason.UNCONFIRMED)
            case NotSent() | Unconfirmed():
                if item.attempts >= AUTO_ATTEMPTS:
                    self._end(item, Status.FAILED, Reason.EXHAUSTED)
                else:
                    self._put_back(item, now + BACKOFF)

    def lost(self, *, now: datetime) -> list[Item]:
        """Return whose lease has run out."""
        return [item for item in self.items if item.lease_until is not None and item.lease_until <= now]

    def forget_keys(self, *, now: datetime) -> None:
        """Forget the idempotency keys that have expired."""
        self.remembered = {under: kept for under, kept in self.remembered.items() if kept[2] > now}

    def _put_back(self, item: Item, due_at: datetime) -> None:
        item.status, item.due_at, item.token, item.lease_until = Status.QUEUED, due_at, None, None

    def _end(self, item: Item, status: Status, reason: Reason | None) -> None:
        item.status, item.reason, item.token, item.lease_until = status, reason, None, None
        if not item.ask.moody:
            self.told[item.id, status, reason] += 1

    # what must hold by itself

    def twice(self) -> Iterable[tuple[str, ...]]:
        """Return the keys with two active actions."""
        active = Counter(item.ask.key for item in self.items if item.active and item.ask.key is not None)
        return [key for key, count in active.items() if count > 1]
