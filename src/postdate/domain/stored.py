"""How is a value made of its fields in one step?"""

from __future__ import annotations

from typing import Any, Self


class Stored:
    """A frozen value that comes by the thousand.

    A frozen class sets its fields one by one, in which it takes three times as long.
    """

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Self:
        """Return the value with these fields, the others as they are by default. It keeps the mapping."""
        value = object.__new__(cls)
        object.__setattr__(value, "__dict__", fields)
        return value
