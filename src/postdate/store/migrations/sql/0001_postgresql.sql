-- What was asked, what is to do, what happened; their guard, view and owners. PostgreSQL 15 or newer.
-- ns in braces stands for the schema and prefix of our tables, p for the prefix alone, channel for the channel of the
-- alarm; the other names in braces are literals that 0001_foundation.py spells out.

create function {ns}uuid7() returns uuid language sql volatile as $$
  -- RFC 9562: 48 bits of milliseconds, then version, variant and random bits
  select encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6),
    52, 1), 53, 1), 'hex')::uuid
$$;

-- what was asked -------------------------------------------------------------------------------------------

create table {ns}actions (
  id uuid not null default {ns}uuid7(),
  workspace_id uuid,
  user_id uuid not null,
  action_type text not null,
  target_key text,
  payload jsonb not null,
  thing_id text generated always as (payload ->> 'thing_id') stored,
  occurrence text not null default '',
  publish_at timestamptz not null,
  wall_time text,
  tz text,
  gap text,
  fold text,
  expires_at timestamptz,
  origin text not null default 'api',
  origin_id text,
  replaces_id uuid,
  overlap_key text,
  traceparent text,
  created_at timestamptz not null default now(),
  constraint {p}actions_pkey primary key (id),
  constraint {p}actions_type_text check (char_length(action_type) between 1 and 100 and action_type !~ {control}),
  constraint {p}actions_target_text check (char_length(target_key) between 1 and 255 and target_key !~ {control}),
  constraint {p}actions_thing_text check (char_length(thing_id) between 1 and 255 and thing_id !~ {control}),
  constraint {p}actions_thing_string check (not payload ? 'thing_id' or jsonb_typeof(payload -> 'thing_id') = 'string'),
  constraint {p}actions_occurrence_text check (char_length(occurrence) <= 255 and occurrence !~ {control}),
  constraint {p}actions_overlap_text check (char_length(overlap_key) between 1 and 255 and overlap_key !~ {control}),
  constraint {p}actions_payload_object check (jsonb_typeof(payload) = 'object'),
  constraint {p}actions_payload_size check (octet_length(payload::text) <= 262144),
  constraint {p}actions_publish_at_range check (publish_at >= '0001-01-01 00:00Z' and publish_at < '10000-01-01 00:00Z'),
  constraint {p}actions_expires_at_range check (expires_at >= publish_at and expires_at < '10000-01-01 00:00Z'),
  constraint {p}actions_created_at_range check (created_at >= '0001-01-01 00:00Z' and created_at < '10000-01-01 00:00Z'),
  constraint {p}actions_intent check (num_nulls(wall_time, tz, gap, fold) in (0, 4)),
  constraint {p}actions_gap check (gap in ('forward', 'reject')),
  constraint {p}actions_fold check (fold in ('first', 'second')),
  constraint {p}actions_origin check (origin in ('api', 'reconciler', 'recurring', 'drip', 'table', 'flow', 'callback'))
);
create index {p}actions_calendar on {ns}actions (workspace_id, publish_at);
create index {p}actions_thing on {ns}actions (action_type, thing_id);
create index {p}actions_origin_id on {ns}actions (origin, origin_id) where origin_id is not null;

create function {ns}actions_frozen() returns trigger language plpgsql as $$
begin
  raise exception 'actions are never edited: cancel and insert a new one'
    using errcode = 'restrict_violation', constraint = '{p}actions_frozen';
end $$;
create trigger {p}actions_frozen before update on {ns}actions
  for each statement execute function {ns}actions_frozen();

-- what is to do --------------------------------------------------------------------------------------------

