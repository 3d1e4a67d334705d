"""What is a finding?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """How good or bad a finding is."""

    OK = "ok"
    WARN = "warn"
    """It works, but not as well as it should, or something waits for a person."""
    FAIL = "fail"
    """Something will not fire, or not on time, until this is mended."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was looked at and found, and what to do about it."""

    check: str
    """What was looked at, in a word or two."""
    health: Health
    found: str
    advice: str | None = None
    page: str | None = None
    """Where to read on: `operations#sqlite` is what `postdate docs operations#sqlite` prints."""


def ok(check: str, found: str, *, advice: str | None = None, page: str | None = None) -> Finding:
    """Return that all is well, perhaps with a hint."""
    return Finding(check=check, health=Health.OK, found=found, advice=advice, page=page)


def warn(check: str, found: str, *, advice: str, page: str | None = None) -> Finding:
    """Return what could be better."""
    return Finding(check=check, health=Health.WARN, found=found, advice=advice, page=page)


def fail(check: str, found: str, *, advice: str, page: str | None = None) -> Finding:
    """Return what has to be mended."""
    return Finding(check=check, health=Health.FAIL, found=found, advice=advice, page=page)
