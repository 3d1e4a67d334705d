"""Which IANA zones exist, and what are their rules?

Two copies of the rules may be at hand: the system's files and the `tzdata` package. Whichever is newer is in
force for every zone, without touching the process-wide search path of `zoneinfo`.
"""

from __future__ import annotations

import re
import zoneinfo
from functools import cache, lru_cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Literal

from postdate.errors import InvalidZone

Source = Literal["system", "package"]

MAX_ZONE = 64  # the longest name in use has 32 characters

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*", re.ASCII)
_ODD = re.compile(r"(?:localtime|Factory|posixrules)$|(?:posix|right)/", re.ASCII)
_VERSION = re.compile(r"(?:# version )?(\d{4}[a-z]{1,2})\s*", re.ASCII)


def zone(name: object) -> zoneinfo.ZoneInfo:
    """Return the rules of the IANA zone `name`: always the same object for the same name.

    Names match exactly, case included, so that they mean the same on every platform. `localtime`, `Factory`
    and the `right/` clocks are no IANA names. Nothing outside the list is ever opened.

    Raises `InvalidZone`.
    """
    if not isinstance(name, str):
        raise InvalidZone(field="tz", rule="must be the text of an IANA zone name", value=name)
    return _rules(_checked(name))


@lru_cache
def _checked(name: str) -> str:
    if not 1 <= len(name) <= MAX_ZONE:
        raise InvalidZone(field="tz", rule=f"must have 1 to {MAX_ZONE} characters", value=name)
    if not name.isascii():
        raise InvalidZone(field="tz", rule="must be ASCII", value=name)
    spelled = _names().get(name.lower())
    if spelled is None:
        raise InvalidZone(field="tz", rule="is not an IANA zone name", value=name)
    if spelled != name:
        raise InvalidZone(field="tz", rule=f"is not an IANA zone name: did you mean {spelled}?", value=name)
    return name


@cache
def tzdata_version() -> tuple[str, Source]:
    """Return the tz database version in force, such as `2026f`, and whose copy it is.

    The system's copy is taken where it is at least as new as the package's; one of unknown age is not.
    """
    packaged: str = import_module("tzdata").IANA_VERSION  # by name, for it ships no types
    system = next((_version(folder) for folder in map(Path, zoneinfo.TZPATH) if folder.is_dir()), None)
    if system is not None and system >= packaged:
        return system, "system"
    return packaged, "package"


def _version(folder: Path) -> str | None:
    """Return the version that a folder of zone files tells, or None."""
    for file in ("tzdata.zi", "+VERSION"):  # the second is how macOS tells it
        try:
            with (folder / file).open("rb") as lines:
                found = _VERSION.fullmatch(lines.readline(64).decode("ascii", "replace"))
        except OSError:
            continue
        if found:
            return found[1]
    return None


@cache
def _names() -> dict[str, str]:
    """Return every zone name by its lower-case spelling."""
    if tzdata_version()[1] == "package":
        names = set(files("tzdata").joinpath("zones").read_text("ascii").split())
    else:
        names = zoneinfo.available_timezones()
    return {name.lower(): name for name in names if _NAME.fullmatch(name) and not _ODD.match(name)}


class _PackagedZone(zoneinfo.ZoneInfo):
    """A zone read from the package. Unlike a plain `ZoneInfo.from_file` it can be copied and pickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return zone, (self.key,)


@cache
def _rules(name: str) -> zoneinfo.ZoneInfo:
    if tzdata_version()[1] == "system":
        return zoneinfo.ZoneInfo(name)
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return _PackagedZone.from_file(file, key=name)
