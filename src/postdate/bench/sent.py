"""Which statements does the product send to schedule, claim and settle?"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sqlalchemy import event

from postdate.bench.figure import MeasurementFailed
from postdate.bench.subject import ACTION_TYPE, LEASE, Post, application, new_action
from postdate.clock import host_time
from postdate.domain.outcome import Published
from postdate.domain.settle import settle
from postdate.engine.claim import Claimer, claim_round
from postdate.engine.settle import EndingSet, ending_of, settle_set

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy import Connection

    from postdate.app import Postdate
    from postdate.bench.place import Place
    from postdate.store.transaction import Transaction

_AHEAD = timedelta(days=1)
_BOUNDARIES = ("BEGIN", "SAVEPOINT", "RELEASE")


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A statement, as the driver gets it, and the values that it had."""

    text: str
    places: Sequence[str]
    """The names of its parameters, in the order in which they stand."""
    values: Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class SentStatements:
    """What is sent for a set of actions: three statements to schedule it, three to claim it, two to settle it."""

    owners: Sent
    enqueue: Sent
    insert: Sent
    terms: Sent
    claim: Sent
    read: Sent
    finish: Sent
    forget: Sent


def sent_statements(place: Place) -> SentStatements:
    """Let the product schedule, claim and settle an action, in a transaction that is undone, and note what it sends.

    Raises `MeasurementFailed` where that is not what is known here.
    """
    app = application(place, concurrency=1, ran=lambda _: None)
    with place.undone() as tx:
        _schedule_one(app, place, tx)  # which looks at the schema, once
        with _noted(tx.connection) as sent:
            _schedule_one(app, place, tx)
            _fire_one(app, tx)
    statements = [each for each in sent if not each.text.startswith(_BOUNDARIES)]
    names = list(SentStatements.__annotations__)
    if len(statements) != len(names):
        raise MeasurementFailed(f"{len(statements)} statements are sent for an action, not {len(names)}")
    return SentStatements(**dict(zip(names, statements, strict=True)))


def _schedule_one(app: Postdate, place: Place, tx: Transaction) -> None:
    post = Post(thing_id=f"noted-{uuid4()}")
    app.sync.schedule_many([new_action(place, post, host_time() + _AHEAD)], connection=tx.connection)


def _fire_one(app: Postdate, tx: Transaction) -> None:
    now = host_time() + 2 * _AHEAD
    types = {ACTION_TYPE: app.kernel.registry[ACTION_TYPE]}
    claimer = Claimer(worker="raw", token=uuid4(), lease=LEASE, margin=app.kernel.settings.lease_margin)
    claimed = claim_round(tx, claimer, {ACTION_TYPE: 1}, types, now=now).runnable
    policy = types[ACTION_TYPE].policy
    endings = [
        ending_of(one, settle(Published(provider_id="raw"), attempt_count=1, policy=policy, now=now, jitter=0.0))
        for one in claimed
    ]
    settle_set(tx, types, EndingSet.of(tx.tables, endings), now=now)


@contextmanager
def _noted(connection: Connection) -> Iterator[Sequence[Sent]]:
    sent: list[Sent] = []

    def note(_connection: Any, _cursor: Any, text: str, parameters: Any, context: Any, _many: bool) -> None:  # noqa: FBT001 - SQLAlchemy's signature
        places = getattr(context.compiled, "positiontup", None) or list(parameters)
        values = parameters if isinstance(parameters, dict) else dict(zip(places, parameters, strict=True))
        sent.append(Sent(text=text, places=places, values=values))

    event.listen(connection, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(connection, "before_cursor_execute", note)
