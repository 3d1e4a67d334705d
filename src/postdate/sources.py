"""Who says what should be scheduled, and how does one say it?

The reconciler asks a source once a minute, for each workspace, what it wants, and makes the queue hold that.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from pydantic import BaseModel
from pydantic_core import from_json, to_jsonable_python

from postdate.domain import text
from postdate.domain.action import SEPARATOR
from postdate.domain.reconcile import Parent
from postdate.errors import Invalid, InvalidPayload, UnknownSource
from postdate.store.database import Database
from postdate.store.upstream import Reading, Upstream, parameters_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

    from postdate.domain.walltime import Fold, Gap

DEFAULT_TIMEOUT = timedelta(seconds=60)
"""How long a source may take for one workspace, the time that we take for our part not counted."""

_DIGITS = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class Desired:
    """Something that should be scheduled: as for `schedule`, with a `thing_id` in the payload.

    Its key is action type, thing, target and occurrence. Everything else may change from one pass to the next, and the
    action follows.
    """

    action_type: str
    payload: BaseModel | Mapping[str, object]
    at: datetime | str
    tz: str | None = None
    gap: Gap = "forward"
    fold: Fold = "first"
    target: str | None = None
    user: UUID | str | None = None
    occurrence: str = ""
    expires_at: datetime | str | None = None

    @property
    def key(self) -> str:
        """The key of its action. Raises `Invalid` where there is none: no thing, or a part that is no name."""
        payload = self.payload
        thing = payload.get("thing_id") if isinstance(payload, Mapping) else getattr(payload, "thing_id", None)
        parts = (
            text.name(self.action_type, field="action_type", limit=text.MAX_TYPE),
            text.name(thing, field="payload.thing_id"),
            text.optional_name(self.target, field="target") or "",
            "" if self.occurrence == "" else text.name(self.occurrence, field="occurrence"),
        )
        return SEPARATOR.join(parts)

    def fingerprint(self) -> str:
        """Return what is another text once anything is said otherwise. Raises `InvalidPayload` for what is not JSON."""
        try:
            payload = self.payload.model_dump(mode="json") if isinstance(self.payload, BaseModel) else self.payload
            instants = [in_utc(each) for each in (self.at, self.expires_at)]
            said = to_jsonable_python([payload, self.tz, self.gap, self.fold, self.user, *instants])
            words = json.dumps(said, sort_keys=True, separators=(",", ":")).encode()
        except Exception as error:  # noqa: BLE001 - a model's own serializers and a zone's own code run here
            raise InvalidPayload(field="payload", rule=f"must be JSON: {text.cleaned(error, limit=200)}") from None
        return hashlib.sha256(words).hexdigest()[:_DIGITS]


def in_utc(value: datetime | str | None) -> datetime | str | None:
    """Return an aware datetime in UTC, so that the zone of a session makes no difference, and the rest as it is."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        return value
    try:
        return value.astimezone(UTC)
    except OverflowError:  # there is no such year in UTC: refused once it is to be scheduled, by the name of its field
        return value


class Source(Protocol):
    """Upstream truth, in Python."""

    def desired(self, workspace: UUID | None, *, thing_id: str | None = None) -> AsyncIterator[Desired]:
        """Yield what should be scheduled in this workspace now, in any order: all of it, whether scheduled or not.

        What is not yielded is withdrawn, unless this raises: then nothing is. With `thing_id` it may leave other things
        out.
        """
        ...

    async def parents(self, thing_ids: Sequence[str]) -> Mapping[str, Parent]:
        """Return how these things stand, without those that are not there any more."""
        ...


