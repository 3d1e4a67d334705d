"""How does a recurring rule look, to people and to programs?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from postdate.cli.failure import plain
from postdate.cli.printing import Stdout, event_line, print_described, print_indented
from postdate.cli.records import instant_text, print_json, print_record, record_json
from postdate.domain.zones import zone
from postdate.errors import Invalid, InvalidZone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from postdate.domain.action import Event
    from postdate.domain.rule import RecurringRule, RuleOccurrence
    from postdate.verbs import Upcoming

_OF_THE_EXPANDER = ("look_at", "reroll_from")


def print_rule(rule: RecurringRule, *, as_json: bool) -> None:
    """Print a rule on one line."""
    if as_json:
        print_json(rule_json(rule))
        return
    line = Text(f"{rule.id} {rule.status} {plain(rule.action_type)} {plain(_words(rule))}")
    if rule.last_error is not None:
        line.append(f" {plain(rule.last_error)}", style="red")
    Stdout().print(line)


def show_rule(rule: RecurringRule, upcoming: Sequence[Upcoming], history: Sequence[Event], *, tz: str | None) -> None:
    """Print everything about a rule, what comes next, and what people did to it."""
    out, tz = Stdout(), tz or _zone_of(rule)
    print_described(_described(rule, tz), styles={"error": "red"})
    print_indented("payload", dict(rule.payload_template))
    if rule.overrides:
        print_indented("overrides", dict(rule.overrides))
    out.print(Text("next", style="dim"))
    for each in upcoming:
        out.print(Text(f"  {_upcoming(each, tz)}"))
    out.print(Text("history", style="dim"))
    for event in history:
        out.print(event_line(event, tz))


def print_upcoming(upcoming: Sequence[Upcoming], *, tz: str | None, as_json: bool) -> None:
    """Print occurrences one a line, in a zone."""
    for each in upcoming:
        if as_json:
            print_record(each)
        else:
            Stdout().print(Text(_upcoming(each, tz)))


def print_occurrence(line: RuleOccurrence, *, as_json: bool) -> None:
    """Print an occurrence that is left out."""
    if as_json:
        print_record(line)
    else:
        why = "" if line.reason is None else f" left out ({line.reason})"
        Stdout().print(Text(f"{instant_text(line.nominal_at)} of rule {line.rule_id}{why}"))


def rule_json(rule: RecurringRule) -> dict[str, Any]:
    """Return a rule as programs see it: the columns of `recurring_schedules`."""
    told = record_json(rule, first=("id", "status", "action_type"), without=(*_OF_THE_EXPANDER, "grace"))
    return told | {"grace_seconds": int(rule.grace.total_seconds())}


def _described(rule: RecurringRule, tz: str | None) -> dict[str, object]:
    return {
        "rule": rule.id,
        "status": rule.status,
        "error": rule.last_error,
        "type": rule.action_type,
        "when": _words(rule),
        "begins": instant_text(rule.starts_at, tz),
        "ends": None if rule.ends_at is None else instant_text(rule.ends_at, tz),
        "clocks": None if rule.tz is None else f"gap {rule.gap}, fold {rule.fold}",
        "left out": ", ".join(rule.exdates) or None,
        "added": ", ".join(rule.rdates) or None,
        "holidays": rule.holidays,
        "target": rule.target_key,
        "missed": f"{rule.misfire}, when late by more than {int(rule.grace.total_seconds())} s",
        "overlap": rule.overlap,
        "workspace": rule.workspace_id,
        "user": rule.user_id,
        "split from": rule.split_from,
    }


def _zone_of(rule: RecurringRule) -> str | None:
    """Return the rule's zone, to show times in; None where it is no more."""
    try:
        return None if rule.tz is None else zone(rule.tz).key
    except InvalidZone:
        return None


def _upcoming(each: Upcoming, tz: str | None) -> str:
    if each.publish_at is None:
        why = "" if each.reason is None else f" ({each.reason})"
        return f"{instant_text(each.nominal_at, tz)} left out{why}"
    moved = "" if each.publish_at == each.nominal_at else f" moved from {instant_text(each.nominal_at, tz)}"
    return f"{instant_text(each.publish_at, tz)}{moved}"


def _words(rule: RecurringRule) -> str:
    zone = "" if rule.tz is None else f" in {rule.tz}"
    end = "" if rule.ends_at is None else f" until {instant_text(rule.ends_at)}"
    try:
        return f"{rule.describe()}{zone}{end}"
    except Invalid:  # an older or newer version's, or a zone that is no more: what it says itself will do
        return f"{rule.rrule}{zone}{end}"
