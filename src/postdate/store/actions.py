"""How does an action come into being, and what did it ask for?"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from sqlalchemy import Integer, func, insert, literal_column, or_, select
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from postdate.domain.action import Intent, Request
from postdate.domain.text import cleaned
from postdate.errors import Invalid
from postdate.store.sets import one_of, one_of_named, rowset_named, rowset_texts, set_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import Column, Insert, Row, ScalarSelect, Select, Table
    from sqlalchemy.sql.dml import ReturningInsert
    from sqlalchemy.sql.expression import ColumnElement

    from postdate.store.schema import Tables
    from postdate.store.transaction import Transaction

_TICK = timedelta(minutes=1)
_QUEUED = {
    "action_id": "id",
    "action_type": "action_type",
    "workspace_id": "workspace_id",
    "user_id": "user_id",
    "key": "key",
    "overlap_key": "overlap_key",
    "due_at": "publish_at",
    "source": "source",
}
"""The columns of `queue` that are written with an action, and which field of `Request` each takes."""

INTENT = ("wall_time", "tz", "gap", "fold", "tz_source", "zone_policy")
"""The columns of `actions` that are the fields of `Intent`; the first is null where there is none."""

PLAIN = (
    "id",
    "workspace_id",
    "user_id",
    "action_type",
    "target_key",
    "payload",
    "occurrence",
    "publish_at",
    "expires_at",
    "origin",
    "origin_id",
    "replaces_id",
    "overlap_key",
    "traceparent",
    "created_at",
    "fingerprint",
)
"""The columns of `actions` that are fields of `Request`, but for those of its intent."""


@dataclass(frozen=True, kw_only=True)
class Admission:
    """Which of the requests became actions. Those in neither were kept out by a key, an overlap key or the guard."""

    admitted: frozenset[UUID]
    invalid: Mapping[UUID, Invalid] = field(default_factory=dict)


def insert_actions(tx: Transaction, requests: Sequence[Request], *, in_savepoint: bool = True) -> Admission:
    """Insert what the unique keys and the publish guard admit; the rest drops out row by row (P26, P55, P64).

    Where two requests of one call share a key and an overlap key, the first is admitted. Owners must be held
    (`hold_owners`). Without a savepoint, which is for the one transaction that can be begun anew, the rare error that
    it would undo is raised: `IntegrityError` or `DataError`.
    """
    if not requests:
        return Admission(admitted=frozenset())
    # One order for all, so that two calls that share keys wait for each other rather than deadlock. Overlap keys come
    # first: a thing hardly ever has two of them, while many things may share one.
    ordered = sorted(requests, key=lambda request: (request.overlap_key or "", request.key or ""))
    if not in_savepoint:
        return Admission(admitted=_insert_set(tx, ordered))
    try:
        with tx.savepoint():
            return Admission(admitted=_insert_set(tx, ordered))
    except (IntegrityError, DataError):
        # a sibling was settled between the look at the guard and the trigger's own look: take one at a time
        return _insert_one_by_one(tx, ordered)


def _insert_one_by_one(tx: Transaction, requests: Sequence[Request]) -> Admission:
    admitted: set[UUID] = set()
    invalid: dict[UUID, Invalid] = {}
    for request in requests:
        try:
            with tx.savepoint():
                admitted |= _insert_set(tx, [request])
        except (IntegrityError, DataError) as error:
            if not is_unique_violation(error):
                invalid[request.id] = Invalid(field="request", rule=f"is refused by the database: {_reason(error)}")
    return Admission(admitted=frozenset(admitted), invalid=invalid)


def _insert_set(tx: Transaction, requests: Sequence[Request]) -> frozenset[UUID]:
    """Write `queue` first, in the order of the requests, then `actions` for those that got in."""
    queued = rowset_texts(tx.tables, "asked", _queued_types(tx), _queue_columns(requests))
    admitted = frozenset(tx.execute(tx.prepared(_insert_of_queued), queued).scalars())
    winners = [request for request in requests if request.id in admitted]
    if winners:
        columns = _action_columns(winners)
        # what nobody asked for is null anyway: half of the columns, as a rule
        given = tuple(name for name, values in columns.items() if any(value is not None for value in values))
        asked = rowset_texts(tx.tables, "asked", _types(tx.tables.actions, given), columns)
        tx.execute(tx.prepared(_insert_of_asked, given), asked)
        announce_queued(tx, columns["publish_at"], now=requests[0].created_at)
    return admitted


def _insert_of_asked(tx: Transaction, given: Sequence[str]) -> Insert:
    source = rowset_named(tx, "asked", _types(tx.tables.actions, given))
    return insert(tx.tables.actions).from_select(given, select(source))


def _insert_of_queued(tx: Transaction) -> ReturningInsert[Any]:
    q = tx.tables.queue
    source = rowset_named(tx, "asked", _queued_types(tx))
    chosen = select(*(source.c[name] for name in _QUEUED)).where(guard_of(tx, source.c.key).is_(None))
    return (
        tx.insert(q)
        .from_select(list(_QUEUED), chosen.order_by(source.c.place))
        .on_conflict_do_nothing()
        .returning(q.c.action_id)
    )


def guard_of(tx: Transaction, key: ColumnElement[str | None]) -> ScalarSelect[UUID]:
    """Return the action by which the publish guard bars this key; null where nothing does.

    A value, not `exists`, which a plan may turn into a join that reads every outcome.
    """
    o = tx.tables.outcomes
    return select(o.c.action_id).where(o.c.key == key, _guarding(o)).limit(1).correlate_except(o).scalar_subquery()


def announce_queued(tx: Transaction, due: Sequence[datetime], *, now: datetime) -> None:
    """Note what was queued, and at commit wake the engines of other processes if it is due before their next tick."""
    tx.queued.extend(due)
    if not tx.is_sqlite and min(due) <= now + _TICK:
        tx.execute(select(func.pg_notify(tx.tables.names.channel, "")))


def guarded_keys(tx: Transaction, keys: Collection[str], *, but: Collection[UUID] = ()) -> dict[str, UUID]:
    """Return those of the keys that were published or are unconfirmed, each with the action that was.

    Actions among `but` do not count: nobody stands in their own way.
    """
    if not keys:
        return {}
    wanted = {"keys": set_text(tx.tables, tx.tables.outcomes.c.key.type, keys)}
    found = tx.execute(tx.prepared(_guards_of_keys), wanted).all()
    return {row.key: row.action_id for row in found if row.action_id not in but}


def _guards_of_keys(tx: Transaction) -> Select[tuple[str, UUID]]:
    o = tx.tables.outcomes
    return select(o.c.key, o.c.action_id).where(one_of_named(tx, o.c.key, "keys"), _guarding(o))


def active_keys(tx: Transaction, keys: Collection[str]) -> dict[str, UUID]:
    """Return those of the keys that an active action holds, each with that action."""
    if not keys:
        return {}
    q = tx.tables.queue
    found = select(q.c.key, q.c.action_id).where(one_of(tx, q.c.key, keys))
    return {row.key: row.action_id for row in tx.execute(found)}


def _guarding(outcomes: Table) -> ColumnElement[bool]:
    """Return the condition of the publish guard: the outcome bars its key, since it went out, or may have.

    Written out, not with parameters, so that every plan sees that the guard's partial index will do.
    """
    return or_(outcomes.c.status == literal_column("'published'"), outcomes.c.reason == literal_column("'unconfirmed'"))


def overlap_holder(tx: Transaction, action_type: str, overlap_key: str) -> UUID | None:
    """Return the active action of this type that holds the overlap key."""
    q = tx.tables.queue
    return tx.execute(
        select(q.c.action_id).where(q.c.action_type == action_type, q.c.overlap_key == overlap_key)
    ).scalar()


def request_columns(tables: Tables) -> list[Column[Any]]:
    """Return the columns of `actions` that `request_fields` reads, in the order in which it reads them."""
    return [tables.actions.c[name] for name in (*PLAIN, *INTENT)]


def request_fields(row: Row[Any]) -> dict[str, Any]:
    """Return the fields of `Request` in a row that begins with `request_columns`."""
    fields = dict(zip(PLAIN, row, strict=False))
    if row.wall_time is not None:
        fields["intent"] = intent_of([getattr(row, name) for name in INTENT])
    return fields


def intent_of(values: Sequence[Any]) -> Intent:
    """Return the intent with these values of `INTENT`. One that tells no source of its zone keeps the zone."""
    fields = dict(zip(INTENT, values, strict=True))
    return Intent(**fields | {"tz_source": fields["tz_source"] or "call"})


def is_unique_violation(error: DBAPIError) -> bool:
    """Whether the error says that a unique key, or the publish guard, refused a row."""
    original = error.orig
    sqlstate = getattr(original, "sqlstate", None) or getattr(original, "pgcode", None)  # psycopg2 says pgcode
    return sqlstate == "23505" or "UNIQUE constraint failed" in str(original) or "queue_guard" in str(original)


def _reason(error: DBAPIError) -> str:
    return cleaned(str(error.orig).partition("\n")[0], limit=200)


def _types(table: Table, names: Iterable[str]) -> dict[str, Any]:
    return {name: table.c[name].type for name in names}


def _queued_types(tx: Transaction) -> dict[str, Any]:
    return {**_types(tx.tables.queue, _QUEUED), "place": Integer()}


def _queue_columns(requests: Sequence[Request]) -> dict[str, Sequence[Any]]:
    """Return what the requests write to `queue`, in their order."""
    columns = zip(*map(_of_queue, requests), strict=True)
    return {**dict(zip(_QUEUED, columns, strict=True)), "place": range(len(requests))}


def _action_columns(requests: Sequence[Request]) -> dict[str, Sequence[Any]]:
    """Return what the requests write to `actions`."""
    columns: dict[str, Sequence[Any]] = dict(zip(PLAIN, zip(*map(_of_actions, requests), strict=True), strict=True))
    if any(request.intent is not None for request in requests):
        columns |= {name: [getattr(request.intent, name, None) for request in requests] for name in INTENT}
    return columns


_of_queue = attrgetter(*_QUEUED.values())
_of_actions = attrgetter(*PLAIN)
