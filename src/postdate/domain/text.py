"""Which text may reach a database, and how is foreign text made safe?

PostgreSQL refuses NUL, no database stores a lone surrogate, and U+001F joins the parts of a key. Names from
a caller are therefore refused when they hold control characters; error text from outside is cleaned.
"""

from __future__ import annotations

import re

from postdate.errors import InvalidText

MAX_TYPE = 100
MAX_NAME = 255
MAX_ERROR = 2000

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def name(value: object, *, field: str, limit: int = MAX_NAME) -> str:
    """Return `value` as plain text if it is 1 to `limit` characters that can be stored, none of them for control.

    Raises `InvalidText` otherwise.
    """
    if not isinstance(value, str):
        raise InvalidText(field=field, rule="must be text", value=value)
    if not 1 <= len(value) <= limit:
        raise InvalidText(field=field, rule=f"must have 1 to {limit} characters", value=value)
    if _CONTROL.search(value):
        raise InvalidText(field=field, rule="must not hold control characters", value=value)
    if _UNSTORABLE.search(value):
        raise InvalidText(field=field, rule="must not hold lone surrogates", value=value)
    return value if type(value) is str else str.__str__(value)  # of an enumeration `str` would tell the member's name


def optional_name(value: object, *, field: str, limit: int = MAX_NAME) -> str | None:
    """Return `name(value)`, or None where there is none."""
    return None if value is None else name(value, field=field, limit=limit)


def cleaned(value: object, *, limit: int = MAX_ERROR) -> str:
    """Return text from outside as any database stores it and any terminal may show it: at most `limit` characters."""
    try:
        words = str(value)
    except Exception:  # noqa: BLE001 - an error that cannot say what it is must not hide that it happened
        words = f"a {type(value).__name__} without words"
    return printable(words[:limit])


def printable(words: str) -> str:
    """Return the text without lone surrogates, and without control characters but for line breaks and tabs."""
    if words.isprintable():
        return words
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", words.replace("\r\n", "\n"))
