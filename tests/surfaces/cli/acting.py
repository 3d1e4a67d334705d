"""How does an action get into a state that only the engine brings about?"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from postdate import Postdate

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def fire(app: Postdate, action_type: str, payload: Mapping[str, object], *, workspace: UUID | None = None) -> str:
    """Schedule an action that is due, do one pass, close the application, and return the action's id."""

    async def pass_over() -> str:
        action = await app.schedule(action_type, payload, at=LONG_AGO, workspace=workspace)
        await app.tick()
        await app.close()
        return str(action.id)

    return asyncio.run(pass_over())
