"""How does an action look, to people and to programs?"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from postdate.cli.failure import plain
from postdate.cli.records import instant_text, print_json, record_json
from postdate.domain.action import Intent
from postdate.domain.states import Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from postdate.domain.action import Action, Event

WIDE = 120
"""From how many columns on a terminal has room for everything on one line."""

_COLOURS = {
    Status.QUEUED: "blue",
    Status.SUBMITTED: "yellow",
    Status.PUBLISHED: "green",
    Status.FAILED: "red",
    Status.CANCELLED: "dim",
}
_STATUS = max(map(len, Status))
_NAME = 10


class Stdout(Console):
    """Writes as it is told, cutting and wrapping nothing; a closed pipe is the caller's to handle."""

    def __init__(self) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, soft_wrap=True)

    def on_broken_pipe(self) -> None:
        """Let it be known, where Rich would end the process."""
        raise BrokenPipeError


def print_actions(actions: Sequence[Action], *, tz: str | None = None) -> None:
    """Print one action a line; on a narrow terminal, what is known of it stands on a second one."""
    out = Stdout()
    one_line = not out.is_terminal or out.width >= WIDE
    due = [instant_text(action.publish_at, tz) for action in actions]
    due_width = max(map(len, due), default=0)
    type_width = max((len(action.action_type) for action in actions), default=0)
    if out.is_terminal and actions:
        out.print(Text(f"{'DUE':{due_width}} {'STATUS':{_STATUS}} {'TYPE':{type_width}} ACTION", style="bold"))
    for when, action in zip(due, actions, strict=True):
        line = Text(f"{when:{due_width}} ")
        line.append(f"{action.status:{_STATUS}}", style=_COLOURS[action.status])
        line.append(f" {action.action_type:{type_width}} {action.id}")
        known = _known(action, tz)
        if known:
            line.append(f" {known}" if one_line else f"\n  {known}", style="dim")
        out.print(line)


def print_action(action: Action, history: Sequence[Event], *, tz: str | None = None) -> None:
    """Print everything about an action."""
    out = Stdout()
    print_described(_described(action, tz), styles={"status": _COLOURS[action.status]})
    print_indented("payload", action.payload)
    out.print(Text("history", style="dim"))
    for event in history:
        out.print(event_line(event, tz))


def print_described(described: Mapping[str, object], *, styles: Mapping[str, str] | None = None) -> None:
    """Print what is known by its name, one a line; None is not known."""
    out = Stdout()
    for name, value in described.items():
        if value is not None:
            out.print(Text(f"{name:{_NAME}} ", style="dim").append(plain(value), style=(styles or {}).get(name, "")))


def print_indented(title: str, value: object) -> None:
    """Print a JSON value below its title."""
    out = Stdout()
    out.print(Text(title, style="dim"))
    for line in json.dumps(value, ensure_ascii=False, indent=2).splitlines():
        out.print(Text(f"  {plain(line)}"))


def event_line(event: Event, tz: str | None) -> Text:
    """Return a line of a history."""
    detail = f" {json.dumps(event.detail, ensure_ascii=False)}" if event.detail else ""
    return Text(plain(f"  {instant_text(event.at, tz)} {event.cause} by {event.actor}{detail}"))


def print_line(action: Action) -> None:
    """Print where an action stands now, its id first."""
    Stdout().print(Text(f"{action.id} {_standing(action)}, due {instant_text(action.publish_at)}"))


def print_moved(action: Action, *, as_json: bool) -> None:
    """Print what a move has made of an action, for a person or for a program."""
    if as_json:
        print_json(action_json(action))
    else:
        print_line(action)


def action_json(action: Action) -> dict[str, Any]:
    """Return an action as programs see it: what was asked, the wall time that is meant, and how it stands."""
    first = ("id", "status", "reason", "action_type", "publish_at")
    told = record_json(action, first=first, without=("intent", "fingerprint"))
    intent = {each.name: None for each in fields(Intent)} if action.intent is None else record_json(action.intent)
    return told | {"thing_id": action.thing_id} | intent


def history_json(history: Sequence[Event]) -> dict[str, Any]:
    """Return a history as programs see it."""
    return {"history": [record_json(event) for event in history]}


def _described(action: Action, tz: str | None) -> dict[str, str | None]:
    intent = action.intent
    optional = {
        "next": action.next_attempt_at,
        "expires": action.expires_at,
        "submitted": action.submitted_at,
        "finished": action.finished_at,
    }
    instants = {name: None if value is None else instant_text(value, tz) for name, value in optional.items()}
    return {
        "action": str(action.id),
        "status": _standing(action),
        "type": action.action_type,
        "due": instant_text(action.publish_at, tz),
        "asked for": None if intent is None else _intent(intent),
        "thing": action.thing_id,
        "target": action.target_key,
        "occurrence": action.occurrence or None,
        "workspace": _text(action.workspace_id),
        "user": str(action.user_id),
        "attempts": str(action.attempt_count),
        "error": action.last_error,
        "provider": action.provider_id,
        **instants,
        "overlap": action.overlap_key,
        "origin": action.origin if action.origin_id is None else f"{action.origin} {action.origin_id}",
        "replaces": _text(action.replaces_id),
    }


def _standing(action: Action) -> str:
    why = action.reason or ("paused" if action.paused else None)
    return str(action.status) if why is None else f"{action.status} ({why})"


def _intent(intent: Intent) -> str:
    whose = ", its owner's" if intent.tz_source == "owner" else ""
    policy = "" if intent.zone_policy is None else f", zone policy {intent.zone_policy}"
    return f"{intent.wall_time} in {intent.tz}{whose} (gap {intent.gap}, fold {intent.fold}{policy})"


def _known(action: Action, tz: str | None) -> str:
    said = {
        "": action.reason or ("paused" if action.paused else None),
        "thing ": action.thing_id,
        "target ": action.target_key,
        "next ": None if action.next_attempt_at is None else instant_text(action.next_attempt_at, tz),
        "attempts ": action.attempt_count if action.attempt_count > 1 else None,
        "error ": action.last_error,
    }
    return plain(", ".join(f"{name}{value}" for name, value in said.items() if value is not None))


def _text(value: object) -> str | None:
    return None if value is None else str(value)
