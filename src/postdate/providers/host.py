"""Is this the name of a host?"""

from __future__ import annotations

import re

import idna

MAX_HOST = 253
"""The longest host name, in characters (RFC 1035)."""

# Underscores are no host name by the RFC, but container networks use them.
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")


def host_name(value: str) -> str:
    """Return the name in ASCII and lower case, as the domain name system knows it (RFC 5890).

    Raises ValueError, with the rule and without the value.
    """
    if not 1 <= len(value) <= MAX_HOST:
        raise ValueError(f"a host name has 1 to {MAX_HOST} characters")
    try:
        name = value.lower() if value.isascii() else idna.encode(value, uts46=True).decode()
    except idna.IDNAError:
        raise ValueError("this is no internationalised host name") from None
    if len(name) > MAX_HOST or not _NAME.fullmatch(name):
        raise ValueError("a host name consists of letters, digits, hyphens and dots")
    return name
