"""Which recurrence do the arguments of a verb ask for?"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, assert_never, get_args

from postdate.domain import text
from postdate.domain.instant import has_offset, instant, utc
from postdate.domain.misfire import Misfire
from postdate.domain.moment import moment
from postdate.domain.recurrence import cron as cron_rule
from postdate.domain.recurrence import every as every_rule
from postdate.domain.recurrence import rrule as rrule_rule
from postdate.domain.rule import Kind, Overlap
from postdate.domain.walltime import check_policy, resolve
from postdate.domain.zones import zone
from postdate.errors import Invalid, InvalidInstant, InvalidRule, InvalidWallTime, InvalidZone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from postdate.domain.rule import RecurringRule
    from postdate.domain.walltime import Fold, Gap

SHORTEST = timedelta(seconds=1)
"""The shortest interval of a rule."""

_MICROSECOND = timedelta(microseconds=1)


class _Unchanged(Enum):
    """What an argument is that leaves things as they are, where None takes them away."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = _Unchanged.UNCHANGED

Unchanged = Literal[_Unchanged.UNCHANGED]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a verb was told about the instants of a rule; None leaves it to the rule there is, or to the default."""

    rrule: str | None = None
    cron: str | None = None
    every: timedelta | float | None = None
    start: datetime | date | str | None = None
    tz: str | None = None
    gap: Gap | None = None
    fold: Fold | None = None
    exdates: Iterable[datetime | date | str] | None = None
    rdates: Iterable[datetime | date | str] | None = None
    ends_at: datetime | str | Unchanged | None = UNCHANGED

    @property
    def says_nothing(self) -> bool:
        """Whether no instant is to change."""
        others = (getattr(self, each.name) for each in fields(self) if each.name != "ends_at")
        return self.ends_at is UNCHANGED and all(each is None for each in others)


def new_recurrence(asked: Asked, *, now: datetime, default_zone: Callable[[], str | None]) -> dict[str, Any]:
    """Return the fields of a new rule that say when it fires. It begins now where nothing else is said.

    Raises `Invalid` naming the argument, `InvalidRule`, `InvalidZone`, `InvalidInstant` or `InvalidWallTime`.
    """
    forms = [name for name in get_args(Kind) if getattr(asked, name) is not None]
    if len(forms) != 1:
        raise Invalid(field="rrule", rule="or cron, or every, is needed: one of the three")
    return _recurrence(forms[0], asked, old=None, now=now, default_zone=default_zone)


def changed_recurrence(rule: RecurringRule, asked: Asked, *, now: datetime) -> dict[str, Any]:
    """Return them for a rule that changes: what is not asked for stays. Raises what `new_recurrence` does."""
    if asked.says_nothing:
        return {}
    forms = [name for name in get_args(Kind) if getattr(asked, name) is not None]
    if len(forms) > 1:
        raise Invalid(field="rrule", rule="must not be given beside cron or every")
    return _recurrence(forms[0] if forms else rule.kind, asked, old=rule, now=now, default_zone=lambda: rule.tz)


def _recurrence(
    kind: Kind, asked: Asked, *, old: RecurringRule | None, now: datetime, default_zone: Callable[[], str | None]
) -> dict[str, Any]:
    tz = asked.tz if asked.tz is not None else (old.tz if old is not None and old.tz is not None else None)
    tz = tz if tz is not None or kind == "every" else default_zone()
    if tz is None and kind != "every":
        raise InvalidZone(field="tz", rule="is needed: a rule goes by the clocks of a zone")
    tz = tz if tz is None else zone(tz).key
    gap: Gap = asked.gap if asked.gap is not None else (old.gap if old else "forward")
    fold: Fold = asked.fold if asked.fold is not None else (old.fold if old else "first")
    check_policy(gap, fold)
    if kind != "rrule" and (asked.exdates is not None or asked.rdates is not None):
        raise Invalid(field="exdates", rule="and rdates belong to an rrule: skip or move single occurrences instead")
    match kind:
        case "rrule":
            found = _of_rrule(asked, old, tz=str(tz), gap=gap, fold=fold, now=now)
        case "cron":
            expr = asked.cron if asked.cron is not None else (old.rrule if old else "")
            cron_rule(expr, tz=str(tz), gap=gap, fold=fold)
            found = {"rrule": expr, "starts_at": _start(asked, old, tz=tz, gap=gap, fold=fold, now=now)}
        case "every":
            found = _of_every(asked, old, tz=tz, gap=gap, fold=fold, now=now)
            tz = None
        case _:
            assert_never(kind)
    ends_at = _end(asked, old, tz=tz or asked.tz, gap=gap, fold=fold)
    if ends_at is not None and ends_at < found["starts_at"]:
        raise Invalid(field="ends_at", rule="must not be before the rule begins", value=ends_at)
    nothing = {"starts_wall": None, "exdates": (), "rdates": ()}
    return {**nothing, "kind": kind, "tz": tz, "gap": gap, "fold": fold, "ends_at": ends_at, **found}


def _of_rrule(
    asked: Asked, old: RecurringRule | None, *, tz: str, gap: Gap, fold: Fold, now: datetime
) -> dict[str, Any]:
    same_kind = old is not None and old.kind == "rrule"
    start: object = asked.start if asked.start is not None else (old.starts_wall if same_kind and old else None)
    if start is None:
        start = old.starts_at if old is not None else now.replace(microsecond=0)
    if has_offset(start):
        start = instant(str(start), field="start")
    if isinstance(start, datetime) and start.tzinfo is not None:
        start = _shown(utc(start, field="start"), tz, field="start").replace(tzinfo=None, fold=0)
    if not isinstance(start, str | date):
        raise InvalidRule("rrule", part="start", why="must be a date, a datetime or ISO 8601 text", value=start)
    written = asked.rrule if asked.rrule is not None else (old.rrule if same_kind and old else "")
    dates = {
        name: given if given is not None else (getattr(old, name) if same_kind else ())
        for name, given in (("exdates", asked.exdates), ("rdates", asked.rdates))
    }
    made = rrule_rule(written, start=start, tz=tz, gap=gap, fold=fold, **dates)
    told: dict[str, Any] = made.dump()
    return {
        "rrule": made.text,
        "starts_wall": told["start"],
        "starts_at": resolve(made.start, made.tz, fold=fold),
        "exdates": tuple(told["exdates"]),
        "rdates": tuple(told["rdates"]),
    }


def _of_every(
    asked: Asked, old: RecurringRule | None, *, tz: str | None, gap: Gap, fold: Fold, now: datetime
) -> dict[str, Any]:
    starts_at = _start(asked, old, tz=asked.tz or tz, gap=gap, fold=fold, now=now)
    if asked.every is None and old is not None:
        return {"rrule": old.rrule, "starts_at": starts_at}
    interval = asked.every
    if isinstance(interval, int | float) and not isinstance(interval, bool):
        try:
            interval = timedelta(seconds=interval)
        except (OverflowError, ValueError):
            raise InvalidRule("every", part="interval", why="must be shorter than the calendar") from None
    if not isinstance(interval, timedelta):
        raise InvalidRule("every", part="interval", why="must be a timedelta, or seconds", value=interval)
    every_rule(interval, anchor=starts_at)
    if interval < SHORTEST:
        raise InvalidRule("every", part="interval", why="must be at least a second", value=interval)
    return {"rrule": str(interval // _MICROSECOND), "starts_at": starts_at}


def _start(asked: Asked, old: RecurringRule | None, *, tz: str | None, gap: Gap, fold: Fold, now: datetime) -> datetime:
    if asked.start is None:
        return old.starts_at if old is not None else now
    start = asked.start
    if isinstance(start, date) and not isinstance(start, datetime):
        start = start.isoformat() + "T00:00"
    return _instant(start, tz=tz, gap=gap, fold=fold, field="start")


def _end(asked: Asked, old: RecurringRule | None, *, tz: str | None, gap: Gap, fold: Fold) -> datetime | None:
    if asked.ends_at is UNCHANGED:
        return None if old is None else old.ends_at
    if asked.ends_at is None:
        return None
    return _instant(asked.ends_at, tz=tz, gap=gap, fold=fold, field="ends_at")


def one_of(choices: Any, value: object, *, field: str) -> Any:
    """Return `value` if it is one of the words of a Literal. Raises `Invalid`."""
    if not isinstance(value, str) or value not in get_args(choices):
        raise Invalid(field=field, rule=f"must be one of {', '.join(get_args(choices))}", value=value)
    return value


def policies(*, misfire: object, grace: object, overlap: object) -> dict[str, Any]:
    """Return what a rule does about being late. Raises `Invalid`."""
    seconds = grace if isinstance(grace, timedelta) else None
    if isinstance(grace, int) and not isinstance(grace, bool):
        seconds = timedelta(seconds=min(max(grace, 0), _MOST_GRACE // timedelta(seconds=1) + 1))
    if seconds is None or not timedelta(seconds=1) <= seconds <= _MOST_GRACE or seconds.microseconds:
        raise Invalid(field="grace", rule="must be whole seconds, from one to those of ten years", value=grace)
    return {
        "misfire": one_of(Misfire, misfire, field="misfire"),
        "grace": seconds,
        "overlap": one_of(Overlap, overlap, field="overlap"),
    }


_MOST_GRACE = timedelta(days=3650)


def calendar_name(value: str | None) -> str | None:
    """Return the name of a calendar of holidays, or None. Raises `InvalidText`."""
    return text.optional_name(value, field="holidays")


def named_instant(rule: RecurringRule, at: datetime | str, *, field: str) -> datetime:
    """Return the instant (UTC) that is meant: a wall time is one in the rule's zone. Raises `Invalid`."""
    tz = rule.tz or "UTC"
    if isinstance(at, datetime) and at.tzinfo is not None:
        meant = utc(at, field=field)
    else:
        meant = _instant(at, tz=tz, gap="forward", fold="first", field=field)
    _shown(meant, tz, field=field)
    return meant


def _shown(at: datetime, tz: str, *, field: str) -> datetime:
    """Return what clocks in the zone show then. Raises `InvalidInstant` where that is outside the calendar."""
    try:
        return at.astimezone(zone(tz))
    except OverflowError:
        rule = f"must fall within the years 1 to 9999 in {tz}"
        raise InvalidInstant(field=field, rule=rule, value=at) from None


def _instant(at: datetime | str, *, tz: str | None, gap: Gap, fold: Fold, field: str) -> datetime:
    """Return the instant (UTC) that is meant. Raises what `moment` raises, naming the argument."""
    try:
        return moment(at, tz=tz, gap=gap, fold=fold, default_zone=lambda: tz).publish_at
    except (InvalidInstant, InvalidWallTime) as error:
        raise type(error)(field=field, rule=error.rule, value=error.value) from None
