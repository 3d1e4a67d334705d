"""What has just been claimed, and need it be looked at before it runs?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from sqlalchemy import bindparam, select

from postdate.domain.action import RECURRING, Action, Claimed
from postdate.domain.states import Status
from postdate.store.actions import INTENT, PLAIN, guard_of, intent_of
from postdate.store.read_all import read_all

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import Select

    from postdate.store.read_all import Rows
    from postdate.store.transaction import Transaction

_STANDING = ("attempt_count", "last_error", "submitted_at", "key")
"""What the queue tells of a claimed action, by the names of its fields; without the key it would put one together."""

CLAIMED = (*_STANDING, *PLAIN)
"""With which fields of an action a row of `_under_lease` begins."""

_EXPIRES_AT, _ORIGIN = map(CLAIMED.index, ("expires_at", "origin"))
_DUE_AT, _GUARD = range(len(CLAIMED), len(CLAIMED) + 2)


class ClaimedSet(Sequence[Claimed]):
    """What was claimed at once, in the order in which it is due.

    The actions are read when the first of them is asked for. That takes half as long as to claim them, and on SQLite
    nobody else writes while the transaction is open: so it is done after it, but for what must be looked at before.
    """

    def __init__(self, rows: Rows, *, lease_token: UUID, lease_until: datetime) -> None:
        """Keep the rows of `_under_lease`."""
        self._rows = rows
        self._lease_token = lease_token
        self._lease_until = lease_until

    @property
    def is_plain(self) -> bool:
        """Whether all of it runs as it stands: nothing expires, is barred by the publish guard, or is a repetition."""
        return not any(
            row[_EXPIRES_AT] is not None or row[_GUARD] is not None or row[_ORIGIN] == RECURRING
            for row in self._rows.given
        )

    def __len__(self) -> int:
        """Return how much was claimed."""
        return len(self._rows.given)

    def __iter__(self) -> Iterator[Claimed]:
        """Return the claims one by one."""
        return iter(self._read)

    @overload
    def __getitem__(self, place: int) -> Claimed: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Claimed]: ...
    def __getitem__(self, place: int | slice) -> Claimed | Sequence[Claimed]:
        """Return one of the claims, or some."""
        return self._read[place]

    @cached_property
    def _read(self) -> list[Claimed]:
        return [self._claimed(self._rows.read(row)) for row in self._rows.given]

    def _claimed(self, values: Sequence[Any]) -> Claimed:
        fields = dict(zip(CLAIMED, values, strict=False))
        due_at, guard, *intent = values[_DUE_AT:]
        if intent[0] is not None:
            fields["intent"] = intent_of(intent)
        fields["status"] = Status.SUBMITTED
        fields["updated_at"] = fields["submitted_at"]
        return Claimed(Action.read(fields), self._lease_token, self._lease_until, due_at, guard is not None)


def claimed_under(tx: Transaction, action_type: str, *, lease_token: UUID, lease_until: datetime) -> ClaimedSet:
    """Return what this transaction has claimed of one type under this lease."""
    wanted = {"wanted_type": action_type, "token": lease_token, "until": lease_until}
    return ClaimedSet(read_all(tx, _under_lease, wanted), lease_token=lease_token, lease_until=lease_until)


def _under_lease(tx: Transaction) -> Select[Any]:
    """By the end of the lease, which has an index; the token has none, and needs none beside it."""
    q, a = tx.tables.queue, tx.tables.actions
    fields = {**{name: q.c[name] for name in _STANDING}, **{name: a.c[name] for name in PLAIN}}
    token = bindparam("token", type_=q.c.lease_token.type)
    until = bindparam("until", type_=q.c.lease_until.type)
    type_ = q.c.action_type.concat("")  # no column, or the planner may take an index that begins with the type
    return (
        select(
            *(fields[name] for name in CLAIMED),
            q.c.due_at,
            guard_of(tx, q.c.key).label("guard"),
            *(a.c[name] for name in INTENT),
        )
        .where(q.c.lease_until == until, q.c.lease_token == token, type_ == bindparam("wanted_type"))
        .where(a.c.id == q.c.action_id)
        .order_by(q.c.due_at, q.c.action_id)
    )
