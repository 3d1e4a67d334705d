"""How do apps break what postdate keeps? By giving the lease of a run back, or by not even starting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import update

from postdate import ActionType, Context, NotConfigured, Postdate
from postdate.store.queue import lease_cleared

if TYPE_CHECKING:
    from postdate import Action

app = Postdate()
unable = Postdate()


@app.action("post")
def post(ctx: Context, payload: dict[str, str]) -> None:
    """Let somebody else have it too, the first time."""
    if ctx.attempt == 1:
        meddle(ctx.action, payload["database_url"])


def meddle(action: Action, database_url: str) -> None:
    """Write to the queue behind postdate's back."""
    there = app.on(database_url)
    with there.kernel.transaction(None) as tx:
        queue = tx.tables.queue
        tx.execute(update(queue).where(queue.c.action_id == action.id).values(**lease_cleared()))
    there.kernel.database.close_sync()


def lacking() -> None:
    """Refuse to start."""
    raise NotConfigured("SHOP_URL", needed_by="post")


unable.include(ActionType(name="post", handler=post, configured=lacking))
