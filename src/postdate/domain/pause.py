"""What is a pause, and what does it stop?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from uuid import UUID


@dataclass(frozen=True, kw_only=True)
class Pause:
    """Nothing of this workspace, of this action type, or of this type in this workspace starts until it ends."""

    id: UUID
    workspace_id: UUID | None
    """None for every workspace, and for what has none."""
    action_type: str | None
    """None for every type."""
    paused_at: datetime
    paused_by: str
    note: str | None = None

    def stops(self, *, workspace_id: UUID | None, action_type: str) -> bool:
        """Whether it stops an action of this type and workspace."""
        return self.workspace_id in {None, workspace_id} and self.action_type in {None, action_type}


@dataclass(frozen=True, kw_only=True)
class EndedPause(Pause):
    """A pause that somebody has ended: it stops nothing any more."""

    ended_at: datetime
    ended_by: str
    ended_note: str | None = None


def stopped_types(pauses: Iterable[Pause]) -> frozenset[str]:
    """Return the action types of which nothing starts, whosever it is."""
    return frozenset(
        pause.action_type for pause in pauses if pause.workspace_id is None and pause.action_type is not None
    )
