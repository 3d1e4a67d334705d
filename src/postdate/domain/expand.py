"""Which occurrences of a rule become actions now, which were missed, and when is the next look?"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from postdate.domain.instant import MICROSECOND
from postdate.domain.misfire import split

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from uuid import UUID

    from postdate.domain.rule import RecurringRule, RuleStatus

MOST = 200
"""How many occurrences of a rule one look materialises; one that has more within its window is looked at sooner."""

LOOK = timedelta(minutes=1)
"""How often a rule is looked at whose occurrence has to end before the next one is made."""

_DAY = timedelta(days=1)
_SHORT_STEP_BACK, _LONGER = timedelta(minutes=5), 8


@dataclass(frozen=True, kw_only=True)
class Turn:
    """How the last action of a rule without overlaps stands."""

    active: bool
    """Whether it is queued or running."""
    finished_at: datetime | None = None
    runs: Sequence[tuple[datetime, datetime]] = ()
    """When the last of them began and ended; needed where all run that were missed."""


@dataclass(frozen=True, kw_only=True)
class Expansion:
    """What one look at a rule comes to. All instants are nominal and in UTC."""

    wanted: Sequence[datetime] = ()
    """To become actions, where the ledger does not say otherwise."""
    missed: Sequence[datetime] = ()
    overlapped: Sequence[datetime] = ()
    upto: datetime
    """Nothing up to this instant has to be looked at again."""
    look_at: datetime
    ends: bool = False
    """Whether the rule has nothing more to come, and nothing left to wait for."""


class Noted(NamedTuple):
    """What a look leaves in its rule, by the names of the columns."""

    id: UUID
    status: RuleStatus
    last_materialized_at: datetime
    look_at: datetime
    reroll_from: datetime | None
    last_error: str | None


def expand(
    rule: RecurringRule, *, now: datetime, window: timedelta, holidays: Collection[str] = (), turn: Turn | None = None
) -> Expansion:
    """Return what becomes of the occurrences up to `now + window` that were not decided yet.

    `turn` is needed where occurrences of the rule must not overlap. Raises `InvalidRule` or `InvalidZone`.
    """
    if rule.overlap == "allow":
        return _side_by_side(rule, now=now, window=window, holidays=holidays)
    in_turn = _each_in_turn if rule.misfire == "all" else _one_by_one
    return in_turn(rule, now=now, window=window, holidays=holidays, turn=turn or Turn(active=False))


def _side_by_side(rule: RecurringRule, *, now: datetime, window: timedelta, holidays: Collection[str]) -> Expansion:
    """Return all that is in the window, whatever is still at work."""
    past = _past(rule, rule.last_materialized_at, now, holidays)
    runs, missed = split(past, rule.misfire, now=now, grace=rule.grace)
    if len(runs) > MOST:
        return Expansion(wanted=runs[:MOST], missed=missed, upto=runs[MOST - 1], look_at=now)
    since, horizon = max(rule.last_materialized_at, now), now + window
    upto = max(horizon, since)
    soon = list(islice(rule.occurrences(since, upto + window, holidays=holidays), MOST + 1))
    ahead = [instant for instant in soon if instant <= horizon]
    if len(ahead) > MOST:
        ahead = ahead[:MOST]
        return Expansion(wanted=[*runs, *ahead], missed=missed, upto=ahead[-1], look_at=ahead[MOST // 2])
    beyond = soon[len(ahead) :]
    following = beyond[0] if beyond else next(rule.occurrences(upto + window, holidays=holidays), None)
    wanted = [*runs, *ahead]
    if following is None:  # it ends when its last occurrence is past: until then there is something to pause
        coming = wanted or _latest(rule, now, since, holidays)
        return Expansion(wanted=wanted, missed=missed, upto=upto, look_at=max([now, *coming]), ends=not coming)
    look_at = max(following - window, now + min(_DAY, window / 2))
    return Expansion(wanted=wanted, missed=missed, upto=upto, look_at=look_at)


def _past(rule: RecurringRule, since: datetime, now: datetime, holidays: Collection[str]) -> list[datetime]:
    """Return what fell due after `since`, up to `now`: the earliest that are sure to run, the latest of the others.

    Within the grace all run, and under `all` whatever it is: what is cut off of those, the next look comes to.
    """
    if since >= now:
        return []
    if rule.misfire == "all":
        return list(islice(rule.occurrences(since, now, holidays=holidays), MOST + 1))
    graced = max(since, now - rule.grace - MICROSECOND)
    late = _latest(rule, since, graced, holidays)
    return [*late, *islice(rule.occurrences(graced, now, holidays=holidays), MOST + 1)]


def _latest(rule: RecurringRule, lo: datetime, hi: datetime, holidays: Collection[str]) -> list[datetime]:
    """Return the last occurrences after `lo`, up to `hi`, at most `MOST`.

    It goes back from `hi` in longer and longer steps, so that a rule by seconds is not counted through for weeks.
    """
    if lo >= hi:
        return []
    back = _SHORT_STEP_BACK
    while back < hi - lo:
        latest = deque(rule.occurrences(hi - back, hi, holidays=holidays), maxlen=MOST)
        if len(latest) == MOST:
            return list(latest)
        back *= _LONGER
    return list(deque(rule.occurrences(lo, hi, holidays=holidays), maxlen=MOST))


def _following(rule: RecurringRule, upto: datetime, window: timedelta, holidays: Collection[str]) -> datetime | None:
    """Return the first occurrence after `upto`: mostly there is one soon, and looking near by is cheap."""
    near = next(rule.occurrences(upto, upto + window, holidays=holidays), None)
    return near or next(rule.occurrences(upto + window, holidays=holidays), None)


def _one_by_one(
    rule: RecurringRule,
    *,
    now: datetime,
    window: timedelta,
    holidays: Collection[str],
    turn: Turn,
) -> Expansion:
    """Return the one occurrence that is next, once the one before it has ended; what fell due meanwhile is left out."""
    now = now if turn.finished_at is None else max(now, turn.finished_at)  # it may have ended since the pass began
    since = rule.last_materialized_at
    if turn.active:
        return Expansion(overlapped=_latest(rule, since, now, holidays), upto=max(now, since), look_at=now + LOOK)
    freed = since if turn.finished_at is None else max(since, turn.finished_at - MICROSECOND)
    overlapped = _latest(rule, since, freed, holidays)
    runs, missed = split(_past(rule, freed, now, holidays), rule.misfire, now=now, grace=rule.grace)
    following = runs[0] if runs else _following(rule, max(since, now), window, holidays)
    return replace(_next(rule, following, now=now, window=window), missed=missed, overlapped=overlapped)


def _each_in_turn(
    rule: RecurringRule, *, now: datetime, window: timedelta, holidays: Collection[str], turn: Turn
) -> Expansion:
    """Return the next one where all run that were missed: left out is only what fell due while another was at work.

    What nothing ran for, or what fell due while the one before it waited to begin, comes after it, in its order.
    """
    since = rule.last_materialized_at
    if turn.active:
        return Expansion(upto=since, look_at=now + LOOK)
    now = now if turn.finished_at is None else max(now, turn.finished_at)
    overlapped: list[datetime] = []
    for instant in rule.occurrences(since, now, holidays=holidays) if since < now else ():
        if not any(began < instant < ended for began, ended in turn.runs):
            return replace(_next(rule, instant, now=now, window=window), overlapped=overlapped)
        overlapped.append(instant)
        if len(overlapped) == MOST:
            return Expansion(overlapped=overlapped, upto=instant, look_at=now)
    following = _following(rule, max(since, now), window, holidays)
    return replace(_next(rule, following, now=now, window=window), overlapped=overlapped)


def _next(rule: RecurringRule, following: datetime | None, *, now: datetime, window: timedelta) -> Expansion:
    """Return what becomes of the next occurrence of a rule whose last one has ended."""
    upto = max(rule.last_materialized_at, now)
    if following is None:
        return Expansion(upto=upto, look_at=now, ends=True)
    if following > now + window:
        return Expansion(upto=upto, look_at=following - window)
    return Expansion(wanted=[following], upto=following, look_at=max(following, now + LOOK))
