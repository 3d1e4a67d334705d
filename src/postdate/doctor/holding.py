"""Does anything wait because somebody, or a restored backup, has stopped it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postdate.doctor.finding import fail, ok, warn
from postdate.domain.instant import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterator

    from postdate.app import Postdate
    from postdate.doctor.finding import Finding
    from postdate.domain.pause import Pause

_SHOWN = 5


def holding_findings(app: Postdate) -> Iterator[Finding]:
    """Yield whether the installation is on hold, and what is paused."""
    held = app.sync.held()
    if held is None:
        yield ok("hold", "none")
    else:
        advice = "nothing fires: look whether this is a backup that was put back, then postdate release"
        since = rfc3339(held.since)
        yield fail("hold", f"since {since}: {held.because}", advice=advice, page="pausing#after-a-restore")
    paused = app.sync.paused()
    if not paused:
        yield ok("pauses", "none")
        return
    found = "; ".join(map(_told, paused[:_SHOWN])) + (f"; and {len(paused) - _SHOWN} more" if paused[_SHOWN:] else "")
    advice = "what falls due there waits for postdate resume"
    yield warn("pauses", found, advice=advice, page="pausing#pauses")


def _told(pause: Pause) -> str:
    parts = (
        None if pause.action_type is None else pause.action_type,
        None if pause.workspace_id is None else f"workspace {pause.workspace_id}",
    )
    return f"{' in '.join(filter(None, parts))} since {rfc3339(pause.paused_at)}"
