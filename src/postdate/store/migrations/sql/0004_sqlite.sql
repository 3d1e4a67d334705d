-- Recurring rules, the ledger of their occurrences, holidays, and when each periodic pass last ended.

create table {ns}passes (
  name text not null constraint {p}passes_pkey primary key,
  last_run_at integer not null,
  state text not null default '{}'
) strict;

create table {ns}recurring_schedules (
  id text not null constraint {p}recurring_schedules_pkey primary key,
  workspace_id text,
  user_id text not null,
  action_type text not null,
  target_key text,
  payload_template text not null,
  overrides text not null default '{}',
  kind text not null,
  rrule text not null,
  starts_wall text,
  starts_at integer not null,
  ends_at integer,
  tz text,
  gap text not null,
  fold text not null,
  exdates text not null default '[]',
  rdates text not null default '[]',
  holidays text,
  misfire text not null,
  grace_seconds integer not null,
  overlap text not null,
  status text not null default 'active',
  last_materialized_at integer not null,
  look_at integer not null,
  reroll_from integer,
  last_error text,
  split_from text,
  version integer not null default 1,
  created_at integer not null,
  constraint {p}recurring_schedules_kind check (kind in ('rrule', 'cron', 'every')),
  constraint {p}recurring_schedules_zone check ((kind = 'every') = (tz is null)),
  constraint {p}recurring_schedules_wall check ((kind = 'rrule') = (starts_wall is not null)),
  constraint {p}recurring_schedules_gap check (gap in ('forward', 'reject')),
  constraint {p}recurring_schedules_fold check (fold in ('first', 'second')),
  constraint {p}recurring_schedules_misfire check (misfire in ('skip', 'once', 'all')),
  constraint {p}recurring_schedules_grace check (grace_seconds > 0),
  constraint {p}recurring_schedules_overlap check (overlap in ('skip', 'allow')),
  constraint {p}recurring_schedules_status check (status in ('active', 'paused', 'ended'))
) strict;
create index {p}recurring_schedules_look on {ns}recurring_schedules (look_at, id) where status = 'active';
create index {p}recurring_schedules_workspace on {ns}recurring_schedules (workspace_id, id);
create index {p}recurring_schedules_user on {ns}recurring_schedules (user_id);
create index {p}recurring_schedules_holidays on {ns}recurring_schedules (holidays) where holidays is not null;

create table {ns}rule_occurrences (
  rule_id text not null,
  nominal_at integer not null,
  state text not null,
  action_id text,
  moved_to integer,
  reason text,
  changed_at integer not null,
  constraint {p}rule_occurrences_pkey primary key (rule_id, nominal_at),
  constraint {p}rule_occurrences_state check (state in ('materialised', 'withdrawn', 'skipped', 'moved')),
  constraint {p}rule_occurrences_reason check (
    case when state = 'skipped' then coalesce(reason in ('user', 'missed', 'overlap', 'refused'), 0) else reason is null end),
  constraint {p}rule_occurrences_moved check ((state = 'moved') = (moved_to is not null))
) strict;
create index {p}rule_occurrences_missed on {ns}rule_occurrences (nominal_at) where reason = 'missed';
create index {p}rule_occurrences_action on {ns}rule_occurrences (action_id);

create table {ns}holiday_calendars (
  calendar text not null,
  day text not null,
  name text,
  constraint {p}holiday_calendars_pkey primary key (calendar, day),
  constraint {p}holiday_calendars_day check (day glob '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]')
) strict;

create trigger {p}recurring_schedules_deleted after delete on {ns}recurring_schedules
begin
  delete from {ns}rule_occurrences where rule_id = old.id;
  delete from {ns}action_events where action_id = old.id;
end;

create trigger {p}postdate_workspaces_rules_deleted after delete on {workspaces}
begin
  delete from {ns}recurring_schedules where workspace_id = old.id;
end;

create trigger {p}postdate_profiles_rules_deleted after delete on {profiles}
begin
  delete from {ns}recurring_schedules where user_id = old.id;
end;
