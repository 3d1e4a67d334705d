"""What is a recurring rule, and what has become of one of its occurrences?"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from postdate.domain import recurrence
from postdate.domain.action import Intent
from postdate.domain.instant import BEGINNING, END, MICROSECOND, instant, rfc3339
from postdate.domain.recurrence.days_off import without_days_off
from postdate.domain.stored import Stored
from postdate.domain.walltime import resolve
from postdate.domain.zones import zone
from postdate.errors import InvalidInstant

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import tzinfo
    from uuid import UUID

    from postdate.domain.misfire import Misfire
    from postdate.domain.recurrence import Rule
    from postdate.domain.walltime import Fold, Gap

Kind = Literal["rrule", "cron", "every"]
Overlap = Literal["skip", "allow"]
"""Whether an occurrence may begin while the one before it is still at work."""


class RuleStatus(StrEnum):
    """How a rule stands (P78)."""

    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


class OccurrenceState(StrEnum):
    """What the ledger says of an occurrence."""

    MATERIALISED = "materialised"
    """An action was made of it."""
    WITHDRAWN = "withdrawn"
    """Its action was withdrawn by a pause or an edit; it comes back where the rule still has it."""
    SKIPPED = "skipped"
    """No action is made of it; `SkipReason` says why."""
    MOVED = "moved"
    """A person gave it another instant."""


class SkipReason(StrEnum):
    """Why an occurrence is left out."""

    USER = "user"
    """A person said so."""
    MISSED = "missed"
    """Nothing ran in its time, and the rule does not run it late."""
    OVERLAP = "overlap"
    """The one before it was still at work."""
    REFUSED = "refused"
    """Its thing went out already, or is on its way, by another action."""


@dataclass(frozen=True, kw_only=True)
class RuleOccurrence:
    """One line of a rule's ledger. Its nominal instant (UTC) is its identity, whenever it really fires."""

    rule_id: UUID
    nominal_at: datetime
    state: OccurrenceState
    action_id: UUID | None = None
    moved_to: datetime | None = None
    reason: SkipReason | None = None
    changed_at: datetime
    wall_time: str | None = None
    """What clocks in the rule's zone were to show then, of an occurrence that a person has decided about."""
    moved_wall: str | None = None
    """What they were to show at `moved_to`."""


