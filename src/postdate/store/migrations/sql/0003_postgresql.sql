-- Pauses and what they hold, quiet hours, and the heartbeat by which a restored database is known.

-- Only what no pause holds is looked at by a claim.
alter table {ns}queue add column hold text
  constraint {p}queue_hold check (hold is null or (hold = 'paused' and lease_token is null));
drop index {ns}queue_due;
create index {p}queue_due on {ns}queue (action_type, due_at, action_id) where lease_token is null and hold is null;
create index {p}queue_held on {ns}queue (workspace_id, action_type) where hold is not null;

create table {ns}pauses (
  id uuid not null,
  workspace_id uuid,
  action_type text,
  paused_at timestamptz not null,
  paused_by text not null,
  note text,
  constraint {p}pauses_pkey primary key (id),
  constraint {p}pauses_scope check (workspace_id is not null or action_type is not null)
);
create unique index {p}pauses_of_workspace on {ns}pauses (workspace_id) where action_type is null;
create unique index {p}pauses_of_type on {ns}pauses (action_type) where workspace_id is null;
create unique index {p}pauses_of_type_in_workspace on {ns}pauses (workspace_id, action_type);

create table {ns}ended_pauses (
  id uuid not null,
  workspace_id uuid,
  action_type text,
  paused_at timestamptz not null,
  paused_by text not null,
  note text,
  ended_at timestamptz not null,
  ended_by text not null,
  ended_note text,
  constraint {p}ended_pauses_pkey primary key (id)
);
create index {p}ended_pauses_ended on {ns}ended_pauses (ended_at);
create index {p}ended_pauses_workspace on {ns}ended_pauses (workspace_id);
create function {ns}ended_pauses_frozen() returns trigger language plpgsql as $$
begin
  raise exception 'history is append-only' using errcode = 'restrict_violation', constraint = '{p}ended_pauses_frozen';
end $$;
create trigger {p}ended_pauses_frozen before update on {ns}ended_pauses
  for each statement execute function {ns}ended_pauses_frozen();

create table {ns}quiet_hours (
  id uuid not null,
  workspace_id uuid not null,
  action_type text,
  start_time text not null,
  end_time text not null,
  weekdays text,
  tz text,
  set_at timestamptz not null,
  set_by text not null,
  note text,
  constraint {p}quiet_hours_pkey primary key (id),
  constraint {p}quiet_hours_times check (start_time || end_time ~ '^(([01]\d|2[0-3]):[0-5]\d){2}$'),
  constraint {p}quiet_hours_weekdays check (weekdays ~ '^[1-7]{1,7}$')
);
create index {p}quiet_hours_workspace on {ns}quiet_hours (workspace_id);

create function {ns}pauses_deleted() returns trigger language plpgsql as $$
begin
  delete from {ns}pauses where workspace_id = old.id;
  delete from {ns}ended_pauses where workspace_id = old.id;
  delete from {ns}quiet_hours where workspace_id = old.id;
  return null;
end $$;
create trigger {p}postdate_pauses_deleted after delete on {workspaces}
  for each row execute function {ns}pauses_deleted();

create table {ns}heartbeat (
  id integer not null,
  last_tick_at timestamptz,
  identity text,
  held_at timestamptz,
  held_because text,
  released_at timestamptz,
  released_by text,
  release_note text,
  constraint {p}heartbeat_pkey primary key (id),
  constraint {p}heartbeat_one check (id = 1),
  constraint {p}heartbeat_held check ((held_at is null) = (held_because is null))
);
insert into {ns}heartbeat (id) values (1);
