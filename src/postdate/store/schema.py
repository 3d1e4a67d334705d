"""Which tables hold what was asked, what is to do and what happened?

These are the shapes that queries are written against; `migrations/` creates them, with the checks, triggers and
the view, and a test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Column,
    Computed,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from postdate.store.names import host_table
from postdate.store.types import Identifier, Instant, Json

if TYPE_CHECKING:
    from sqlalchemy.schema import SchemaItem

    from postdate.store.names import Names

REVISION = "0007"
"""The schema this version works on: the newest step in `migrations/versions`."""

SYSTEM_PROFILE = UUID(int=0)
"""Owns what no person asked for."""


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Our tables under the names they have in one database."""

    names: Names
    is_sqlite: bool
    metadata: MetaData
    profiles: Table
    workspaces: Table
    actions: Table
    queue: Table
    outcomes: Table
    action_events: Table
    idempotency: Table
    disabled_endpoints: Table
    pauses: Table
    ended_pauses: Table
    quiet_hours: Table
    heartbeat: Table
    passes: Table
    recurring_schedules: Table
    rule_occurrences: Table
    holiday_calendars: Table
    statements: dict[tuple[object, ...], Any] = field(default_factory=dict, compare=False, repr=False)
    """Statements over these tables that were built before (`Transaction.prepared`)."""


@cache
def tables(names: Names, dialect: str) -> Tables:
    """Return the tables as named in a database of that dialect; built once for each."""
    metadata = MetaData(schema=None if dialect == "sqlite" else names.schema)
    builder = _Builder(metadata, names.prefix)
    return Tables(
        names=names,
        is_sqlite=dialect == "sqlite",
        metadata=metadata,
        profiles=_profiles(builder) if names.profiles is None else _host_owners(names.profiles),
        workspaces=_workspaces(builder) if names.workspaces is None else _host_owners(names.workspaces),
        actions=_actions(builder),
        queue=_queue(builder),
        outcomes=_outcomes(builder),
        action_events=_action_events(builder),
        idempotency=_idempotency(builder),
        disabled_endpoints=_disabled_endpoints(builder),
        pauses=_pauses(builder),
        ended_pauses=_ended_pauses(builder),
        quiet_hours=_quiet_hours(builder),
        heartbeat=_heartbeat(builder),
        passes=_passes(builder),
        recurring_schedules=_recurring_schedules(builder),
        rule_occurrences=_rule_occurrences(builder),
        holiday_calendars=_holiday_calendars(builder),
    )


@dataclass(frozen=True)
class _Builder:
    metadata: MetaData
    prefix: str

    def table(self, name: str, *items: SchemaItem) -> Table:
        return Table(f"{self.prefix}{name}", self.metadata, *items)

    def index(
        self, name: str, *columns: str, where: str | None = None, brin: bool = False, unique: bool = False
    ) -> Index:
        condition = None if where is None else text(where)
        return Index(
            f"{self.prefix}{name}",
            *columns,
            unique=unique,
            postgresql_where=condition,
            sqlite_where=condition,
            postgresql_using="brin" if brin else "btree",
        )


def _id(name: str = "id") -> Column[UUID]:
    return Column(name, Identifier, primary_key=True)


def _profiles(b: _Builder) -> Table:
    return b.table("profiles", _id(), Column("tz", Text), Column("created_at", Instant, nullable=False))


def _workspaces(b: _Builder) -> Table:
    return b.table(
        "workspaces",
        _id(),
        Column("name", Text),
        Column("settings", Json, nullable=False),
        Column("created_at", Instant, nullable=False),
    )


def _host_owners(name: str) -> Table:
    """Return a table of the host's, of which we know the id alone."""
    schema, table = host_table(name)
    return Table(table, MetaData(), _id(), schema=schema)


