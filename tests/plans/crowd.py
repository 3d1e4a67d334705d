"""How does a database get a hundred thousand rows of each kind within seconds, the same ones on both databases?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

from postdate.domain.action import SEPARATOR

if TYPE_CHECKING:
    from sqlalchemy import Connection

MANY = 100_000
FEW = 10
"""What was there when the statistics that are stale were taken."""

NOW = datetime(2027, 3, 14, 12, tzinfo=UTC)
TYPES = 4
WORKSPACES = 100
HELD = 20_000
"""Up to which number there are queue rows on hold."""
LEASES = 10_000
"""How many rows one lease token holds."""

# Actions and queue rows are numbered 1 to MANY, outcomes MANY + 1 to 2 * MANY: retention has dropped what they asked
# for. A quarter of the queue is due, spread over an hour in no order of the table; a twentieth is leased, and of
# those a tenth lost. Some hundred rows are on hold, half of them for a pause. Every outcome has a key, one in a hundred
# is unconfirmed.
FILL = {
    "workspaces": "insert into {workspaces} (id) select {workspace} from {numbers} where i < {w}",
    "actions": """
        insert into {actions}
          (id, workspace_id, user_id, action_type, target_key, payload, publish_at, origin, origin_id, created_at,
           wall_time, tz, gap, fold, tz_source)
        select {id}, {workspace}, {user}, {type}, 'instagram', {payload}, {due}, 'recurring', {mod_rule}, {created},
          case when {by_wall_time} then '2027-03-20T09:00' end, case when {by_wall_time} then {zone} end,
          case when {by_wall_time} then 'forward' end, case when {by_wall_time} then 'first' end,
          case when {of_owner} then 'owner' when {by_wall_time} then 'call' end
        from {numbers}""",
    "queue": """
        insert into {queue}
          (action_id, workspace_id, user_id, action_type, key, overlap_key, due_at,
           attempt_count, lease_token, lease_until, claimed_by, submitted_at, started_at, hold, source)
        select {id}, {workspace}, {user}, {type}, {key}, case when i % 10 = 3 then 'overlap-' || i end, {due},
          case when {leased} then 1 else 0 end, case when {leased} then {token} end,
          case when {leased} then {lease_until} end,
          case when {leased} then 'worker' end,
          case when {leased} then {now} end, case when {leased} then {now} end,
          case when i % 50 = 9 and i < {held} then 'paused' end, case when i % 4 = 2 then 'posts' end
        from {numbers}""",
    "outcomes": """
        insert into {outcomes}
          (action_id, workspace_id, user_id, status, reason, attempt_count, finished_at, key)
        select {id}, {workspace}, {user},
          case i % 10 when 0 then 'failed' when 1 then 'cancelled' else 'published' end,
          case i % 10 when 1 then 'user' when 0 then case i % 100 when 0 then 'unconfirmed' else 'rejected' end end,
          1, {finished}, {key}
        from {later_numbers}""",
    "action_events": """
        insert into {action_events} (action_id, workspace_id, at, cause, actor)
        select {id}, {workspace}, {created}, 'schedule', 'somebody' from {numbers}""",
    "idempotency": """
        insert into {idempotency} (scope, key, body_hash, action_id, expires_at)
        select 'schedule:' || {mod_rule}, 'key-' || i, 'hash', {id}, {expires} from {numbers}""",
    "pauses": """
        insert into {pauses} (id, workspace_id, paused_at, paused_by)
        select {id}, {workspace}, {now}, 'somebody' from {numbers} where i <= {few}""",
    "recurring_schedules": """
        insert into {recurring_schedules}
          (id, workspace_id, user_id, action_type, payload_template, kind, rrule, starts_at, tz, gap, fold, misfire,
           grace_seconds, overlap, status, last_materialized_at, look_at, created_at)
        select {id}, {workspace}, {user}, {type}, '{{}}', 'cron', '0 9 * * *', {created}, 'UTC', 'forward', 'first',
          'once', 3600, 'allow', case when i % 50 = 0 then 'paused' else 'active' end, {created},
          case when i % 100 = 1 then {due} else {expires} end, {created}
        from {numbers}""",
    "rule_occurrences": """
        insert into {rule_occurrences} (rule_id, nominal_at, state, action_id, reason, changed_at, wall_time)
        select {id}, {now}, case when i % 200 = 0 then 'skipped' else 'materialised' end, {id},
          case when i % 200 = 0 then 'missed' end, {created}, case when i % 50 = 7 then '2027-03-14T12:00:00' end
        from {numbers}""",
    "quiet_hours": """
        insert into {quiet_hours} (id, workspace_id, start_time, end_time, set_at, set_by)
        select {id}, {id}, '22:00', '08:00', {now}, 'somebody' from {numbers} where i % 5 = 0""",
}

SECONDS = {
    "now": "0",
    "due": "case when i % 4 = 1 then -(i * 7919 % 3600) else i * 7919 % 2592000 end",
    "lease_until": f"case when i % 200 = 7 then -60 - i / {LEASES} else 60 + i / {LEASES} end",
    "created": "-86400",
    "finished": "-i % 2592000",
    "expires": "i * 7919 % 604800",
}
"""Seconds from now."""

POSTGRESQL = {
    "id": "('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid",
    "workspace": "('00000000-0000-4000-8000-' || lpad(to_hex(i % {w}), 12, '0'))::uuid",
    "token": "('00000000-0000-4000-9000-' || lpad(to_hex(i / {leases}), 12, '0'))::uuid",
    "user": "'00000000-0000-0000-0000-000000000000'::uuid",
    "payload": """jsonb_build_object('thing_id', 'thing-' || i, 'text', repeat('Hello ', 20))""",
    "instant": "timestamptz '2027-03-14 12:00Z' + ({}) * interval '1 second'",
    "key": "concat_ws(chr(31), {type}, 'thing-' || i, 'instagram', '')",
    "numbers": "generate_series({first}, {last}) as numbers(i)",
}
SQLITE = {
    "id": "printf('00000000-0000-7000-8000-%012x', i)",
    "workspace": "printf('00000000-0000-4000-8000-%012x', i % {w})",
    "token": "printf('00000000-0000-4000-9000-%012x', i / {leases})",
    "user": "'00000000-0000-0000-0000-000000000000'",
    "payload": """json_object('thing_id', 'thing-' || i, 'text', 'Hello ' || hex(zeroblob(60)))""",
    "instant": f"({int(NOW.timestamp())} + ({{}})) * 1000000",
    "key": "{type} || char(31) || 'thing-' || i || char(31) || 'instagram' || char(31)",
    "numbers": (
        "(with recursive numbers(i) as (select {first} union all select i + 1 from numbers where i < {last})"
        " select i from numbers)"
    ),
}


def fill(connection: Connection, first: int, last: int) -> None:
    """Insert the rows of these numbers into every table."""
    sqlite = connection.dialect.name == "sqlite"
    words = SQLITE if sqlite else POSTGRESQL
    names = {
        "w": str(WORKSPACES),
        "leases": str(LEASES),
        "held": str(HELD),
        "few": str(FEW),
        "type": "'type-' || (i % 4)",
        "leased": "i % 20 = 7",
        "by_wall_time": "i % 10 = 6",
        "of_owner": "i % 200 = 6",
        "zone": "'zone-' || (i / 10 % 20)",
    }
    names |= {"mod_rule": "'rule-' || (i % 1000)", **words}
    names |= {name: words[name].format_map(names) for name in ("workspace", "token", "key")}
    names |= {name: words["instant"].format(seconds) for name, seconds in SECONDS.items()}
    names |= {
        "numbers": words["numbers"].format(first=first, last=last),
        "later_numbers": words["numbers"].format(first=MANY + first, last=MANY + last),
    }
    names |= {table: table if sqlite else f"postdate.{table}" for table in FILL}
    cursor = connection.connection.cursor()  # the bare one: SQLAlchemy would look for parameters
    for statement in FILL.values():
        cursor.execute(statement.format_map(names))


def action_id(number: int) -> UUID:
    """Return the id of the action, queue row or outcome of this number."""
    return UUID(f"00000000-0000-7000-8000-{number:012x}")


def workspace_id(number: int) -> UUID:
    """Return the id of the workspace that owns the action of this number."""
    return UUID(f"00000000-0000-4000-8000-{number % WORKSPACES:012x}")


def lease_token(number: int) -> UUID:
    """Return the token under which the queue row of this number is leased, if it is."""
    return UUID(f"00000000-0000-4000-9000-{number // LEASES:012x}")


def key(number: int) -> str:
    """Return the key of the queue row or outcome of this number."""
    return SEPARATOR.join((f"type-{number % TYPES}", f"thing-{number}", "instagram", ""))


def leased() -> list[int]:
    """Return the numbers of the queue rows that are leased under the first token."""
    return list(range(7, LEASES, 20))
