"""Which steps can be taken, by callers, workers and time?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

from hypothesis import strategies

from postdate import Deferred, NotSent, Published, Reason, Rejected, Skipped, Status, Unconfirmed
from tests.model.memory import TYPES, Ask
from tests.model.world import NOON

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from postdate.domain.outcome import Outcome

DEFERRED_BY = timedelta(minutes=20)
OUTCOMES: dict[str, Callable[[datetime], Outcome]] = {
    "published": lambda _now: Published(provider_id="p"),
    "rejected": lambda _now: Rejected("no"),
    "not sent": lambda _now: NotSent("none"),
    "unconfirmed": lambda _now: Unconfirmed("?"),
    "skipped": lambda _now: Skipped("no need"),
    "deferred": lambda now: Deferred(now + DEFERRED_BY),
}
VANISHES = "vanishes"
"""How a run ends that is never heard of again."""


@dataclass(frozen=True)
class Schedule:
    """Somebody asks for actions, each for the workspace of that number; 0 is none."""

    asked: list[tuple[Ask, int]]


@dataclass(frozen=True)
class Decide:
    """A person decides about an action; `number` says which."""

    verb: str
    number: int
    later: timedelta
    flag: bool


@dataclass(frozen=True)
class Import:
    """History from elsewhere arrives, past the guard: of a thing of its own, or, by number, of one that is to do."""

    asked: tuple[Ask, int]
    like: int | None
    status: Status
    reason: Reason | None


@dataclass(frozen=True)
class DeleteOwner:
    """A workspace is deleted."""

    number: int


@dataclass(frozen=True)
class Claim:
    """A worker claims up to `limit` of each type."""

    limit: int


@dataclass(frozen=True)
class Settle:
    """Runs end, all in one transaction; `number` says which, and how."""

    ends: list[tuple[int, str]]


@dataclass(frozen=True)
class Renew:
    """Some workers renew the leases of what they have in hand, whoever else may have it by now."""

    odd: bool


@dataclass(frozen=True)
class Recover:
    """Lost leases are ended."""


@dataclass(frozen=True)
class MoveClock:
    """Time passes, or the clock steps back."""

    by: timedelta


Step: TypeAlias = Schedule | Decide | Import | DeleteOwner | Claim | Settle | Renew | Recover | MoveClock


def minutes(*choices: int) -> strategies.SearchStrategy[timedelta]:
    """Return one of so many minutes."""
    return strategies.sampled_from(choices).map(lambda each: timedelta(minutes=each))


@strategies.composite
def asks(draw: strategies.DrawFn) -> tuple[Ask, int]:
    """Return what somebody asks for, with few names, so that much of it clashes."""
    at = NOON + draw(minutes(0, 0, 0, 0, 5, 30))
    expiry = draw(strategies.sampled_from([None, None, None, timedelta(0), timedelta(minutes=30), -timedelta(hours=1)]))
    ask = Ask(
        action_type=draw(strategies.sampled_from(TYPES)),
        at=at,
        thing=draw(strategies.sampled_from([None, None, "a", "b", "c"])),
        target=draw(strategies.sampled_from([None, None, "t"])),
        expires_at=None if expiry is None else at + expiry,
        overlap_key=draw(strategies.sampled_from([None, "o"])),
        idempotency_key=draw(strategies.sampled_from([None, None, "i", "j"])),
        moody=draw(strategies.sampled_from([False, False, True])),
    )
    return ask, draw(strategies.integers(0, 2))


NUMBERS = strategies.integers(0, 99)
SCHEDULE = strategies.lists(asks(), min_size=1, max_size=3).map(Schedule)
WAYS: dict[str, tuple[int, strategies.SearchStrategy[Step]]] = {
    "schedule": (3, SCHEDULE),
    "decide": (
        6,
        strategies.builds(
            Decide,
            verb=strategies.sampled_from(
                ["cancel", "reschedule", "post now", "retry", "retry", "retry", "confirm", "confirm", "dismiss"]
            ),
            number=NUMBERS,
            later=minutes(0, 5, 120),
            flag=strategies.booleans(),
        ),
    ),
    "import": (
        3,
        strategies.builds(
            lambda asked, like, ended: Import(asked, like, *ended),
            asks(),
            strategies.none() | NUMBERS,
            strategies.sampled_from([(Status.PUBLISHED, None), (Status.FAILED, Reason.UNCONFIRMED)]),
        ),
    ),
    "delete owner": (1, strategies.integers(1, 2).map(DeleteOwner)),
    "claim": (6, strategies.integers(1, 3).map(Claim)),
    "settle": (
        7,
        strategies.lists(
            strategies.tuples(NUMBERS, strategies.sampled_from([*OUTCOMES, "not sent", "deferred", VANISHES])),
            min_size=1,
            max_size=4,
        ).map(Settle),
    ),
    "renew": (2, strategies.booleans().map(Renew)),
    "recover": (3, strategies.just(Recover())),
    "move clock": (4, minutes(5, 20, 20, 20, 60, 180, -5, -60).map(MoveClock)),
}
# Chosen by weight, in one rule: left to itself, hypothesis leaves whole rules out of an example.
STEPS: strategies.SearchStrategy[Step] = strategies.sampled_from(
    [way for way, (weight, _) in WAYS.items() for _ in range(weight)]
).flatmap(lambda way: WAYS[way][1])