@dataclass(frozen=True, kw_only=True)
class SqlSource:
    """A source in SQL over your own tables, in the application's database or in the one that `database_url` names.

    `desired_sql` is one SELECT. Its columns `action_type`, `thing_id` and `at`, and where there are `tz`, `gap`,
    `fold`, `target`, `user_id`, `occurrence`, `expires_at` and `payload` (a JSON object), make a `Desired`; every other
    column is a field of the payload. `:workspace` stands for the workspace. `parents_sql` is a SELECT of `thing_id` and
    `finished` (a boolean) among `:thing_ids`, as in `where id in :thing_ids`; it is tried in every pass, needed or not.

    Both run in transactions that can only read. Raises `Invalid` for other parameters.
    """

    desired_sql: str
    parents_sql: str
    database_url: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse parameters that nobody would fill in."""
        if not parameters_of(self.desired_sql) <= {"workspace"}:
            raise Invalid(field="desired_sql", rule="must have no parameter but :workspace", value=self.desired_sql)
        if parameters_of(self.parents_sql) != {"thing_ids"}:
            raise Invalid(field="parents_sql", rule="must have :thing_ids as its one parameter", value=self.parents_sql)

    @property
    def by_workspace(self) -> bool:
        """Whether it asks for one workspace at a time."""
        return "workspace" in parameters_of(self.desired_sql)


class SqlReading:
    """An `SqlSource` on the database that it is asked on."""

    def __init__(self, source: SqlSource, upstream: Upstream) -> None:
        self._source = source
        self._upstream = upstream

    async def desired(self, workspace: UUID | None, *, thing_id: str | None = None) -> AsyncIterator[Desired]:
        """Yield a `Desired` for each row, and then try `parents_sql`, which is needed for withdrawals alone.

        A mistake in it is to be heard of at once, and not on the day when something is taken back.
        """
        sql, said = self._source.desired_sql, None
        async with self._upstream.reading() as tables:
            async for row in tables.rows(sql, _NEEDED, workspace=workspace, thing_id=thing_id):
                said = row["thing_id"] if said is None else said
                yield _desired_of(row)
            await self._parents(tables, [None if said is None else str(said)])

    async def parents(self, thing_ids: Sequence[str]) -> Mapping[str, Parent]:
        """Ask for them all at once."""
        async with self._upstream.reading() as tables:
            return await self._parents(tables, thing_ids)

    async def _parents(self, tables: Reading, thing_ids: Sequence[str | None]) -> Mapping[str, Parent]:
        rows = await tables.among(self._source.parents_sql, ("thing_id", "finished"), thing_ids=thing_ids)
        return {str(row["thing_id"]): _parent_of(row["finished"]) for row in rows}


@dataclass(frozen=True, kw_only=True)
class Registered:
    """A source, and how the reconciler asks it."""

    name: str
    source: Source | SqlSource
    workspaces: tuple[UUID | None, ...] | None = None
    """For which workspaces; None for every one that there is."""
    timeout: timedelta = DEFAULT_TIMEOUT

    def on(self, database: Database) -> Source:
        """Return what can be asked, on the application's database where it names no other."""
        if not isinstance(self.source, SqlSource):
            return self.source
        url = self.source.database_url
        there = database if url is None else Database(url)
        return SqlReading(self.source, Upstream(database=there, timeout=self.timeout, ours=url is None))


class Sources:
    """The sources that this process knows."""

    def __init__(self) -> None:
        """Start with none."""
        self._sources: dict[str, Registered] = {}

    def add(
        self,
        name: str,
        source: Source | SqlSource,
        *,
        workspaces: Iterable[UUID | None] | None = None,
        timeout: timedelta = DEFAULT_TIMEOUT,
    ) -> None:
        """Register a source. Raises `Invalid` where its name is taken or is none, or for what are no workspaces."""
        text.name(name, field="source", limit=text.MAX_TYPE)
        if name in self._sources:
            raise Invalid(field="source", rule="is registered already", value=name)
        if timeout <= timedelta(0):
            raise Invalid(field="timeout", rule="must be longer than nothing", value=timeout)
        if workspaces is None and isinstance(source, SqlSource) and not source.by_workspace:
            workspaces = [None]  # asked for each workspace, it would say the same each time
        chosen = None if workspaces is None else tuple(workspaces)
        if any(not isinstance(each, UUID | None) for each in chosen or ()):
            raise Invalid(field="workspaces", rule="must be uuids, or None for what has no workspace", value=chosen)
        self._sources[name] = Registered(name=name, source=source, workspaces=chosen, timeout=timeout)

    def __getitem__(self, name: str) -> Registered:
        """Return a source by its name. Raises `UnknownSource`."""
        try:
            return self._sources[name]
        except (KeyError, TypeError):
            raise UnknownSource(name, known=list(self._sources)) from None

    def __iter__(self) -> Iterator[Registered]:
        """Iterate over the sources in the order of their registration."""
        return iter(self._sources.values())

    def __len__(self) -> int:
        """Return how many sources there are."""
        return len(self._sources)


_NEEDED = ("action_type", "thing_id", "at")
_OPTIONAL = ("tz", "gap", "fold", "target", "occurrence", "expires_at")
_COLUMNS = {*_NEEDED, "user_id", "payload", *_OPTIONAL}
_IN_KEY = ("thing_id", "target", "occurrence")
"""What a table may number, while a key is text."""


def _parent_of(finished: object) -> Parent:
    """Return how a thing stands. Raises `Invalid` for what is no boolean: text is true, whatever it says."""
    if finished is not None and not isinstance(finished, bool | int):
        raise Invalid(field="parents_sql", rule="must select finished as a boolean", value=finished)
    return Parent.FINISHED if finished else Parent.OPEN


def _desired_of(row: Mapping[str, Any]) -> Desired:
    row = {**row, **{name: str(row[name]) for name in _IN_KEY if row.get(name) is not None}}
    given = {name: row[name] for name in _OPTIONAL if row.get(name) is not None}
    payload = _payload_of(row)
    return Desired(action_type=row["action_type"], payload=payload, at=row["at"], user=row.get("user_id"), **given)


def _payload_of(row: Mapping[str, Any]) -> Any:
    """Return the payload and, as its fields, the columns that have no other meaning; what is no object as it is."""
    payload = _read(row.get("payload"))
    if payload is not None and not isinstance(payload, dict):
        return payload  # refused by its name once it is to be scheduled
    others = {name: value for name, value in row.items() if name not in _COLUMNS}
    return {**(payload or {}), **others, "thing_id": row["thing_id"]}


def _read(written: Any) -> Any:
    """Return what a JSON text says; None for an empty one, and what is no JSON, or no text, as it is."""
    if not isinstance(written, str | bytes):
        return written
    try:
        return from_json(written)
    except ValueError:
        return written or None
