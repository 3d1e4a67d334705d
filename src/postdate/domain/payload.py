"""Which payloads may be stored?"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from pydantic_core import from_json, to_json

from postdate.domain import text
from postdate.errors import InvalidPayload

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BYTES = 256 * 1024
"""The largest payload, as JSON in UTF-8."""

MAX_DEPTH = 100
"""The most arrays and objects within each other: Python and both databases give up somewhere beyond this."""

_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_MANY_DIGITS = re.compile(rb"\d{309}")  # the longest number that a float can hold has as many
_NO_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[^"\[\]{}]+')

_SHORT = MAX_BYTES // 4  # as bytes without the spaces that JSON is stored with
_written = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def checked(payload: object) -> dict[str, object]:
    """Return the payload as every database here will give it back. A `thing_id` of None is left out.

    Raises `InvalidPayload`: not a JSON object, over 256 KiB, more than 100 levels deep, NaN, infinity or a number
    beyond the range of a float, NUL or a lone surrogate; `InvalidText`: a `thing_id` that is no name.
    """
    if not isinstance(payload, dict):
        raise InvalidPayload(field="payload", rule="must be a JSON object", value=payload)
    thing = payload.get("thing_id")
    if thing is None:  # what a model dumps whose `thing_id: str | None` was left out
        payload = {name: value for name, value in payload.items() if name != "thing_id"}
    elif thing == "":
        raise InvalidPayload(field="payload.thing_id", rule=f"must be text of 1 to {text.MAX_NAME} characters")
    else:
        text.name(thing, field="payload.thing_id")
    plain = _plain(payload)
    if plain is not None:
        return plain
    written, size = _json(payload)
    if size > MAX_BYTES:
        raise InvalidPayload(field="payload", rule=f"must be at most {MAX_BYTES} bytes of JSON", value=size)
    stored: dict[str, object] = json.loads(written)
    if stored != payload and not _named_by_text(payload):
        raise InvalidPayload(field="payload", rule="must have names that are text")
    return stored


def _plain(payload: Mapping[str, object]) -> dict[str, object] | None:
    """Return the payload where a glance tells that it may be stored; a close look takes three times as long.

    What comes back equal through JSON is JSON, and text that is short, flat and without oddities breaks no other rule.
    """
    try:
        written = to_json(payload, inf_nan_mode="null")
    except ValueError:
        return None
    nesting = written.count(b"{") + written.count(b"[")
    if len(written) > _SHORT or nesting > MAX_DEPTH or b"\\u0000" in written or _MANY_DIGITS.search(written):
        return None
    stored: dict[str, object] = from_json(written)
    return stored if stored == payload else None


def _json(payload: Mapping[str, object]) -> tuple[str, int]:
    """Return the payload as JSON, and how many bytes of UTF-8 that takes."""
    try:
        written = _written(payload)
        encoded = written.encode()
    except UnicodeEncodeError:
        raise InvalidPayload(field="payload", rule="must not hold lone surrogates") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidPayload(field="payload", rule=f"must be JSON: {error}") from None
    if _NUL.search(written):
        raise InvalidPayload(field="payload", rule="must not hold NUL characters")
    if _MANY_DIGITS.search(encoded):
        json.loads(written, parse_int=_checked_integer)
    if _depth(written) > MAX_DEPTH:
        raise InvalidPayload(field="payload", rule=f"must be at most {MAX_DEPTH} levels deep")
    return written, len(encoded)


def _checked_integer(digits: str) -> int:
    try:
        float(value := int(digits))
    except OverflowError:
        rule = "must not hold numbers beyond the range of a float"
        raise InvalidPayload(field="payload", rule=rule) from None
    return value


def _depth(written: str) -> int:
    """Return how deep the arrays and objects of a JSON text nest, or 0 where there are too few of them to matter."""
    if written.count("[") + written.count("{") <= MAX_DEPTH:
        return 0
    depth = deepest = 0
    for bracket in _NO_BRACKETS.sub("", written):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _named_by_text(value: object) -> bool:
    """Whether every name within is text: JSON would write `1` and `None` as if they were."""
    if isinstance(value, dict):
        return all(isinstance(name, str) and _named_by_text(inner) for name, inner in value.items())
    return not isinstance(value, list | tuple) or all(map(_named_by_text, value))
