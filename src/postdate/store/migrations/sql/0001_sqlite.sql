-- What was asked, what is to do, what happened; their guard, view and owners. SQLite 3.40 or newer.
-- ns and p in braces stand for the prefix of our tables; the other names in braces are expressions that
-- 0001_foundation.py spells out. Instants are integer microseconds since 1970 UTC, uuids dashed text.

-- what was asked -------------------------------------------------------------------------------------------

create table {ns}actions (
  id text not null constraint {p}actions_pkey primary key,
  workspace_id text,
  user_id text not null,
  action_type text not null,
  target_key text,
  payload text not null,
  thing_id text generated always as (payload ->> '$.thing_id') stored,
  occurrence text not null default '',
  publish_at integer not null,
  wall_time text,
  tz text,
  gap text,
  fold text,
  expires_at integer,
  origin text not null default 'api',
  origin_id text,
  replaces_id text,
  overlap_key text,
  traceparent text,
  created_at integer not null,
  constraint {p}actions_id_uuid check (id glob {uuid_glob}),
  constraint {p}actions_type_text check (length(action_type) between 1 and 100 and action_type not glob {control} and instr(action_type, char(0)) = 0),
  constraint {p}actions_target_text check (target_key is null or length(target_key) between 1 and 255 and target_key not glob {control} and instr(target_key, char(0)) = 0),
  constraint {p}actions_thing_text check (thing_id is null or length(thing_id) between 1 and 255 and thing_id not glob {control} and instr(thing_id, char(0)) = 0),
  constraint {p}actions_thing_string check (coalesce(json_type(payload, '$.thing_id'), 'text') = 'text'),
  constraint {p}actions_occurrence_text check (length(occurrence) <= 255 and occurrence not glob {control} and instr(occurrence, char(0)) = 0),
  constraint {p}actions_overlap_text check (overlap_key is null or length(overlap_key) between 1 and 255 and overlap_key not glob {control} and instr(overlap_key, char(0)) = 0),
  constraint {p}actions_payload_object check (json_type(payload) is 'object'),
  constraint {p}actions_payload_size check (length(cast(payload as blob)) <= 262144),
  constraint {p}actions_publish_at_range check (publish_at between -62135596800000000 and 253402300799999999),
  constraint {p}actions_expires_at_range check (expires_at between publish_at and 253402300799999999),
  constraint {p}actions_created_at_range check (created_at between -62135596800000000 and 253402300799999999),
  constraint {p}actions_user_uuid check (user_id glob {uuid_glob}),
  constraint {p}actions_workspace_uuid check (workspace_id glob {uuid_glob}),
  constraint {p}actions_replaces_uuid check (replaces_id glob {uuid_glob}),
  constraint {p}actions_intent check ((wall_time is null) + (tz is null) + (gap is null) + (fold is null) in (0, 4)),
  constraint {p}actions_gap check (gap in ('forward', 'reject')),
  constraint {p}actions_fold check (fold in ('first', 'second')),
  constraint {p}actions_origin check (origin in ('api', 'reconciler', 'recurring', 'drip', 'table', 'flow', 'callback'))
) strict;
create index {p}actions_calendar on {ns}actions (workspace_id, publish_at);
create index {p}actions_thing on {ns}actions (action_type, thing_id);
create index {p}actions_origin_id on {ns}actions (origin, origin_id) where origin_id is not null;

create trigger {p}actions_frozen before update on {ns}actions
begin
  select raise(abort, 'actions are never edited: cancel and insert a new one');
end;

-- `insert or replace` deletes the old row without asking a trigger
create trigger {p}actions_never_replaced before insert on {ns}actions
when exists (select 1 from {ns}actions where id = new.id)
begin
  select raise(abort, 'already exists (actions_pkey)');
end;

-- what is to do --------------------------------------------------------------------------------------------

create table {ns}queue (
  action_id text not null constraint {p}queue_pkey primary key,
  action_type text not null,
  workspace_id text,
  user_id text not null,
  key text,
  overlap_key text,
  due_at integer not null,
  attempt_count integer not null default 0,
  last_error text,
  lease_token text,
  lease_until integer,
  claimed_by text,
  submitted_at integer,
  started_at integer,
  constraint {p}queue_key unique (key),
  constraint {p}queue_overlap unique (action_type, overlap_key),
  constraint {p}queue_due_at_range check (due_at between -62135596800000000 and 253402300799999999),
  constraint {p}queue_attempts check (attempt_count >= 0),
  constraint {p}queue_lease check ((lease_token is null) + (lease_until is null) + (claimed_by is null) + (submitted_at is null) in (0, 4)),
  constraint {p}queue_started check (started_at is null or lease_token is not null)
) strict;
create index {p}queue_due on {ns}queue (action_type, due_at, action_id) where lease_token is null;
create index {p}queue_lease_until on {ns}queue (lease_until) where lease_token is not null;

-- what happened --------------------------------------------------------------------------------------------

