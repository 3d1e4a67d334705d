"""What does the engine make of one run of a handler?

`outcome_of` runs an action type as the engine does: the payload is validated and stored as `schedule` would, loaded
again, and handed over with a context; whatever the handler returns or raises becomes an outcome. It takes no database.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from postdate.clock import ManualClock
from postdate.domain.action import Action, Claimed
from postdate.domain.states import Status
from postdate.engine.dispatch import Dispatcher, Ended

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import httpx2
    from pydantic import BaseModel

    from postdate.domain.outcome import Outcome
    from postdate.registry import ActionType

NOW = datetime(2027, 3, 14, 9, 0, tzinfo=UTC)
"""When the runs begin: `ctx.now`."""
ACTION_ID = UUID("0195f0a2-0000-7000-8000-000000000001")
"""Whose text is `ctx.idempotency_key`."""


def submitted_action(
    action_type: ActionType,
    payload: BaseModel | Mapping[str, object],
    *,
    target: str | None = None,
    attempt: int = 1,
    action_id: UUID = ACTION_ID,
) -> Action:
    """Return an action that was due at `NOW` and has been claimed. Raises `InvalidPayload` as `schedule` does."""
    return Action(
        id=action_id,
        workspace_id=None,
        user_id=UUID(int=1),
        action_type=action_type.name,
        target_key=target,
        payload=action_type.dump(payload, target=target),
        publish_at=NOW,
        created_at=NOW - timedelta(days=7),
        status=Status.SUBMITTED,
        attempt_count=attempt,
        submitted_at=NOW,
        updated_at=NOW,
    )


async def outcome_of(action_type: ActionType, action: Action, *, http: httpx2.AsyncClient) -> Outcome:
    """Run the handler once and return what came of it. Of a doubtful run, `lookup` is not asked."""
    return await _ended(lambda engine: engine.take_up(_claimed(action), replace(action_type, lookup=None)).call(), http)


async def lookup_of(action_type: ActionType, action: Action, *, http: httpx2.AsyncClient) -> Outcome:
    """Ask `lookup` what became of a doubtful run, and return the outcome; the handler is not run."""
    return await _ended(lambda engine: engine.take_up(_claimed(action), action_type).ask(), http)


async def _ended(begin: Callable[[Dispatcher], None], http: httpx2.AsyncClient) -> Outcome:
    ended: list[Ended] = []
    dispatcher = Dispatcher(clock=ManualClock(NOW), http=http, ended=ended.append, has_room=lambda: None)
    begin(dispatcher)
    await dispatcher.drain()
    return ended[0].outcome


def _claimed(action: Action) -> Claimed:
    return Claimed(action=action, lease_token=UUID(int=2), lease_until=NOW + timedelta(hours=1), due_at=NOW)
