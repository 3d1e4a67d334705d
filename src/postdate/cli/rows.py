"""Which action does a row, or the options of one call, ask for?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

from postdate.cli.jsonl_rows import json_object
from postdate.domain.walltime import Fold, Gap
from postdate.errors import Invalid
from postdate.verbs import NewAction

if TYPE_CHECKING:
    from collections.abc import Mapping

PAYLOAD = "payload"
RESERVED = frozenset(
    {
        "type",
        "at",
        "tz",
        "gap",
        "fold",
        "target",
        "thing",
        "workspace",
        "user",
        "occurrence",
        "expires_at",
        "overlap_key",
        "idempotency_key",
    }
)
"""The columns that are no fields of the payload: the names of the options."""


@dataclass(frozen=True, kw_only=True)
class Defaults:
    """What the options say, for whatever a row leaves out."""

    reserved: Mapping[str, str] = field(default_factory=dict)
    payload: Mapping[str, object] = field(default_factory=dict)


def new_action(given: Mapping[str, object], defaults: Defaults) -> NewAction:
    """Return the action that a row asks for. Raises `Invalid` naming the column."""
    said = dict(defaults.reserved)
    said.update({name: _text(name, value) for name, value in given.items() if name in RESERVED})
    payload = dict(defaults.payload) | _object(given.get(PAYLOAD, {}))
    payload |= {name: value for name, value in given.items() if name not in RESERVED and name != PAYLOAD}
    if "thing" in said:
        payload["thing_id"] = said["thing"]
    return NewAction(
        action_type=_needed(said, "type"),
        payload=payload,
        at=_needed(said, "at"),
        tz=said.get("tz"),
        gap=_one_of(get_args(Gap), said.get("gap", "forward"), field="gap"),
        fold=_one_of(get_args(Fold), said.get("fold", "first"), field="fold"),
        target=said.get("target"),
        workspace=said.get("workspace"),
        user=said.get("user"),
        occurrence=said.get("occurrence", ""),
        expires_at=said.get("expires_at"),
        overlap_key=said.get("overlap_key"),
        idempotency_key=said.get("idempotency_key"),
    )


def _needed(said: Mapping[str, str], name: str) -> str:
    try:
        return said[name]
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


def _one_of(choices: tuple[Any, ...], value: str, *, field: str) -> Any:
    if value not in choices:
        raise Invalid(field=field, rule=f"must be one of {', '.join(choices)}", value=value)
    return value