def _actions(b: _Builder) -> Table:
    return b.table(
        "actions",
        _id(),
        Column("workspace_id", Identifier),
        Column("user_id", Identifier, nullable=False),
        Column("action_type", Text, nullable=False),
        Column("target_key", Text),
        Column("payload", Json, nullable=False),
        Column("thing_id", Text, Computed("payload ->> 'thing_id'", persisted=True)),
        Column("occurrence", Text, nullable=False),
        Column("publish_at", Instant, nullable=False),
        Column("wall_time", Text),
        Column("tz", Text),
        Column("gap", Text),
        Column("fold", Text),
        Column("expires_at", Instant),
        Column("origin", Text, nullable=False),
        Column("origin_id", Text),
        Column("replaces_id", Identifier),
        Column("overlap_key", Text),
        Column("traceparent", Text),
        Column("created_at", Instant, nullable=False),
        Column("fingerprint", Text),
        Column("tz_source", Text),
        Column("zone_policy", Text),
        b.index("actions_calendar", "workspace_id", "publish_at"),
        b.index("actions_zone", "tz", "publish_at", "id", where="tz is not null"),
        b.index("actions_owner_zone", "user_id", "workspace_id", "tz", "publish_at", where="tz_source = 'owner'"),
        b.index("actions_thing", "action_type", "thing_id"),
        b.index("actions_origin_id", "origin", "origin_id", where="origin_id is not null"),
    )


def _queue(b: _Builder) -> Table:
    return b.table(
        "queue",
        _id("action_id"),
        Column("action_type", Text, nullable=False),
        Column("workspace_id", Identifier),
        Column("user_id", Identifier, nullable=False),
        Column("key", Text),
        Column("overlap_key", Text),
        Column("due_at", Instant, nullable=False),
        Column("attempt_count", Integer, nullable=False),
        Column("last_error", Text),
        Column("lease_token", Identifier),
        Column("lease_until", Instant),
        Column("claimed_by", Text),
        Column("submitted_at", Instant),
        Column("started_at", Instant),
        Column("hold", Text),
        Column("source", Text),
        UniqueConstraint("key", name=f"{b.prefix}queue_key"),
        UniqueConstraint("action_type", "overlap_key", name=f"{b.prefix}queue_overlap"),
        b.index("queue_due", "action_type", "due_at", "action_id", where="lease_token is null and hold is null"),
        b.index("queue_held", "workspace_id", "action_type", where="hold is not null"),
        b.index("queue_lease_until", "lease_until", where="lease_token is not null"),
        b.index("queue_source", "source", "workspace_id", "key", where="source is not null"),
    )


def _outcomes(b: _Builder) -> Table:
    return b.table(
        "outcomes",
        _id("action_id"),
        Column("workspace_id", Identifier),
        Column("user_id", Identifier, nullable=False),
        Column("status", Text, nullable=False),
        Column("reason", Text),
        Column("provider_id", Text),
        Column("attempt_count", Integer, nullable=False),
        Column("last_error", Text),
        Column("submitted_at", Instant),
        Column("finished_at", Instant, nullable=False),
        Column("key", Text),
        b.index("outcomes_guard", "key", where="status = 'published' or reason = 'unconfirmed'"),
        b.index("outcomes_finished", "finished_at", brin=True),
        b.index("outcomes_ended", "key", where="status = 'failed' or reason = 'user' or reason = 'skipped'"),
        b.index("outcomes_failed", "finished_at", where="status = 'failed'"),
    )


def _action_events(b: _Builder) -> Table:
    return b.table(
        "action_events",
        Column("id", BigInteger, primary_key=True),
        Column("action_id", Identifier, nullable=False),
        Column("workspace_id", Identifier),
        Column("at", Instant, nullable=False),
        Column("cause", Text, nullable=False),
        Column("actor", Text, nullable=False),
        Column("detail", Json, nullable=False),
        b.index("action_events_action", "action_id", "id"),
    )


def _idempotency(b: _Builder) -> Table:
    return b.table(
        "idempotency",
        Column("scope", Text, primary_key=True),
        Column("key", Text, primary_key=True),
        Column("body_hash", Text, nullable=False),
        Column("action_id", Identifier),
        Column("answer", Json),
        Column("expires_at", Instant, nullable=False),
        b.index("idempotency_action", "action_id", where="action_id is not null"),
        b.index("idempotency_expires", "expires_at"),
    )


def _disabled_endpoints(b: _Builder) -> Table:
    return b.table(
        "disabled_endpoints",
        _id("owner_id"),
        Column("digest", Text, primary_key=True),
        Column("url", Text, nullable=False),
        Column("action_id", Identifier, nullable=False),
        Column("disabled_at", Instant, nullable=False),
        b.index("disabled_endpoints_action", "action_id"),
    )


def _pauses(b: _Builder) -> Table:
    return b.table(
        "pauses",
        _id(),
        *_pause_columns(),
        b.index("pauses_of_workspace", "workspace_id", where="action_type is null", unique=True),
        b.index("pauses_of_type", "action_type", where="workspace_id is null", unique=True),
        b.index("pauses_of_type_in_workspace", "workspace_id", "action_type", unique=True),
    )


