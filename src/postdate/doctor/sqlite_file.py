"""Is the SQLite file one that many processes can write to, and nobody else?"""

from __future__ import annotations

import os
import shutil
import stat
from typing import TYPE_CHECKING

from postdate.doctor.finding import fail, ok, warn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from postdate.doctor.finding import Finding
    from postdate.store.diagnosis import Server

LITTLE_SPACE = 100 * 1024 * 1024
"""How many free bytes on its disk are few."""

_PAGE = "operations#sqlite"


def file_findings(file: Path, server: Server) -> Iterator[Finding]:
    """Yield what there is to say of the file, its folder and its disk."""
    yield _access_finding(file)
    if server.journal_mode == "wal":
        yield ok("journal", "WAL")
    else:
        advice = "its file system lacks what WAL needs: move the file to a local disk, never a network's"
        yield fail("journal", f"{server.journal_mode}, not WAL", advice=advice, page=_PAGE)
    free = shutil.disk_usage(file.parent).free
    found = f"{free // (1024 * 1024)} MB free"
    if free < LITTLE_SPACE:
        yield warn("disk", found, advice="make room: a full disk lets nothing be scheduled or settled", page=_PAGE)
    else:
        yield ok("disk", found)


def _access_finding(file: Path) -> Finding:
    mode = stat.S_IMODE(file.stat().st_mode)
    found = f"mode {mode:04o}"
    if not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)):
        advice = f"this user must be allowed to write to {file} and to its folder, where SQLite keeps its journal"
        return fail("file", found, advice=advice, page=_PAGE)
    if mode & stat.S_IWOTH:
        return warn("file", found, advice=f"every user of this host can change it: chmod o-rwx {file}", page=_PAGE)
    if mode & stat.S_IROTH:
        return ok(
            "file", found, advice=f"every user of this host can read the payloads; if not meant: chmod o-r {file}"
        )
    return ok("file", found)