create table {ns}outcomes (
  action_id text not null constraint {p}outcomes_pkey primary key,
  workspace_id text,
  user_id text not null,
  status text not null,
  reason text,
  provider_id text,
  attempt_count integer not null default 0,
  last_error text,
  submitted_at integer,
  finished_at integer not null,
  key text,
  constraint {p}outcomes_attempts check (attempt_count >= 0),
  constraint {p}outcomes_reason check (case status
    when 'published' then reason is null
    when 'failed' then coalesce(reason in ('rejected', 'exhausted', 'unconfirmed', 'expired', 'dismissed'), false)
    when 'cancelled' then coalesce(reason in ('user', 'skipped', 'rescheduled', 'drifted', 'orphaned', 'duplicate', 'rule_changed'), false)
    else false end)
) strict;
create index {p}outcomes_guard on {ns}outcomes (key) where status = 'published' or reason = 'unconfirmed';
create index {p}outcomes_finished on {ns}outcomes (finished_at);
create index {p}outcomes_failed on {ns}outcomes (finished_at) where status = 'failed';

create trigger {p}queue_guard after insert on {ns}queue when new.key is not null
begin
  select raise(abort, 'already published, or unconfirmed (queue_guard)')
  where exists (select 1 from {ns}outcomes where key = new.key and (status = 'published' or reason = 'unconfirmed'));
end;

create table {ns}action_events (
  id integer not null constraint {p}action_events_pkey primary key autoincrement,
  action_id text not null,
  workspace_id text,
  at integer not null,
  cause text not null,
  actor text not null,
  detail text not null default '{}'
) strict;
create index {p}action_events_action on {ns}action_events (action_id, id);

create trigger {p}action_events_frozen before update on {ns}action_events
begin
  select raise(abort, 'history is append-only');
end;

create trigger {p}action_events_never_replaced before insert on {ns}action_events
when exists (select 1 from {ns}action_events where id = new.id)
begin
  select raise(abort, 'history is append-only');
end;

create table {ns}idempotency (
  scope text not null,
  key text not null,
  body_hash text not null,
  action_id text,
  answer text,
  expires_at integer not null,
  constraint {p}idempotency_pkey primary key (scope, key)
) strict;
create index {p}idempotency_action on {ns}idempotency (action_id) where action_id is not null;
create index {p}idempotency_expires on {ns}idempotency (expires_at);

-- one table for readers and for other programs -----------------------------------------------------------------

create view {ns}scheduled_actions as
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
  max(a.created_at, coalesce(q.submitted_at, a.created_at), coalesce(o.finished_at, a.created_at)) as updated_at,
  a.expires_at, a.wall_time, a.tz, a.gap, a.fold, a.origin, a.origin_id, a.replaces_id, a.overlap_key, a.traceparent
from {ns}actions a
left join {ns}queue q on q.action_id = a.id
left join {ns}outcomes o on o.action_id = a.id;

-- `insert or replace`, `or ignore` and `or fail` on the view lend their conflict clause to the statements below, and would
-- throw away a row that is there, or leave half of the new one. Hence the explicit refusals, `actions` first, and changes().
create trigger {p}scheduled_actions_insert instead of insert on {ns}scheduled_actions
begin
  select raise(abort, 'an action starts as queued') where coalesce(new.status, 'queued') <> 'queued';
  select raise(abort, 'what happens to an action is written by the engine alone')
  where coalesce(new.reason, new.last_error, new.next_attempt_at, new.provider_id, new.submitted_at,
                 new.finished_at, new.updated_at) is not null or coalesce(new.attempt_count, 0) <> 0;
  select raise(abort, 'no such profile (actions_user)')
  where new.user_id <> {system} and not exists (select 1 from {profiles} where id = new.user_id);
  select raise(abort, 'no such workspace (actions_workspace)')
  where new.workspace_id is not null and not exists (select 1 from {workspaces} where id = new.workspace_id);
  select raise(abort, 'payload must be JSON') where not json_valid(new.payload);
  -- what SQLite takes, but not every reader: the verbs refuse it, too
  select raise(abort, 'payload must name its thing_id once, in plain letters')
  where (select count(*) from json_each(new.payload) where key = 'thing_id')
    <> (json_type(new.payload, '$.thing_id') is not null);
  select raise(abort, 'thing_id is read from the payload') where new.thing_id <> coalesce(new.payload ->> '$.thing_id', '');
  select raise(abort, 'payload must not hold NUL characters') where instr(replace(new.payload, '\\', ''), '\u0000') > 0;
  -- glob reads a lone surrogate as U+FFFD, replace() does not
  select raise(abort, 'payload must not hold lone surrogates') where exists (
    select 1 from json_tree(new.payload)
    where replace(coalesce(key, '') || coalesce(atom, ''), char(65533), '') glob '*' || char(65533) || '*');
  select raise(abort, 'payload must not hold numbers beyond the range of a float') where exists (
    select 1 from json_tree(new.payload)
    where type in ('integer', 'real') and abs(atom) > 1.7976931348623157e308);
  select raise(abort, 'payload must be at most 100 levels deep')
  where length(new.payload) - length(replace(replace(new.payload, '[', ''), '{', '')) > 100 and exists (
    select 1 from json_tree(new.payload)
    where length(fullkey) - length(replace(replace(fullkey, '[', ''), '.', '')) > 100);
  select raise(abort, 'already scheduled (queue_key)')
  where new.payload ->> '$.thing_id' is not null and exists (select 1 from {ns}queue where key =
    new.action_type || char(31) || (new.payload ->> '$.thing_id') || char(31) || coalesce(new.target_key, '')
      || char(31) || coalesce(new.occurrence, ''));
  select raise(abort, 'overlap key is taken (queue_overlap)')
  where exists (select 1 from {ns}queue where action_type = new.action_type and overlap_key = new.overlap_key);
  insert into {ns}actions (id, user_id, workspace_id, action_type, target_key, payload, occurrence, publish_at,
    expires_at, wall_time, tz, gap, fold, origin, origin_id, replaces_id, overlap_key, traceparent, created_at)
  values (coalesce(new.id, {uuid7}), coalesce(new.user_id, {system}), new.workspace_id, new.action_type,
    new.target_key, new.payload, coalesce(new.occurrence, ''), new.publish_at, new.expires_at, new.wall_time, new.tz,
    new.gap, new.fold, coalesce(new.origin, 'api'), new.origin_id, new.replaces_id, new.overlap_key, new.traceparent,
    coalesce(new.created_at, {now}));
  select raise(abort, 'breaks a rule that `or ignore` hides') where changes() = 0;
  insert into {ns}queue (action_id, action_type, workspace_id, user_id, key, overlap_key, due_at)
  select id, action_type, workspace_id, user_id,
    action_type || char(31) || thing_id || char(31) || coalesce(target_key, '') || char(31) || occurrence,
    overlap_key, publish_at
  from {ns}actions where rowid = last_insert_rowid();
  select raise(abort, 'breaks a rule that `or ignore` hides') where changes() = 0;
