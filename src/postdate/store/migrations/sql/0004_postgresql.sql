-- Recurring rules, the ledger of their occurrences, holidays, and when each periodic pass last ended.

create table {ns}passes (
  name text not null,
  last_run_at timestamptz not null,
  state jsonb not null default '{}',
  constraint {p}passes_pkey primary key (name)
);

create table {ns}recurring_schedules (
  id uuid not null,
  workspace_id uuid,
  user_id uuid not null,
  action_type text not null,
  target_key text,
  payload_template jsonb not null,
  overrides jsonb not null default '{}',
  kind text not null,
  rrule text not null,
  starts_wall text,
  starts_at timestamptz not null,
  ends_at timestamptz,
  tz text,
  gap text not null,
  fold text not null,
  exdates jsonb not null default '[]',
  rdates jsonb not null default '[]',
  holidays text,
  misfire text not null,
  grace_seconds integer not null,
  overlap text not null,
  status text not null default 'active',
  last_materialized_at timestamptz not null,
  look_at timestamptz not null,
  reroll_from timestamptz,
  last_error text,
  split_from uuid,
  version integer not null default 1,
  created_at timestamptz not null,
  constraint {p}recurring_schedules_pkey primary key (id),
  constraint {p}recurring_schedules_kind check (kind in ('rrule', 'cron', 'every')),
  constraint {p}recurring_schedules_zone check ((kind = 'every') = (tz is null)),
  constraint {p}recurring_schedules_wall check ((kind = 'rrule') = (starts_wall is not null)),
  constraint {p}recurring_schedules_gap check (gap in ('forward', 'reject')),
  constraint {p}recurring_schedules_fold check (fold in ('first', 'second')),
  constraint {p}recurring_schedules_misfire check (misfire in ('skip', 'once', 'all')),
  constraint {p}recurring_schedules_grace check (grace_seconds > 0),
  constraint {p}recurring_schedules_overlap check (overlap in ('skip', 'allow')),
  constraint {p}recurring_schedules_status check (status in ('active', 'paused', 'ended'))
);
create index {p}recurring_schedules_look on {ns}recurring_schedules (look_at, id) where status = 'active';
create index {p}recurring_schedules_workspace on {ns}recurring_schedules (workspace_id, id);
create index {p}recurring_schedules_user on {ns}recurring_schedules (user_id);
create index {p}recurring_schedules_holidays on {ns}recurring_schedules (holidays) where holidays is not null;

create table {ns}rule_occurrences (
  rule_id uuid not null,
  nominal_at timestamptz not null,
  state text not null,
  action_id uuid,
  moved_to timestamptz,
  reason text,
  changed_at timestamptz not null,
  constraint {p}rule_occurrences_pkey primary key (rule_id, nominal_at),
  constraint {p}rule_occurrences_state check (state in ('materialised', 'withdrawn', 'skipped', 'moved')),
  constraint {p}rule_occurrences_reason check (
    case when state = 'skipped' then coalesce(reason in ('user', 'missed', 'overlap', 'refused'), false) else reason is null end),
  constraint {p}rule_occurrences_moved check ((state = 'moved') = (moved_to is not null))
);
create index {p}rule_occurrences_missed on {ns}rule_occurrences (nominal_at) where reason = 'missed';
create index {p}rule_occurrences_action on {ns}rule_occurrences (action_id);

create table {ns}holiday_calendars (
  calendar text not null,
  day text not null,
  name text,
  constraint {p}holiday_calendars_pkey primary key (calendar, day),
  constraint {p}holiday_calendars_day check (day ~ '^\d{4}-\d\d-\d\d$')
);

create function {ns}recurring_schedules_deleted() returns trigger language plpgsql as $$
begin
  delete from {ns}rule_occurrences where rule_id = old.id;
  delete from {ns}action_events where action_id = old.id;
  return null;
end $$;
create trigger {p}recurring_schedules_deleted after delete on {ns}recurring_schedules
  for each row execute function {ns}recurring_schedules_deleted();

-- By their names these come after the triggers that empty the queue: claims too take queue rows first, then the ledger.
create function {ns}workspaces_rules_deleted() returns trigger language plpgsql as $$
begin
  delete from {ns}recurring_schedules where workspace_id = old.id;
  return null;
end $$;
create trigger {p}postdate_workspaces_rules_deleted after delete on {workspaces}
  for each row execute function {ns}workspaces_rules_deleted();

create function {ns}profiles_rules_deleted() returns trigger language plpgsql as $$
begin
  delete from {ns}recurring_schedules where user_id = old.id;
  return null;
end $$;
create trigger {p}postdate_profiles_rules_deleted after delete on {profiles}
  for each row execute function {ns}profiles_rules_deleted();
