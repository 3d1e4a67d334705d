"""How are actions named?"""

from __future__ import annotations

import os
import secrets
from threading import Lock
from typing import TYPE_CHECKING

from pydantic_core import SchemaValidator, core_schema

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

_RANDOM_BITS = 74

read_uuid = SchemaValidator(core_schema.nullable_schema(core_schema.uuid_schema())).validate_python
"""Makes a uuid of its text or its bytes, and None of None, in a fifth of the time that Python's own takes."""


class TimeOrderedIds:
    """Uuids of version 7 (RFC 9562) that rise strictly within the process, whatever the clock does."""

    def __init__(self) -> None:
        """Start below every id."""
        self._last = 0
        self._pid = os.getpid()
        self._lock = Lock()

    def __call__(self, now: datetime) -> UUID:
        """Return the next id for an action made at `now`."""
        milliseconds = int(now.timestamp() * 1000)
        with self._lock:
            value = self._last + 1
            if self._pid != os.getpid():  # forked: its siblings would count on from the same number
                self._pid = os.getpid()
                milliseconds = max(milliseconds, (value >> _RANDOM_BITS) + 1)
            if milliseconds > value >> _RANDOM_BITS:
                value = (milliseconds << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS)
            self._last = value
        time, high, low = value >> _RANDOM_BITS, (value >> 62) & 0xFFF, value & (2**62 - 1)
        number = (time << 80) | (7 << 76) | (high << 64) | (2 << 62) | low
        made: UUID = read_uuid(number.to_bytes(16, "big"))
        return made
