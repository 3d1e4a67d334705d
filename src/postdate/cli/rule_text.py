"""How does a recurring rule look, to people and to programs?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.text import Text

from postdate.cli.failure import plain
from postdate.cli.printing import Stdout, instant_text, print_json
from postdate.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from postdate.domain.action import Event
    from postdate.domain.rule import RecurringRule, RuleOccurrence
    from postdate.verbs import Upcoming


def print_rule(
    rule: RecurringRule,
    *,
    upcoming: Sequence[Upcoming] = (),
    history: Sequence[Event] = (),
    tz: str | None = None,
    as_json: bool = False,
) -> None:
    """Print a rule on one line, and below it what comes next and what people did to it."""
    if as_json:
        print_json(rule_json(rule))
        return
    out = Stdout()
    line = Text(f"{rule.id} {rule.status} {plain(rule.action_type)} {plain(_words(rule))}")
    if rule.last_error is not None:
        line.append(f" {plain(rule.last_error)}", style="red")
    out.print(line)
    for each in upcoming:
        out.print(Text(f"  {_upcoming(each, tz or rule.tz)}"))
    for event in history:
        detail = f" {json.dumps(event.detail, ensure_ascii=False)}" if event.detail else ""
        out.print(Text(plain(f"  {instant_text(event.at, tz)} {event.cause} by {event.actor}{detail}"), style="dim"))


def print_upcoming(upcoming: Sequence[Upcoming], *, tz: str | None, as_json: bool) -> None:
    """Print occurrences one a line, in a zone."""
    for each in upcoming:
        if as_json:
            print_json(
                {
                    "nominal_at": instant_text(each.nominal_at),
                    "publish_at": _instant(each.publish_at),
                    "state": each.state and str(each.state),
                }
            )
        else:
            Stdout().print(Text(_upcoming(each, tz)))


def print_missed(lines: Sequence[RuleOccurrence], *, as_json: bool) -> None:
    """Print occurrences that were missed, one a line."""
    for line in lines:
        if as_json:
            action = None if line.action_id is None else str(line.action_id)
            print_json({"rule_id": str(line.rule_id), "nominal_at": instant_text(line.nominal_at), "action_id": action})
        else:
            Stdout().print(Text(f"{instant_text(line.nominal_at)} of rule {line.rule_id}"))


def rule_json(rule: RecurringRule) -> dict[str, Any]:
    """Return a rule as programs see it: the columns of `recurring_schedules`."""
    return {
        "id": str(rule.id),
        "status": str(rule.status),
        "action_type": rule.action_type,
        "target_key": rule.target_key,
        "payload_template": dict(rule.payload_template),
        "overrides": dict(rule.overrides),
        "kind": rule.kind,
        "rrule": rule.rrule,
        "starts_wall": rule.starts_wall,
        "starts_at": instant_text(rule.starts_at),
        "ends_at": _instant(rule.ends_at),
        "tz": rule.tz,
        "gap": rule.gap,
        "fold": rule.fold,
        "exdates": list(rule.exdates),
        "rdates": list(rule.rdates),
        "holidays": rule.holidays,
        "misfire": rule.misfire,
        "grace_seconds": int(rule.grace.total_seconds()),
        "overlap": rule.overlap,
        "workspace_id": None if rule.workspace_id is None else str(rule.workspace_id),
        "user_id": str(rule.user_id),
        "last_materialized_at": instant_text(rule.last_materialized_at),
        "last_error": rule.last_error,
        "split_from": None if rule.split_from is None else str(rule.split_from),
        "version": rule.version,
        "created_at": instant_text(rule.created_at),
    }


def _upcoming(each: Upcoming, tz: str | None) -> str:
    if each.publish_at is None:
        return f"{instant_text(each.nominal_at, tz)} left out"
    moved = "" if each.publish_at == each.nominal_at else f" moved from {instant_text(each.nominal_at, tz)}"
    return f"{instant_text(each.publish_at, tz)}{moved}"


def _words(rule: RecurringRule) -> str:
    zone = "" if rule.tz is None else f" in {rule.tz}"
    end = "" if rule.ends_at is None else f" until {instant_text(rule.ends_at)}"
    try:
        return f"{rule.describe()}{zone}{end}"
    except Invalid:  # an older or newer version's, or a zone that is no more: what it says itself will do
        return f"{rule.rrule}{zone}{end}"


def _instant(value: datetime | None) -> str | None:
    return None if value is None else instant_text(value)
