"""Which rule did somebody write down?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from postdate.domain.instant import instant
from postdate.domain.recurrence.calendar_rule import rrule
from postdate.domain.recurrence.cron_rule import cron
from postdate.domain.recurrence.interval_rule import every
from postdate.errors import InvalidRule

if TYPE_CHECKING:
    from collections.abc import Callable

    from postdate.domain.recurrence.rule import Rule

_NEEDED = {"rrule": {"text", "start", "tz"}, "cron": {"expr", "tz"}, "every": {"interval", "anchor"}}
_POLICIES = {"gap", "fold"}
_ALLOWED = {
    "rrule": _NEEDED["rrule"] | _POLICIES | {"exdates", "rdates"},
    "cron": _NEEDED["cron"] | _POLICIES,
    "every": _NEEDED["every"],
}


def load(record: Mapping[str, Any]) -> Rule:
    """Return the rule of a JSON object as `Rule.dump` writes it. What was optional then may be left out now.

    Raises `InvalidRule`, and what `rrule`, `cron` and `every` raise.
    """
    if not isinstance(record, Mapping):
        raise InvalidRule("rule", part="record", why="must be a JSON object", value=record)
    form = record.get("form")
    if not isinstance(form, str) or form not in _READERS:
        raise InvalidRule("rule", part="form", why=f"must be one of {', '.join(_READERS)}", value=form)
    fields = {name: value for name, value in record.items() if name != "form"}
    if missing := _NEEDED[form] - fields.keys():
        raise InvalidRule(form, part=min(missing), why="is missing")
    if unknown := fields.keys() - _ALLOWED[form]:
        raise InvalidRule(form, part="record", why="has a field that no such rule has", value=min(map(str, unknown)))
    return _READERS[form](**fields)


def _every(interval: object, anchor: object) -> Rule:
    if isinstance(interval, bool) or not isinstance(interval, int):
        raise InvalidRule("every", part="interval", why="must be a whole number of microseconds", value=interval)
    if not isinstance(anchor, str | datetime):
        raise InvalidRule("every", part="anchor", why="must be ISO 8601 text with an offset", value=anchor)
    try:
        return every(timedelta(microseconds=interval), anchor=instant(anchor, field="anchor"))
    except OverflowError:
        raise InvalidRule("every", part="interval", why="must be shorter than the calendar", value=interval) from None


_READERS: dict[str, Callable[..., Rule]] = {"rrule": rrule, "cron": cron, "every": _every}
