"""How does an action look, to people and to programs?"""

from __future__ import annotations

import json
import sys
from datetime import UTC
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from postdate.cli.failure import plain
from postdate.domain.states import Status
from postdate.domain.zones import zone

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from postdate.domain.action import Action, Event, Intent

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


def instant_text(instant: datetime, tz: str | None = None) -> str:
    """Return an instant in ISO 8601: in UTC with a Z, or in a zone with its offset. Raises `InvalidZone`."""
    if tz is not None:
        try:
            return instant.astimezone(zone(tz)).isoformat()
        except OverflowError:  # the last hours of the year 9999 have no local form
            pass
    return instant.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"


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
    for name, value in _described(action, tz).items():
        if value is not None:
            out.print(
                Text(f"{name:{_NAME}} ", style="dim").append(
                    plain(value), style=_COLOURS[action.status] if name == "status" else ""
                )
            )
    out.print(Text("payload", style="dim"))
    for line in json.dumps(action.payload, ensure_ascii=False, indent=2).splitlines():
        out.print(Text(f"  {plain(line)}"))
    out.print(Text("history", style="dim"))
    for event in history:
        detail = f" {json.dumps(event.detail, ensure_ascii=False)}" if event.detail else ""
        out.print(Text(plain(f"  {instant_text(event.at, tz)} {event.cause} by {event.actor}{detail}")))


def print_line(action: Action) -> None:
    """Print where an action stands now, its id first."""
    Stdout().print(Text(f"{action.id} {_standing(action)}, due {instant_text(action.publish_at)}"))


def print_moved(action: Action, *, as_json: bool) -> None:
    """Print what a move has made of an action, for a person or for a program."""
    if as_json:
        print_json(action_json(action))
    else:
        print_line(action)


def print_json(value: Mapping[str, Any]) -> None:
    """Print one object on one line."""
    ascii_only = (sys.stdout.encoding or "").lower() != "utf-8"
    sys.stdout.write(json.dumps(value, ensure_ascii=ascii_only) + "\n")


def action_json(action: Action) -> dict[str, Any]:
    """Return an action as programs see it: the columns of the view `scheduled_actions`, and whether it is paused."""
    intent = action.intent
    return {
        "id": str(action.id),
        "status": str(action.status),
        "reason": _text(action.reason),
        "action_type": action.action_type,
        "publish_at": instant_text(action.publish_at),
        "thing_id": action.thing_id,
        "target_key": action.target_key,
        "occurrence": action.occurrence,
        "workspace_id": _text(action.workspace_id),
        "user_id": str(action.user_id),
        "payload": action.payload,
        "wall_time": intent and intent.wall_time,
        "tz": intent and intent.tz,
        "gap": intent and intent.gap,
        "fold": intent and intent.fold,
        "expires_at": _instant(action.expires_at),
        "attempt_count": action.attempt_count,
        "next_attempt_at": _instant(action.next_attempt_at),
        "last_error": action.last_error,
        "provider_id": action.provider_id,
        "submitted_at": _instant(action.submitted_at),
        "finished_at": _instant(action.finished_at),
        "paused": action.paused,
        "overlap_key": action.overlap_key,
        "origin": action.origin,
        "origin_id": action.origin_id,
        "replaces_id": _text(action.replaces_id),
        "traceparent": action.traceparent,
        "created_at": instant_text(action.created_at),
        "updated_at": instant_text(action.updated_at),
    }


def event_json(event: Event) -> dict[str, Any]:
    """Return a line of history as programs see it."""
    return {
        "at": instant_text(event.at),
        "cause": str(event.cause),
        "actor": event.actor,
        "detail": dict(event.detail),
    }


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
    return f"{intent.wall_time} in {intent.tz} (gap {intent.gap}, fold {intent.fold})"


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


def _instant(value: datetime | None) -> str | None:
    return None if value is None else instant_text(value)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
