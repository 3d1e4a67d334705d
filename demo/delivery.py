"""What has arrived?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """One e-mail or webhook, as its receiver saw it."""

    arrived: datetime
    action_id: UUID
    """Of the action that sent it: every attempt at one action carries the same."""
    thing: str
    """What it is about, read from the message itself."""
    what: str


Deliver = Callable[[Delivery], None]
"""Whom a receiver tells."""
