"""Which recurrence do the arguments of a verb ask for?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, assert_never, get_args

from postdate.domain.instant import MICROSECOND, has_offset, instant, utc
from postdate.domain.moment import moment
from postdate.domain.recurrence import cron as cron_rule
from postdate.domain.recurrence import every as every_rule
from postdate.domain.recurrence import rrule as rrule_rule
from postdate.domain.rule import Kind
from postdate.domain.walltime import check_policy, resolve
from postdate.domain.zones import zone
from postdate.errors import Invalid, InvalidInstant, InvalidRule, InvalidWallTime, InvalidZone
from postdate.verbs.rule_terms import UNCHANGED, Recurrence

if TYPE_CHECKING:
    from collections.abc import Callable

    from postdate.domain.recurrence import RRule
    from postdate.domain.rule import RecurringRule
    from postdate.domain.walltime import Fold, Gap

SHORTEST = timedelta(seconds=1)
"""The shortest interval of a rule."""

_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)

_SAYING_WHEN = Recurrence.__annotations__.keys() - {"ends_at", "holidays"}


@dataclass(frozen=True, kw_only=True)
class _Clocks:
    """By which clocks what is asked for is read."""

    tz: str | None
    gap: Gap
    fold: Fold


def new_recurrence(asked: Recurrence, *, now: datetime, default_zone: Callable[[], str | None]) -> dict[str, Any]:
    """Return the fields of a new rule that say when it fires. It begins now where nothing else is said.

    Raises `Invalid` naming the argument, `InvalidRule`, `InvalidZone`, `InvalidInstant` or `InvalidWallTime`.
    """
    form = _form(asked)
    if form is None:
        raise Invalid(field="rrule", rule="or cron, or every, is needed: one of the three")
    return _recurrence(form, asked, old=None, now=now, default_zone=default_zone)


def changed_recurrence(rule: RecurringRule, asked: Recurrence, *, now: datetime) -> dict[str, Any]:
    """Return them for a rule that changes: what is not asked for stays. Raises what `new_recurrence` does."""
    if asked.get("ends_at", UNCHANGED) is UNCHANGED and all(asked.get(name) is None for name in _SAYING_WHEN):
        return {}
    return _recurrence(_form(asked) or rule.kind, asked, old=rule, now=now, default_zone=lambda: rule.tz)


def _form(asked: Recurrence) -> Kind | None:
    """Return which form of a recurrence is asked for, if one is. Raises `Invalid` where several are."""
    forms: list[Kind] = [name for name in get_args(Kind) if asked.get(name) is not None]
    if len(forms) > 1:
        raise Invalid(
            field=forms[1], rule=f"must not be given beside {forms[0]}: a rule has one of rrule, cron and every"
        )
    return forms[0] if forms else None


def _recurrence(
    kind: Kind, asked: Recurrence, *, old: RecurringRule | None, now: datetime, default_zone: Callable[[], str | None]
) -> dict[str, Any]:
    clocks = _clocks(kind, asked, old, default_zone)
    if kind != "rrule" and (asked.get("exdates") is not None or asked.get("rdates") is not None):
        raise Invalid(field="exdates", rule="and rdates belong to an rrule: skip or move single occurrences instead")
    match kind:
        case "rrule":
            found = _of_rrule(asked, old, clocks, now=now)
        case "cron":
            found = _of_cron(asked, old, clocks, now=now)
        case "every":
            found = _of_every(asked, old, clocks, now=now)
        case _:
            assert_never(kind)
    ends_at = _end(asked, old, clocks)
    if ends_at is not None and ends_at < found["starts_at"]:
        raise Invalid(field="ends_at", rule="must not be before the rule begins", value=ends_at)
    nothing = {"starts_wall": None, "exdates": (), "rdates": ()}
    tz = None if kind == "every" else clocks.tz
    return {**nothing, "kind": kind, "tz": tz, "gap": clocks.gap, "fold": clocks.fold, "ends_at": ends_at, **found}


def _clocks(
    kind: Kind, asked: Recurrence, old: RecurringRule | None, default_zone: Callable[[], str | None]
) -> _Clocks:
    tz = asked.get("tz")
    if tz is None and old is not None:
        tz = old.tz
    if tz is None and kind != "every":
        tz = default_zone()
        if tz is None:
            raise InvalidZone(field="tz", rule="is needed: a rule goes by the clocks of a zone")
    gap, fold = asked.get("gap"), asked.get("fold")
    clocks = _Clocks(
        tz=None if tz is None else zone(tz).key,
        gap=gap if gap is not None else (old.gap if old else "forward"),
        fold=fold if fold is not None else (old.fold if old else "first"),
    )
    check_policy(clocks.gap, clocks.fold)
    return clocks


def _of_rrule(asked: Recurrence, old: RecurringRule | None, clocks: _Clocks, *, now: datetime) -> dict[str, Any]:
    before = old if old is not None and old.kind == "rrule" else None
    rrule, exdates, rdates = asked.get("rrule"), asked.get("exdates"), asked.get("rdates")
    made = rrule_rule(
        rrule if rrule is not None else (before.rrule if before else ""),
        start=_wall_start(asked, old, before, tz=str(clocks.tz), now=now),
        tz=str(clocks.tz),
        gap=clocks.gap,
        fold=clocks.fold,
        exdates=exdates if exdates is not None else (before.exdates if before else ()),
        rdates=rdates if rdates is not None else (before.rdates if before else ()),
    )
    told: dict[str, Any] = made.dump()
    return {
        "rrule": made.text,
        "starts_wall": told["start"],
        "starts_at": _begins(made, clocks),
        "exdates": tuple(told["exdates"]),
        "rdates": tuple(told["rdates"]),
    }


def _begins(made: RRule, clocks: _Clocks) -> datetime:
    try:
        return resolve(made.start, made.tz, fold=clocks.fold)
    except InvalidWallTime as error:  # outside the calendar in UTC
        raise InvalidWallTime(field="start", rule=error.rule, value=error.value) from None


def _wall_start(
    asked: Recurrence, old: RecurringRule | None, before: RecurringRule | None, *, tz: str, now: datetime
) -> date | str:
    """Return the wall time at which an RRULE begins. `before` is the rule there was, where it was an RRULE too."""
    start: object = asked.get("start")
    if start is None and before is not None:
        start = before.starts_wall
    if start is None:
        start = old.starts_at if old is not None else now.replace(microsecond=0)
    if has_offset(start):
        start = instant(str(start), field="start")
    if isinstance(start, datetime) and start.tzinfo is not None:
        start = _shown(utc(start, field="start"), tz, field="start").replace(tzinfo=None, fold=0)
    if not isinstance(start, str | date):
        raise InvalidRule("rrule", part="start", why="must be a date, a datetime or ISO 8601 text", value=start)
    return start


def _of_cron(asked: Recurrence, old: RecurringRule | None, clocks: _Clocks, *, now: datetime) -> dict[str, Any]:
    cron = asked.get("cron")
    expr = cron if cron is not None else (old.rrule if old else "")
    cron_rule(expr, tz=str(clocks.tz), gap=clocks.gap, fold=clocks.fold)
    return {"rrule": expr, "starts_at": _start(asked, old, clocks, now=now)}


def _of_every(asked: Recurrence, old: RecurringRule | None, clocks: _Clocks, *, now: datetime) -> dict[str, Any]:
    starts_at = _start(asked, old, clocks, now=now)
    interval = asked.get("every")
    if interval is None and old is not None:
        return {"rrule": old.rrule, "starts_at": starts_at}
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
    return {"rrule": str(interval // MICROSECOND), "starts_at": starts_at}


def _start(asked: Recurrence, old: RecurringRule | None, clocks: _Clocks, *, now: datetime) -> datetime:
    start = asked.get("start")
    if start is None:
        return old.starts_at if old is not None else now.replace(microsecond=0)
    if isinstance(start, date) and not isinstance(start, datetime):
        start = start.isoformat()
    if isinstance(start, str) and _DAY.fullmatch(start):
        start += "T00:00"
    return _instant(start, clocks, field="start")


def _end(asked: Recurrence, old: RecurringRule | None, clocks: _Clocks) -> datetime | None:
    ends_at = asked.get("ends_at", UNCHANGED)
    if ends_at is UNCHANGED:
        return None if old is None else old.ends_at
    return None if ends_at is None else _instant(ends_at, clocks, field="ends_at")


def named_instant(rule: RecurringRule, at: datetime | str, *, field: str) -> datetime:
    """Return the instant (UTC) that is meant: a wall time is one in the rule's zone. Raises `Invalid`."""
    tz = rule.tz or "UTC"
    if isinstance(at, datetime) and at.tzinfo is not None:
        meant = utc(at, field=field)
    else:
        meant = _instant(at, _Clocks(tz=tz, gap="forward", fold="first"), field=field)
    _shown(meant, tz, field=field)
    return meant


def _shown(at: datetime, tz: str, *, field: str) -> datetime:
    """Return what clocks in the zone show then. Raises `InvalidInstant` where that is outside the calendar."""
    try:
        return at.astimezone(zone(tz))
    except OverflowError:
        rule = f"must fall within the years 1 to 9999 in {tz}"
        raise InvalidInstant(field=field, rule=rule, value=at) from None


def _instant(at: datetime | str, clocks: _Clocks, *, field: str) -> datetime:
    """Return the instant (UTC) that is meant. Raises what `moment` raises, naming the argument."""
    try:
        return moment(at, tz=clocks.tz, gap=clocks.gap, fold=clocks.fold, default_zone=lambda: None).publish_at
    except (InvalidInstant, InvalidWallTime) as error:
        raise type(error)(field=field, rule=error.rule, value=error.value) from None
