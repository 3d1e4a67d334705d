"""How does a recurring rule look, to people and to programs?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.text import Text

from postdate.cli.failure import plain, tell
from postdate.cli.printing import Stdout, event_line, print_described, print_indented
from postdate.cli.records import instant_text, print_json, print_record, record_json
from postdate.domain.instant import END, MICROSECOND
from postdate.domain.rule import RuleStatus, occurrence_name
from postdate.domain.zones import zone
from postdate.errors import Invalid, InvalidZone

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from postdate.app import Postdate
    from postdate.cli.rule_options import RecurrenceOptions
    from postdate.domain.action import Event
    from postdate.domain.rule import RecurringRule, RuleOccurrence
    from postdate.verbs import Upcoming

_LAST_MICROSECOND = 999_999
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
    out, tz = Stdout(), tz or zone_of(rule)
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
    """Print occurrences one a line, in a zone; where there are none, stderr says so."""
    if not upcoming:
        tell("nothing is to come")
    for each in upcoming:
        if as_json:
            print_record(each)
        else:
            Stdout().print(Text(_upcoming(each, tz)))


def print_occurrence(line: RuleOccurrence, *, tz: str | None, as_json: bool) -> None:
    """Print an occurrence that is left out, in a zone."""
    if as_json:
        print_record(line)
    else:
        why = "" if line.reason is None else f" left out ({line.reason})"
        Stdout().print(Text(f"{instant_text(line.nominal_at, tz)} of rule {line.rule_id}{why}"))


def print_override(rule: RecurringRule, nominal_at: datetime, *, as_json: bool) -> None:
    """Print what one occurrence of a rule has in its payload instead, in the rule's zone."""
    if as_json:
        print_json(rule_json(rule))
        return
    said = rule.overrides.get(occurrence_name(nominal_at))
    what = "as the rule says" if said is None else f"with {json.dumps(said, ensure_ascii=False)}"
    Stdout().print(Text(plain(f"{instant_text(nominal_at, zone_of(rule))} of rule {rule.id} {what}")))


def tell_if_over(rule: RecurringRule) -> None:
    """Say on stderr of a rule that has ended that nothing is to come."""
    if rule.status is RuleStatus.ENDED:
        tell(f"rule {rule.id} has ended: by what it says nothing is to come")


def tell_of_empty_calendar(app: Postdate, rule: RecurringRule, options: RecurrenceOptions) -> None:
    """Say on stderr where a rule was given a calendar that has no days: its name may be misspelt."""
    if options.get("holidays") and rule.holidays and not app.sync.holidays(rule.holidays):
        tell(f"the calendar {rule.holidays} has no days yet: `postdate holidays set {rule.holidays} DAY...`")


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
        "ends": None if rule.ends_at is None else _end(rule.ends_at, tz).removeprefix("until "),
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


def zone_of(rule: RecurringRule) -> str | None:
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


def _end(ends_at: datetime, tz: str | None) -> str:
    """Return until when a rule fires, or before when: a split ends one a microsecond before its next occurrence."""
    if ends_at.microsecond == _LAST_MICROSECOND and ends_at < END:
        return f"before {instant_text(ends_at + MICROSECOND, tz)}"
    return f"until {instant_text(ends_at, tz)}"


def _counted(rule: RecurringRule) -> str:
    """Return from when a COUNT counts, where the rule took over what was left of it. Raises `InvalidZone`."""
    begins = rule.intent(rule.starts_at)
    if "COUNT=" not in rule.rrule or rule.starts_wall is None or begins is None or rule.starts_wall >= begins.wall_time:
        return ""
    return f" counted from {rule.starts_wall}"


def _words(rule: RecurringRule) -> str:
    zone = "" if rule.tz is None else f" in {rule.tz}"
    end = "" if rule.ends_at is None else f" {_end(rule.ends_at, zone_of(rule))}"
    try:
        return f"{rule.describe()}{zone}{_counted(rule)}{end}"
    except Invalid:  # an older or newer version's, or a zone that is no more: what it says itself will do
        return f"{rule.rrule}{zone}{end}"
