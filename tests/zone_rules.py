"""How does a test put other zone rules in force, as a new tzdata and a restart would?

It writes zone files (RFC 9636, version 2) and lets them be the system's copy for a while. What a file tells is one
POSIX rule for all time, as in `WET0WEST,M3.5.0/1,M10.5.0`; every other zone stays as the package has it.
"""

from __future__ import annotations

import struct
import zoneinfo
from contextlib import contextmanager
from typing import TYPE_CHECKING

from postdate.domain import zones

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@contextmanager
def rules_in_force(folder: Path, version: str, rules: Mapping[str, str]) -> Iterator[None]:
    """Let these rules, by zone, be in force within the block, in a tz database of a version newer than the others."""
    there = folder / version
    there.mkdir(exist_ok=True)
    for name, rule in rules.items():
        file = there / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(zone_file(rule))
    (there / "tzdata.zi").write_text(f"# version {version}\n")
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath([str(there)])
    _forget()
    try:
        assert zones.tzdata_version() == (version, "system")
        yield
    finally:
        zoneinfo.reset_tzpath(before)
        _forget()


def zone_file(rule: str) -> bytes:
    """Return a zone file without transitions, whose rule says it all."""
    counts = struct.pack(">6l", 0, 0, 0, 0, 1, 4)
    block = b"TZif2" + bytes(15) + counts + struct.pack(">lBB", 0, 0, 0) + b"LMT\0"
    return block + block + b"\n" + rule.encode() + b"\n"


def _forget() -> None:
    zoneinfo.ZoneInfo.clear_cache()
    for known in (zones.tzdata_version, zones._names, zones._rules):
        known.cache_clear()
