"""How is a reminder written to the log? The simplest complete provider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from postdate.domain.outcome import Published

if TYPE_CHECKING:
    from postdate.registry import Context


class Reminder(BaseModel):
    """The payload of `reminder`: a text to come back to."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    thing_id: str | None = Field(default=None, min_length=1, max_length=255)
    text: Annotated[str, StringConstraints(min_length=1, max_length=10_000)]


@dataclass(frozen=True, kw_only=True)
class Log:
    """The provider of `reminder`."""

    async def remind(self, ctx: Context, payload: Reminder) -> Published:
        """Write one structured line; it has no id of its own."""
        ctx.log.info(
            "reminder",
            text=payload.text,
            thing_id=payload.thing_id,
            target=ctx.target,
            action_id=ctx.idempotency_key,
        )
        return Published()