end;

create trigger {p}scheduled_actions_update instead of update on {ns}scheduled_actions
begin
  select raise(abort, 'only `set status = ''cancelled''` is allowed: actions are never edited')
  where new.status not in ('cancelled', old.status) or new.status is null
    or new.id is not old.id or new.user_id is not old.user_id or new.workspace_id is not old.workspace_id or
      new.action_type is not old.action_type or new.target_key is not old.target_key or new.payload is not
      old.payload or new.thing_id is not old.thing_id or new.occurrence is not old.occurrence or new.publish_at is
      not old.publish_at or new.reason is not old.reason or new.last_error is not old.last_error or
      new.attempt_count is not old.attempt_count or new.next_attempt_at is not old.next_attempt_at or
      new.provider_id is not old.provider_id or new.submitted_at is not old.submitted_at or new.finished_at is not
      old.finished_at or new.created_at is not old.created_at or new.updated_at is not old.updated_at or
      new.expires_at is not old.expires_at or new.wall_time is not old.wall_time or new.tz is not old.tz or
      new.gap is not old.gap or new.fold is not old.fold or new.origin is not old.origin or new.origin_id is not
      old.origin_id or new.replaces_id is not old.replaces_id or new.overlap_key is not old.overlap_key or
      new.traceparent is not old.traceparent;
  insert into {ns}outcomes (action_id, workspace_id, user_id, status, reason, attempt_count, last_error, finished_at, key)
  select action_id, workspace_id, user_id, 'cancelled', 'user', attempt_count, last_error,
    {now}, key
  from {ns}queue where action_id = old.id and lease_token is null and new.status = 'cancelled';
  insert into {ns}action_events (action_id, workspace_id, at, cause, actor, detail)
  select action_id, workspace_id, {now},
    'cancel', 'sql', '{"reason": "user"}'
  from {ns}queue where action_id = old.id and lease_token is null and new.status = 'cancelled';
  delete from {ns}queue where action_id = old.id and lease_token is null and new.status = 'cancelled';
end;

create trigger {p}scheduled_actions_delete instead of delete on {ns}scheduled_actions
begin
  select raise(abort, 'actions are never deleted: cancel them');
end;

-- owners -------------------------------------------------------------------------------------------------------

create trigger {p}postdate_workspaces_deleted after delete on {workspaces}
begin
  delete from {ns}queue where workspace_id = old.id;
  delete from {ns}outcomes where workspace_id = old.id;
  delete from {ns}action_events where workspace_id = old.id;
  delete from {ns}idempotency where action_id in (select id from {ns}actions where workspace_id = old.id);
  delete from {ns}actions where workspace_id = old.id;
end;

create trigger {p}postdate_profiles_deleted after delete on {profiles}
begin
  select raise(abort, 'the system profile cannot be deleted')
  where old.id = {system};
  delete from {ns}queue where user_id = old.id;
  delete from {ns}outcomes where user_id = old.id;
  delete from {ns}action_events where action_id in (select id from {ns}actions where user_id = old.id);
  delete from {ns}idempotency where action_id in (select id from {ns}actions where user_id = old.id);
  delete from {ns}actions where user_id = old.id;
end;
