"""What does a handler see when there is no database around it?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from postdate.context import Context
from postdate.domain.action import Action
from postdate.domain.states import Status

if TYPE_CHECKING:
    import httpx2

NOW = datetime(2027, 3, 14, 9, 0, 0, 250_000, tzinfo=UTC)
ACTION_ID = UUID("0195f0a2-0000-7000-8000-000000000001")


def context(http: httpx2.AsyncClient, *, attempt: int = 1, target: str | None = None) -> Context:
    """Return the context of one run of an action that was due at `NOW`."""
    action = Action(
        id=ACTION_ID,
        workspace_id=None,
        user_id=UUID(int=1),
        action_type="under_test",
        target_key=target,
        payload={},
        publish_at=NOW,
        created_at=NOW - timedelta(days=7),
        status=Status.SUBMITTED,
        attempt_count=attempt,
        submitted_at=NOW,
        updated_at=NOW,
    )
    return Context(action=action, now=NOW, deadline=NOW + timedelta(minutes=1), http=http)
