"""What can be asked of a recurring rule?

Each argument is named here once: the verbs take them by name, as `**asked: Unpack[RuleTerms]`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from enum import Enum
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, TypedDict, TypeVar, get_args

from postdate.domain import text
from postdate.domain.misfire import Misfire
from postdate.domain.rule import Overlap
from postdate.domain.walltime import Fold, Gap
from postdate.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from postdate.domain.rule import RecurringRule

P = ParamSpec("P")
R = TypeVar("R")


class _Unchanged(Enum):
    """What an argument is that leaves things as they are, where None takes them away."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = _Unchanged.UNCHANGED

Unchanged = Literal[_Unchanged.UNCHANGED]


class Recurrence(TypedDict, total=False):
    """When a recurring rule fires: what `create_rule`, `update_rule` and `preview_rule` take by name.

    What is not given, or None, is as usual, and in a change as it was. None for `ends_at` or `holidays` is none at all.
    """

    rrule: str | None
    """Its text (RFC 5545). One of `rrule`, `cron` and `every` makes a rule."""
    cron: str | None
    """Five fields."""
    every: timedelta | float | None
    """How far apart; a number is seconds, at least one."""
    start: datetime | date | str | None
    """When it begins, else now: an instant, or a wall time in `tz`. Intervals count from there."""
    tz: str | None
    """The IANA zone by whose clocks it goes, else that of the workspace or the user."""
    gap: Gap | None
    """Where clocks skip a wall time: forward, as usual, or reject."""
    fold: Fold | None
    """Where clocks show a wall time twice: first, as usual, or second."""
    ends_at: datetime | str | Unchanged | None
    """The last instant, or wall time in `tz`, at which it may fire."""
    exdates: Iterable[datetime | date | str] | None
    """Left out of an `rrule`."""
    rdates: Iterable[datetime | date | str] | None
    """Added to an `rrule`."""
    holidays: str | Unchanged | None
    """The calendar on whose days nothing fires: `set_holidays` fills it."""


class RuleTerms(Recurrence, total=False):
    """When a recurring rule fires, where to, and what becomes of late ones: what `create_rule` and `update_rule` take.

    None for `target` is none at all.
    """

    target: str | Unchanged | None
    """The sub-target of its actions: a platform, a phone number."""
    misfire: Misfire | None
    """Which of those that were missed run late: skip, once, as usual, or all."""
    grace: timedelta | int | None
    """How late is not missed yet, in whole seconds; an hour as usual."""
    overlap: Overlap | None
    """Whether one may begin while the one before it is at work: allow, as usual, or skip."""


USUAL_POLICIES: Final = {"misfire": "once", "grace": timedelta(hours=1), "overlap": "allow"}
_MOST_GRACE = timedelta(days=3650)


def by_name(arguments: type) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function's signature name each of its `**asked: Unpack[arguments]`, and refuse others as Python would."""
    names = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=..., annotation=hint)
        for name, hint in _hints(arguments).items()
    ]

    def spelled_out(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        *own, _ = signature.parameters.values()
        known = {each.name for each in (*own, *names)}

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs:
                if name not in known:
                    raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
            return function(*args, **kwargs)

        checked.__signature__ = signature.replace(parameters=[*own, *names])  # type: ignore[attr-defined]
        return checked

    return spelled_out


def _hints(arguments: type) -> dict[str, Any]:
    return {name: getattr(hint, "__forward_arg__", hint) for name, hint in arguments.__annotations__.items()}


def terms(asked: RuleTerms, *, old: RecurringRule | None = None) -> dict[str, Any]:
    """Return the fields of a rule that do not say when: as asked for, else as in `old`, else as usual.

    Raises `Invalid`.
    """
    before = USUAL_POLICIES if old is None else {name: getattr(old, name) for name in USUAL_POLICIES}
    holidays, target = asked.get("holidays", UNCHANGED), asked.get("target", UNCHANGED)
    return {
        **_policies({name: before[name] if asked.get(name) is None else asked.get(name) for name in before}),
        "holidays": (old and old.holidays) if holidays is UNCHANGED else calendar_name(holidays),
        "target_key": (old and old.target_key) if target is UNCHANGED else text.optional_name(target, field="target"),
    }


def _policies(said: dict[str, Any]) -> dict[str, Any]:
    grace = said["grace"]
    seconds = grace if isinstance(grace, timedelta) else None
    if isinstance(grace, int) and not isinstance(grace, bool):
        seconds = timedelta(seconds=min(max(grace, 0), _MOST_GRACE // timedelta(seconds=1) + 1))
    if seconds is None or not timedelta(seconds=1) <= seconds <= _MOST_GRACE or seconds.microseconds:
        raise Invalid(field="grace", rule="must be whole seconds, from one to those of ten years", value=grace)
    return {
        "misfire": _one_of(Misfire, said["misfire"], field="misfire"),
        "grace": seconds,
        "overlap": _one_of(Overlap, said["overlap"], field="overlap"),
    }


def _one_of(choices: Any, value: object, *, field: str) -> Any:
    if not isinstance(value, str) or value not in get_args(choices):
        raise Invalid(field=field, rule=f"must be one of {', '.join(get_args(choices))}", value=value)
    return value


def calendar_name(value: str | None) -> str | None:
    """Return the name of a calendar of holidays, or None. Raises `InvalidText`."""
    return text.optional_name(value, field="holidays")
