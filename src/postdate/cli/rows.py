"""Which action does a row, or the options of one call, ask for?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

from postdate.cli.action_options import ActionOptions
from postdate.cli.jsonl_rows import json_object
from postdate.domain.intent import ZonePolicy
from postdate.domain.walltime import Fold, Gap
from postdate.errors import Invalid
from postdate.verbs import NewAction

if TYPE_CHECKING:
    from collections.abc import Mapping

PAYLOAD = "payload"
_CHOICES = {"gap": Gap, "fold": Fold, "zone_policy": ZonePolicy}
RESERVED = frozenset({"type", *ActionOptions.__annotations__})
"""The columns that are no fields of the payload: the names of the options."""


@dataclass(frozen=True, kw_only=True)
class Defaults:
    """What the options say, for whatever a row leaves out."""

    reserved: Mapping[str, str] = field(default_factory=dict)
    payload: Mapping[str, object] = field(default_factory=dict)


def new_action(given: Mapping[str, object], defaults: Defaults) -> NewAction:
    """Return the action that a row asks for. Raises `Invalid` naming the column."""
    said: dict[str, Any] = dict(defaults.reserved)
    said.update({name: _text(name, value) for name, value in given.items() if name in RESERVED})
    payload = dict(defaults.payload) | _object(given.get(PAYLOAD, {}))
    payload |= {name: value for name, value in given.items() if name not in RESERVED and name != PAYLOAD}
    if "thing" in said:
        payload["thing_id"] = said.pop("thing")
    for name, choices in _CHOICES.items():
        if name in said:
            _require_one_of(get_args(choices), said[name], field=name)
    return NewAction(action_type=_taken(said, "type"), payload=payload, at=_taken(said, "at"), **said)


def _taken(said: dict[str, Any], name: str) -> str:
    """Return what is said, and take it out."""
    try:
        return str(said.pop(name))
    except KeyError:
        raise Invalid(field=name, rule="is needed, as an argument or in a column") from None


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise Invalid(field=name, rule="must be text", value=value)
    return value


def _object(value: object) -> dict[str, object]:
    if isinstance(value, str):
        return json_object(value, field=PAYLOAD)
    if not isinstance(value, dict):
        raise Invalid(field=PAYLOAD, rule="must be a JSON object", value=value)
    return value


def _require_one_of(choices: tuple[str, ...], value: str, *, field: str) -> None:
    if value not in choices:
        raise Invalid(field=field, rule=f"must be one of {', '.join(choices)}", value=value)