create table {ns}queue (
  action_id uuid not null,
  action_type text not null,
  workspace_id uuid,
  user_id uuid not null,
  key text,
  overlap_key text,
  due_at timestamptz not null,
  attempt_count integer not null default 0,
  last_error text,
  lease_token uuid,
  lease_until timestamptz,
  claimed_by text,
  submitted_at timestamptz,
  started_at timestamptz,
  constraint {p}queue_pkey primary key (action_id),
  constraint {p}queue_key unique (key),
  constraint {p}queue_overlap unique (action_type, overlap_key),
  constraint {p}queue_due_at_range check (due_at >= '0001-01-01 00:00Z' and due_at < '10000-01-01 00:00Z'),
  constraint {p}queue_attempts check (attempt_count >= 0),
  constraint {p}queue_lease check (num_nulls(lease_token, lease_until, claimed_by, submitted_at) in (0, 4)),
  constraint {p}queue_started check (started_at is null or lease_token is not null)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index {p}queue_due on {ns}queue (action_type, due_at, action_id) where lease_token is null;
create index {p}queue_lease_until on {ns}queue (lease_until) where lease_token is not null;

-- what happened --------------------------------------------------------------------------------------------

create table {ns}outcomes (
  action_id uuid not null,
  workspace_id uuid,
  user_id uuid not null,
  status text not null,
  reason text,
  provider_id text,
  attempt_count integer not null default 0,
  last_error text,
  submitted_at timestamptz,
  finished_at timestamptz not null,
  key text,
  xid xid8 not null default pg_current_xact_id(),
  constraint {p}outcomes_pkey primary key (action_id),
  constraint {p}outcomes_attempts check (attempt_count >= 0),
  constraint {p}outcomes_reason check (case status
    when 'published' then reason is null
    when 'failed' then coalesce(reason in ('rejected', 'exhausted', 'unconfirmed', 'expired', 'dismissed'), false)
    when 'cancelled' then coalesce(reason in ('user', 'skipped', 'rescheduled', 'drifted', 'orphaned', 'duplicate', 'rule_changed'), false)
    else false end)
);
create index {p}outcomes_guard on {ns}outcomes (key) where status = 'published' or reason = 'unconfirmed';
create index {p}outcomes_finished on {ns}outcomes using brin (finished_at);
create index {p}outcomes_failed on {ns}outcomes (finished_at) where status = 'failed';

-- After, not before: the unique index makes a racing insert wait for the settle that removes its sibling, and
-- only then may this look.
create function {ns}queue_guard() returns trigger language plpgsql as $$
begin
  if exists (select from {ns}outcomes where key = new.key and (status = 'published' or reason = 'unconfirmed')) then
    raise exception 'already published, or unconfirmed: %', replace(new.key, chr(31), ' / ')
      using errcode = 'unique_violation', constraint = '{p}queue_guard', table = '{p}queue';
  end if;
  return null;
end $$;
create trigger {p}queue_guard after insert on {ns}queue
  for each row when (new.key is not null) execute function {ns}queue_guard();

create table {ns}action_events (
  id bigint not null generated always as identity,
  action_id uuid not null,
  workspace_id uuid,
  at timestamptz not null default now(),
  cause text not null,
  actor text not null,
  detail jsonb not null default '{}',
  xid xid8 not null default pg_current_xact_id(),
  constraint {p}action_events_pkey primary key (id)
);
create index {p}action_events_action on {ns}action_events (action_id, id);

create function {ns}action_events_frozen() returns trigger language plpgsql as $$
begin
  raise exception 'history is append-only' using errcode = 'restrict_violation', constraint = '{p}action_events_frozen';
end $$;
create trigger {p}action_events_frozen before update on {ns}action_events
  for each statement execute function {ns}action_events_frozen();

create table {ns}idempotency (
  scope text not null,
  key text not null,
  body_hash text not null,
  action_id uuid,
  answer jsonb,
  expires_at timestamptz not null,
  constraint {p}idempotency_pkey primary key (scope, key)
);
create index {p}idempotency_action on {ns}idempotency (action_id) where action_id is not null;
create index {p}idempotency_expires on {ns}idempotency (expires_at);

-- one table for readers and for other programs -----------------------------------------------------------------

create view {ns}scheduled_actions with (security_invoker = true) as
select a.id, a.user_id, a.workspace_id, a.action_type, a.target_key, a.payload, a.thing_id, a.occurrence,
  a.publish_at,
  case when o.action_id is not null then o.status
       when q.lease_token is not null then 'submitted'
       when q.action_id is not null then 'queued' end as status,
  o.reason,
  coalesce(q.last_error, o.last_error) as last_error,
  coalesce(q.attempt_count, o.attempt_count) as attempt_count,
  case when q.lease_token is null and q.due_at <> a.publish_at then q.due_at end as next_attempt_at,
  o.provider_id,
  coalesce(q.submitted_at, o.submitted_at) as submitted_at,
  o.finished_at,
  a.created_at,
  greatest(a.created_at, q.submitted_at, o.finished_at) as updated_at,
  a.expires_at, a.wall_time, a.tz, a.gap, a.fold, a.origin, a.origin_id, a.replaces_id, a.overlap_key, a.traceparent
from {ns}actions a
left join {ns}queue q on q.action_id = a.id
left join {ns}outcomes o on o.action_id = a.id;

create function {ns}scheduled_actions_insert() returns trigger language plpgsql as $$
begin
  if coalesce(new.status, 'queued') <> 'queued' then
    raise exception 'an action starts as queued, not %', new.status
      using errcode = 'check_violation', constraint = '{p}scheduled_actions_insert';
  end if;
  if num_nonnulls(new.reason, new.last_error, new.next_attempt_at, new.provider_id, new.submitted_at,
                  new.finished_at, new.updated_at) > 0 or coalesce(new.attempt_count, 0) <> 0 then
    raise exception 'what happens to an action is written by the engine alone'
      using errcode = 'check_violation', constraint = '{p}scheduled_actions_insert';
  end if;
  if new.thing_id <> coalesce(new.payload ->> 'thing_id', '') then
    raise exception 'thing_id is read from the payload' using errcode = 'check_violation', constraint = '{p}actions_thing';
  end if;
  -- what jsonb takes, but not every reader: the verbs refuse it, too
  if new.payload @? '$.**{101}' then
    raise exception 'payload must be at most 100 levels deep'
      using errcode = 'check_violation', constraint = '{p}actions_payload_depth';
  end if;
  if new.payload @? '$.** ? (@ > 1.7976931348623157e308 || @ < -1.7976931348623157e308)' then
    raise exception 'payload must not hold numbers beyond the range of a float'
      using errcode = 'check_violation', constraint = '{p}actions_payload_numbers';
  end if;
  new.id := coalesce(new.id, {ns}uuid7());
  new.user_id := coalesce(new.user_id, {system});
  new.occurrence := coalesce(new.occurrence, '');
  new.origin := coalesce(new.origin, 'api');
  new.thing_id := new.payload ->> 'thing_id';
  new.created_at := coalesce(new.created_at, now());
  new.updated_at := new.created_at;
  new.status := 'queued';
  new.attempt_count := 0;
  if new.user_id <> {system} then
    perform from {profiles} where id = new.user_id for key share;
    if not found then
      raise exception 'no profile %', new.user_id
        using errcode = 'foreign_key_violation', constraint = '{p}actions_user';
    end if;
  end if;
  if new.workspace_id is not null then
    perform from {workspaces} where id = new.workspace_id for key share;
    if not found then
      raise exception 'no workspace %', new.workspace_id
        using errcode = 'foreign_key_violation', constraint = '{p}actions_workspace';
    end if;
  end if;
  insert into {ns}queue (action_id, action_type, workspace_id, user_id, key, overlap_key, due_at)
  values (new.id, new.action_type, new.workspace_id, new.user_id,
    case when new.thing_id is not null then
      concat_ws(chr(31), new.action_type, new.thing_id, coalesce(new.target_key, ''), new.occurrence) end,
    new.overlap_key, new.publish_at);
  insert into {ns}actions (id, user_id, workspace_id, action_type, target_key, payload, occurrence, publish_at,
    expires_at, wall_time, tz, gap, fold, origin, origin_id, replaces_id, overlap_key, traceparent, created_at)
  values (new.id, new.user_id, new.workspace_id, new.action_type, new.target_key, new.payload, new.occurrence,
    new.publish_at, new.expires_at, new.wall_time, new.tz, new.gap, new.fold, new.origin, new.origin_id,
    new.replaces_id, new.overlap_key, new.traceparent, new.created_at);
  if new.publish_at <= clock_timestamp() + interval '1 minute' then
    perform pg_notify('{channel}', '');
  end if;
  return new;
end $$;
create trigger {p}scheduled_actions_insert instead of insert on {ns}scheduled_actions
  for each row execute function {ns}scheduled_actions_insert();

create function {ns}scheduled_actions_update() returns trigger language plpgsql as $$
declare
  wanted text := new.status;
  taken record;
begin
  new.status := old.status;
  if new is distinct from old or wanted is null or wanted not in ('cancelled', old.status) then
    raise exception 'only `set status = ''cancelled''` is allowed: actions are never edited'
      using errcode = 'check_violation', constraint = '{p}scheduled_actions_update';
  end if;
  if old.status <> 'queued' or wanted = 'queued' then
    return null;
  end if;
  delete from {ns}queue where action_id = old.id and lease_token is null returning * into taken;
  if not found then
    return null;
  end if;
  insert into {ns}outcomes (action_id, workspace_id, user_id, status, reason, attempt_count, last_error, finished_at, key)
  values (old.id, taken.workspace_id, taken.user_id, 'cancelled', 'user', taken.attempt_count, taken.last_error,
    clock_timestamp(), taken.key)
  returning status, reason, finished_at, finished_at into new.status, new.reason, new.finished_at, new.updated_at;
  insert into {ns}action_events (action_id, workspace_id, at, cause, actor, detail)
  values (old.id, taken.workspace_id, new.finished_at, 'cancel', 'sql:' || session_user, '{"reason": "user"}');
  new.next_attempt_at := null;
  return new;
end $$;
create trigger {p}scheduled_actions_update instead of update on {ns}scheduled_actions
  for each row execute function {ns}scheduled_actions_update();

create function {ns}scheduled_actions_delete() returns trigger language plpgsql as $$
begin
  raise exception 'actions are never deleted: cancel them'
    using errcode = 'check_violation', constraint = '{p}scheduled_actions_delete';
end $$;
create trigger {p}scheduled_actions_delete instead of delete on {ns}scheduled_actions
  for each row execute function {ns}scheduled_actions_delete();

-- owners -------------------------------------------------------------------------------------------------------

-- Queue rows first: a settle in flight either ends before this and leaves an outcome for the next statement to find, or
-- finds no row and loses. Who settles or cancels several rows may take them in another order; so this gives its locks
-- back after a moment and tries again, rather than deadlock. The caller's lock_timeout holds all the same.
create function {ns}hold_queue_of(deleted_workspace uuid, deleted_user uuid) returns void language plpgsql as $$
declare
  patience text := current_setting('lock_timeout');
  began timestamptz := clock_timestamp();
begin
  loop
    begin
      perform set_config('lock_timeout', '50ms', true);
      perform from {ns}queue where workspace_id = deleted_workspace or user_id = deleted_user
      order by action_id for update;
      perform set_config('lock_timeout', patience, true);
      return;
    exception when lock_not_available then
      if patience::interval > '0' and clock_timestamp() - began > patience::interval then
        raise;
      end if;
    end;
  end loop;
end $$;

create function {ns}workspaces_deleted() returns trigger language plpgsql as $$
begin
  perform {ns}hold_queue_of(old.id, null);
  delete from {ns}queue where workspace_id = old.id;
  delete from {ns}outcomes where workspace_id = old.id;
  delete from {ns}action_events where workspace_id = old.id;
  delete from {ns}idempotency where action_id in (select id from {ns}actions where workspace_id = old.id);
  delete from {ns}actions where workspace_id = old.id;
  return null;
end $$;
create trigger {p}postdate_workspaces_deleted after delete on {workspaces}
  for each row execute function {ns}workspaces_deleted();

create function {ns}profiles_deleted() returns trigger language plpgsql as $$
begin
  if old.id = {system} then
    raise exception 'the system profile cannot be deleted'
      using errcode = 'restrict_violation', constraint = '{p}profiles_system';
  end if;
  perform {ns}hold_queue_of(null, old.id);
  delete from {ns}queue where user_id = old.id;
  delete from {ns}outcomes where user_id = old.id;
  delete from {ns}action_events where action_id in (select id from {ns}actions where user_id = old.id);
  delete from {ns}idempotency where action_id in (select id from {ns}actions where user_id = old.id);
  delete from {ns}actions where user_id = old.id;
  return null;
end $$;
create trigger {p}postdate_profiles_deleted after delete on {profiles}
  for each row execute function {ns}profiles_deleted();
