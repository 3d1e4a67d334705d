"""Which payload do the options of a command make together?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postdate.cli.jsonl_rows import json_object
from postdate.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Iterable


def payload_of(payload: str | None, pairs: Iterable[str] | None) -> dict[str, object] | None:
    """Return what `--payload` and, over it, `--set` give; None where neither is given. Raises `Invalid`."""
    if payload is None and not pairs:
        return None
    merged = {} if payload is None else json_object(payload, field="payload")
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise Invalid(field="set", rule="must be KEY=VALUE", value=pair)
        merged[key] = value
    return merged
