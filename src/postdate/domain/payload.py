"""Which payloads may be stored?"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from postdate.domain import text
from postdate.errors import InvalidPayload

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BYTES = 256 * 1024
"""The largest payload, as JSON in UTF-8."""

_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def checked(payload: Mapping[str, object]) -> dict[str, object]:
    """Return the payload if every database here can store it and its `thing_id`, where it has one, is a name.

    A `thing_id` of None is left out.

    Raises `InvalidPayload`: not a JSON object, over 256 KiB, NaN or infinity, NUL
    or a lone surrogate.
    """
    if not isinstance(payload, dict):
        raise InvalidPayload(field="payload", rule="must be a JSON object", value=payload)
    if payload.get("thing_id", "") is None:  # what a model dumps whose `thing_id: str | None` was left out
        payload = {name: value for name, value in payload.items() if name != "thing_id"}
    written = _json(payload)
    if len(written) > MAX_BYTES:
        raise InvalidPayload(field="payload", rule=f"must be at most {MAX_BYTES} bytes of JSON", value=len(written))
    if payload.get("thing_id", "") != "":
        text.name(payload["thing_id"], field="payload.thing_id")
    elif "thing_id" in payload:
        raise InvalidPayload(field="payload.thing_id", rule="must be text of 1 to 255 characters")
    return payload


def _json(payload: Mapping[str, object]) -> bytes:
    try:
        written = json.dumps(payload, ensure_ascii=False, allow_nan=False)
        encoded = written.encode()
    except UnicodeEncodeError:
        raise InvalidPayload(field="payload", rule="must not hold lone surrogates") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidPayload(field="payload", rule=f"must be JSON: {error}") from None
    if _NUL.search(written):
        raise InvalidPayload(field="payload", rule="must not hold NUL characters")
    return encoded
