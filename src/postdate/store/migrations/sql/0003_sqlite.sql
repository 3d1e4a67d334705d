-- Pauses and what they hold, quiet hours, and the heartbeat by which a restored database is known.

-- Only what no pause holds is looked at by a claim.
alter table {ns}queue add column hold text
  constraint {p}queue_hold check (hold is null or (hold = 'paused' and lease_token is null));
drop index {ns}queue_due;
create index {p}queue_due on {ns}queue (action_type, due_at, action_id) where lease_token is null and hold is null;
create index {p}queue_held on {ns}queue (workspace_id, action_type) where hold is not null;

create table {ns}pauses (
  id text not null constraint {p}pauses_pkey primary key,
  workspace_id text,
  action_type text,
  paused_at integer not null,
  paused_by text not null,
  note text,
  constraint {p}pauses_scope check (workspace_id is not null or action_type is not null)
) strict;
create unique index {p}pauses_of_workspace on {ns}pauses (workspace_id) where action_type is null;
create unique index {p}pauses_of_type on {ns}pauses (action_type) where workspace_id is null;
create unique index {p}pauses_of_type_in_workspace on {ns}pauses (workspace_id, action_type);

create table {ns}ended_pauses (
  id text not null constraint {p}ended_pauses_pkey primary key,
  workspace_id text,
  action_type text,
  paused_at integer not null,
  paused_by text not null,
  note text,
  ended_at integer not null,
  ended_by text not null,
  ended_note text
) strict;
create index {p}ended_pauses_ended on {ns}ended_pauses (ended_at);
create index {p}ended_pauses_workspace on {ns}ended_pauses (workspace_id);
create trigger {p}ended_pauses_frozen before update on {ns}ended_pauses
begin
  select raise(abort, 'history is append-only');
end;
create trigger {p}ended_pauses_never_replaced before insert on {ns}ended_pauses
when exists (select 1 from {ns}ended_pauses where id = new.id)
begin
  select raise(abort, 'history is append-only');
end;

create table {ns}quiet_hours (
  id text not null constraint {p}quiet_hours_pkey primary key,
  workspace_id text not null,
  action_type text,
  start_time text not null,
  end_time text not null,
  weekdays text,
  tz text,
  set_at integer not null,
  set_by text not null,
  note text,
  constraint {p}quiet_hours_times check (start_time glob '[0-2][0-9]:[0-5][0-9]' and start_time < '24' and end_time glob '[0-2][0-9]:[0-5][0-9]' and end_time < '24'),
  constraint {p}quiet_hours_weekdays check (length(weekdays) between 1 and 7 and weekdays not glob '*[^1-7]*')
) strict;
create index {p}quiet_hours_workspace on {ns}quiet_hours (workspace_id);

create trigger {p}postdate_pauses_deleted after delete on {workspaces}
begin
  delete from {ns}pauses where workspace_id = old.id;
  delete from {ns}ended_pauses where workspace_id = old.id;
  delete from {ns}quiet_hours where workspace_id = old.id;
end;

create table {ns}heartbeat (
  id integer not null constraint {p}heartbeat_pkey primary key,
  last_tick_at integer,
  identity text,
  held_at integer,
  held_because text,
  released_at integer,
  released_by text,
  release_note text,
  constraint {p}heartbeat_one check (id = 1),
  constraint {p}heartbeat_held check ((held_at is null) = (held_because is null))
) strict;
insert into {ns}heartbeat (id) values (1);