@dataclass(frozen=True, kw_only=True)
class RecurringRule(Stored):
    """An action that is to happen again and again: a row of `recurring_schedules`."""

    id: UUID
    workspace_id: UUID | None
    user_id: UUID
    action_type: str
    target_key: str | None
    payload_template: Mapping[str, Any]
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What single occurrences have in their payload instead, by `occurrence_name`."""
    kind: Kind
    rrule: str
    """The RRULE, the cron expression, or the microseconds of the interval."""
    starts_wall: str | None = None
    """The wall time at which an RRULE begins."""
    starts_at: datetime
    """The instant (UTC) before which nothing fires; that from which an interval counts."""
    ends_at: datetime | None = None
    """The last instant (UTC) at which it may fire."""
    tz: str | None
    gap: Gap
    fold: Fold
    exdates: Sequence[str] = ()
    rdates: Sequence[str] = ()
    holidays: str | None = None
    """The calendar on whose days nothing fires."""
    misfire: Misfire
    grace: timedelta
    overlap: Overlap
    status: RuleStatus = RuleStatus.ACTIVE
    last_materialized_at: datetime
    """Up to which instant (UTC) it was decided what becomes of the occurrences (P78)."""
    look_at: datetime
    """When the expander looks at the rule next."""
    reroll_from: datetime | None = None
    """From when on the expander decides anew at its next look: a holiday was named."""
    last_error: str | None = None
    """Why the expander could not read the rule, when it looked last."""
    split_from: UUID | None = None
    """The rule whose following occurrences this one took over."""
    version: int = 1
    created_at: datetime

    @cached_property
    def recurrence(self) -> Rule:
        """The instants at which it fires by itself. Raises `InvalidRule` or `InvalidZone`."""
        clocks: dict[str, Any] = {"tz": self.tz, "gap": self.gap, "fold": self.fold}
        match self.kind:
            case "rrule":
                dates: dict[str, Any] = {"start": self.starts_wall, "exdates": self.exdates, "rdates": self.rdates}
                return recurrence.rrule(self.rrule, **dates, **clocks)
            case "cron":
                return recurrence.cron(self.rrule, **clocks)
            case "every":
                return recurrence.every(int(self.rrule) * MICROSECOND, anchor=self.starts_at)

    def occurrences(
        self, lo: datetime, hi: datetime | None = None, *, holidays: Collection[str] = ()
    ) -> Iterator[datetime]:
        """Return the nominal instants later than `lo`, up to `hi` and that too; holidays are left out.

        `holidays` are days as in 2027-12-25, in the rule's zone. Raises `InvalidRule` or `InvalidZone`.
        """
        if lo < self.starts_at:
            lo = self.starts_at - MICROSECOND
        hi = min(hi or END, self.ends_at or END)
        if not holidays:
            return self.recurrence.between(lo, hi)
        return without_days_off(
            self.recurrence.between, lo, hi, is_off=lambda day: day.isoformat() in holidays, zone=self._zone
        )

    def fires_at(self, nominal_at: datetime, *, holidays: Collection[str] = ()) -> bool:
        """Whether this is one of its nominal instants. Raises `InvalidRule` or `InvalidZone`."""
        before = max(nominal_at, BEGINNING + MICROSECOND) - MICROSECOND
        return next(self.occurrences(before, nominal_at, holidays=holidays), None) == nominal_at

    def intent(self, instant: datetime) -> Intent | None:
        """Return the wall time that an occurrence means, where the rule goes by clocks."""
        if self.tz is None:
            return None
        local = self._local(instant)
        wall_time = local.replace(tzinfo=None, fold=0).isoformat()
        return Intent(wall_time=wall_time, tz=self.tz, gap=self.gap, fold="second" if local.fold else "first")

    def decided(
        self, nominal_at: datetime, state: OccurrenceState, *, moved_to: datetime | None = None, **said: Any
    ) -> RuleOccurrence:
        """Return what a person decided about an occurrence, with the wall times that are meant by it."""
        intent, moved = self.intent(nominal_at), None if moved_to is None else self.intent(moved_to)
        return RuleOccurrence(
            rule_id=self.id,
            nominal_at=nominal_at,
            state=state,
            moved_to=moved_to,
            wall_time=None if intent is None else intent.wall_time,
            moved_wall=None if moved is None else moved.wall_time,
            **said,
        )

    def means_now(self, at: datetime, wall_time: str | None) -> datetime:
        """Return the instant that a wall time means by the rules in force; `at` is the one that it meant before.

        Raises `InvalidZone` or `InvalidWallTime`.
        """
        if wall_time is None or self.tz is None:
            return at
        first, second = resolve(wall_time, self.tz), resolve(wall_time, self.tz, fold="second")
        if at in {first, second}:
            return at
        return second if self.fold == "second" else first

    def payload(self, instant: datetime) -> dict[str, Any]:
        """Return what an occurrence's action gets: the template, and over it what this one has instead."""
        if not self.overrides:
            return {**self.payload_template}
        return {**self.payload_template, **self.overrides.get(occurrence_name(instant), {})}

    @property
    def overlap_key(self) -> str | None:
        """What at most one active action of the rule holds, where they must not overlap."""
        return str(self.id) if self.overlap == "skip" else None

    def describe(self) -> str:
        """Return the rule in English words. Raises `InvalidRule` or `InvalidZone`."""
        return self.recurrence.describe()

    def _local(self, instant: datetime) -> datetime:
        return instant.astimezone(self._zone)

    @property
    def _zone(self) -> tzinfo:
        return UTC if self.tz is None else zone(self.tz)


def occurrence_name(instant: datetime) -> str:
    """Return what a nominal instant is called in keys and in `overrides`."""
    return rfc3339(instant)


def nominal_instant(occurrence: str) -> datetime | None:
    """Return the nominal instant (UTC) that an action's `occurrence` names; None where it names none."""
    try:
        return instant(occurrence, field="occurrence")
    except InvalidInstant:
        return None
