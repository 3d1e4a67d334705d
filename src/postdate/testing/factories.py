"""How does a test get owners, and actions in any state?

Owners are rows; actions are scheduled by the verb and then moved by the functions that move them in production, so
that whatever a test meets could have come about.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from sqlalchemy import insert

from postdate.domain.states import MOVES, REASONS, Move, Reason, Status
from postdate.errors import Invalid
from postdate.testing.moves import ACTOR, make_move

if TYPE_CHECKING:
    from datetime import datetime

    from pydantic import BaseModel

    from postdate.app import Postdate
    from postdate.domain.action import Action

STATES: tuple[tuple[Status, Reason | None], ...] = tuple(
    (status, reason) for status in Status for reason in (sorted(REASONS[status]) if status in REASONS else (None,))
)
"""Every state that an action can be in: its status, and the reason where the status has some."""

_AN_HOUR = timedelta(hours=1)


def make_profile(app: Postdate, *, tz: str | None = None) -> UUID:
    """Insert a profile into our own table, and return its id."""
    made = uuid4()
    with app.kernel.transaction(None) as tx:
        tx.execute(insert(tx.tables.profiles).values(id=made, tz=tz, created_at=app.kernel.now(tx)))
    return made


def make_workspace(app: Postdate, *, account_timezone: str | None = None) -> UUID:
    """Insert a workspace into our own table, and return its id."""
    made = uuid4()
    settings = {} if account_timezone is None else {"account_timezone": account_timezone}
    with app.kernel.transaction(None) as tx:
        tx.execute(insert(tx.tables.workspaces).values(id=made, settings=settings, created_at=app.kernel.now(tx)))
    return made


def make_action(
    app: Postdate,
    status: Status = Status.QUEUED,
    reason: Reason | None = None,
    *,
    action_type: str,
    payload: BaseModel | dict[str, object] | None = None,
    at: datetime | None = None,
    **asked: Any,
) -> Action:
    """Make an action that stands at `status` for `reason`, as one of `STATES`, and return it.

    Its thing is a new one unless `payload` says otherwise. It is due in an hour where it stays queued, else it was
    due an hour ago, unless `at` (aware) says otherwise. `asked` is what else `schedule` takes. To be claimed it has
    to be the first of its type that is due; raises `LookupError` where it was not. Raises `Invalid` for a state that
    there is not, and what `schedule` raises.
    """
    if (status, reason) not in STATES:
        raise Invalid(field="reason", rule=f"is none that {status} can have", value=reason)
    if at is None:
        now = app.kernel.clock.now()
        at = now + _AN_HOUR if status is Status.QUEUED else now - _AN_HOUR
    made = app.sync.schedule(action_type, payload or {"thing_id": f"thing-{uuid4()}"}, at=at, actor=ACTOR, **asked)
    for move in _way_to(status, reason):
        if not make_move(app, made, move.cause, reason):
            raise LookupError(f"action {made.id} did not {move.cause}: is another one due before it?")
        made = app.sync.get(made.id)
    return made


def _way_to(status: Status, reason: Reason | None) -> list[Move]:
    """Return the moves that lead from queued to a state, by the first way that the table of moves has."""
    if status is Status.QUEUED:
        return []
    last = next(move for move in MOVES if move.target is status and reason in (move.reasons or {None}))
    return [*_way_to(last.source, last.only_from), last]
