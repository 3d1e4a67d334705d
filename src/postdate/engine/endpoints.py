"""Where does a handler look up, and note, which endpoints are gone?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from postdate.store.endpoints import disable_if_action_exists, find_disabled

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.action import Action
    from postdate.kernel import Kernel


@dataclass(slots=True)
class StoredEndpoints:
    """The endpoints of the action's owner, in the database: each call is a transaction of its own."""

    kernel: Kernel
    action: Action

    async def disabled_since(self, url: str) -> datetime | None:
        """Return when the endpoint was disabled (UTC); None where it is not."""
        found = await self.kernel.work(lambda tx: find_disabled(tx, owner=self._owner, url=url), read_only=True)
        return None if found is None else found.disabled_at

    async def disable(self, url: str, *, at: datetime) -> None:
        """Disable the endpoint."""
        action_id = self.action.id
        await self.kernel.work(
            lambda tx: disable_if_action_exists(tx, owner=self._owner, url=url, action_id=action_id, now=at)
        )

    @property
    def _owner(self) -> UUID:
        return self.action.workspace_id or self.action.user_id
