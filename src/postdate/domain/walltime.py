"""Which instant does a wall-clock time mean in a zone?"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Literal, get_args

from postdate.domain.zones import zone
from postdate.errors import InvalidWallTime

Gap = Literal["forward", "reject"]
Fold = Literal["first", "second"]

_GAPS = get_args(Gap)
_FOLDS = get_args(Fold)

MAX_WALL = 64  # more than the 26 of the form, so that one with an offset behind it is told so

_FORM = re.compile(r"\d{4}-\d\d-\d\d[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?", re.ASCII)
_MISFORMED = (
    (re.compile(r"\A\s|\s\Z"), "must not begin or end with blanks"),
    (re.compile(r"[^\x00-\x7f]"), "must be ASCII"),
    (re.compile(r":\d\d\.\d{7}"), "must have at most six digits behind the second"),
    (
        re.compile(r"\dZ$|:[\d.]+ ?[+-][\d:]+$|\]$"),
        "must not carry an offset or a zone: the zone is given apart",
    ),
    (
        re.compile(r"[T ](?:2[4-9]|[3-9]\d):"),
        "must have an hour from 00 to 23 (24:00 is 00:00 of the next day)",
    ),
    (re.compile(r":[6-9]\d"), "must have minutes and seconds from 00 to 59 (there are no leap seconds)"),
    (re.compile(r""), "must have the form YYYY-MM-DDTHH:MM[:SS[.ffffff]]"),
)


def resolve(wall: object, tz: object, *, gap: Gap = "forward", fold: Fold = "first") -> datetime:
    """Return the instant (aware, UTC) at which clocks in the IANA zone `tz` show `wall`.

    `wall` is text `YYYY-MM-DDTHH:MM[:SS[.ffffff]]` (ISO 8601 extended; a space may stand for the T) or a
    naive datetime, whose own `fold` does not count.

    Where clocks skip `wall`, `gap="forward"` reads it with the offset before the change, which moves it on by
    the length of the gap (RFC 5545 3.3.5), and `gap="reject"` refuses it. Where clocks show it twice, `fold`
    takes the first or the second time.

    Raises `InvalidZone` for a bad `tz` and `InvalidWallTime` for a bad `wall`, `gap` or `fold`.
    """
    check_policy(gap, fold)
    naive = wall_time(wall)
    rules = zone(tz)
    try:
        first, second = (naive.replace(tzinfo=rules, fold=side).astimezone(UTC) for side in (0, 1))
    except OverflowError:
        raise _refusal("is outside the years 1 to 9999 in UTC", wall) from None
    # PEP 495: side 0 reads with the offset before a change and side 1 with the one after: a gap crosses them
    skipped = first > second
    if skipped and gap == "reject":
        raise _refusal(f"does not exist in {rules.key}: clocks skip it", wall)
    return second if fold == "second" and not skipped else first


def wall_time(wall: object) -> datetime:
    """Return, as a naive datetime, the wall time that text or a naive datetime tells. Raises `InvalidWallTime`."""
    return _parsed(wall) if isinstance(wall, str) else _plain(wall)


def check_policy(gap: object, fold: object) -> None:
    """Refuse what is no `Gap` or no `Fold`, with `InvalidWallTime`."""
    _check_choice("gap", gap, _GAPS)
    _check_choice("fold", fold, _FOLDS)


def _check_choice(field: str, value: object, choices: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in choices:
        raise InvalidWallTime(field=field, rule=f"must be one of {', '.join(choices)}", value=value)


def _plain(wall: object) -> datetime:
    if not isinstance(wall, datetime):
        raise _refusal("must be text or a naive datetime", wall)
    if wall.tzinfo is not None:
        raise _refusal("must be naive: the zone is given apart", wall)
    try:
        return datetime.combine(wall.date(), wall.time())
    except ValueError:  # a subclass without a date, such as pandas.NaT
        raise _refusal("must be a day of the calendar in the years 1 to 9999", wall) from None


def _parsed(text: str) -> datetime:
    if len(text) > MAX_WALL:
        raise _refusal(f"must have at most {MAX_WALL} characters", text)
    if not _FORM.fullmatch(text):
        raise _refusal(next(rule for pattern, rule in _MISFORMED if pattern.search(text)), text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise _refusal("must be a day of the calendar in the years 1 to 9999", text) from None


def _refusal(rule: str, wall: object) -> InvalidWallTime:
    return InvalidWallTime(field="at", rule=rule, value=wall)