def _ended_pauses(b: _Builder) -> Table:
    return b.table(
        "ended_pauses",
        _id(),
        *_pause_columns(),
        Column("ended_at", Instant, nullable=False),
        Column("ended_by", Text, nullable=False),
        Column("ended_note", Text),
        b.index("ended_pauses_ended", "ended_at"),
        b.index("ended_pauses_workspace", "workspace_id"),
    )


def _pause_columns() -> tuple[Column[Any], ...]:
    return (
        Column("workspace_id", Identifier),
        Column("action_type", Text),
        Column("paused_at", Instant, nullable=False),
        Column("paused_by", Text, nullable=False),
        Column("note", Text),
    )


def _quiet_hours(b: _Builder) -> Table:
    return b.table(
        "quiet_hours",
        _id(),
        Column("workspace_id", Identifier, nullable=False),
        Column("action_type", Text),
        Column("start_time", Text, nullable=False),
        Column("end_time", Text, nullable=False),
        Column("weekdays", Text),
        Column("tz", Text),
        Column("set_at", Instant, nullable=False),
        Column("set_by", Text, nullable=False),
        Column("note", Text),
        b.index("quiet_hours_workspace", "workspace_id"),
    )


def _heartbeat(b: _Builder) -> Table:
    return b.table(
        "heartbeat",
        Column("id", Integer, primary_key=True, autoincrement=False),
        Column("last_tick_at", Instant),
        Column("identity", Text),
        Column("held_at", Instant),
        Column("held_because", Text),
        Column("released_at", Instant),
        Column("released_by", Text),
        Column("release_note", Text),
    )


def _passes(b: _Builder) -> Table:
    return b.table(
        "passes",
        Column("name", Text, primary_key=True),
        Column("last_run_at", Instant, nullable=False),
        Column("state", Json, nullable=False),
    )


def _recurring_schedules(b: _Builder) -> Table:
    return b.table(
        "recurring_schedules",
        _id(),
        Column("workspace_id", Identifier),
        Column("user_id", Identifier, nullable=False),
        Column("action_type", Text, nullable=False),
        Column("target_key", Text),
        Column("payload_template", Json, nullable=False),
        Column("overrides", Json, nullable=False),
        Column("kind", Text, nullable=False),
        Column("rrule", Text, nullable=False),
        Column("starts_wall", Text),
        Column("starts_at", Instant, nullable=False),
        Column("ends_at", Instant),
        Column("tz", Text),
        Column("gap", Text, nullable=False),
        Column("fold", Text, nullable=False),
        Column("exdates", Json, nullable=False),
        Column("rdates", Json, nullable=False),
        Column("holidays", Text),
        Column("misfire", Text, nullable=False),
        Column("grace_seconds", Integer, nullable=False),
        Column("overlap", Text, nullable=False),
        Column("status", Text, nullable=False),
        Column("last_materialized_at", Instant, nullable=False),
        Column("look_at", Instant, nullable=False),
        Column("reroll_from", Instant),
        Column("last_error", Text),
        Column("split_from", Identifier),
        Column("version", Integer, nullable=False),
        Column("created_at", Instant, nullable=False),
        b.index("recurring_schedules_look", "look_at", "id", where="status = 'active'"),
        b.index("recurring_schedules_workspace", "workspace_id", "id"),
        b.index("recurring_schedules_user", "user_id"),
        b.index("recurring_schedules_holidays", "holidays", where="holidays is not null"),
    )


def _rule_occurrences(b: _Builder) -> Table:
    return b.table(
        "rule_occurrences",
        _id("rule_id"),
        Column("nominal_at", Instant, primary_key=True),
        Column("state", Text, nullable=False),
        Column("action_id", Identifier),
        Column("moved_to", Instant),
        Column("reason", Text),
        Column("changed_at", Instant, nullable=False),
        Column("wall_time", Text),
        Column("moved_wall", Text),
        b.index("rule_occurrences_action", "action_id"),
        b.index("rule_occurrences_decided", "rule_id", "nominal_at", where="wall_time is not null"),
        b.index("rule_occurrences_missed", "nominal_at", where="reason = 'missed'"),
    )


def _holiday_calendars(b: _Builder) -> Table:
    return b.table(
        "holiday_calendars",
        Column("calendar", Text, primary_key=True),
        Column("day", Text, primary_key=True),
        Column("name", Text),
    )
