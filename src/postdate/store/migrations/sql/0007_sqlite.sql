-- Rows of rules that nobody could read are refused, and single occurrences keep the wall time that they mean.

-- What was written past the verbs is mended first, since one such row stopped all rules. JSON's null stands for nothing; by
-- anything else the rule may have been kept from firing, so that it waits for a person, who finds here what it said.
update {ns}recurring_schedules set overrides = '{}' where trim(overrides) = 'null';
update {ns}recurring_schedules set exdates = '[]' where trim(exdates) = 'null';
update {ns}recurring_schedules set rdates = '[]' where trim(rdates) = 'null';
update {ns}recurring_schedules set
  status = case status when 'active' then 'paused' else status end,
  last_error = substr('paused by an upgrade, since it could not be read: payload_template ' || payload_template
    || ', overrides ' || overrides || ', exdates ' || exdates || ', rdates ' || rdates, 1, 2000),
  payload_template = iif(iif(json_valid(payload_template), json_type(payload_template), 'none') = 'object', payload_template, '{}'),
  overrides = iif(iif(json_valid(overrides), json_type(overrides), 'none') = 'object', overrides, '{}'),
  exdates = iif(iif(json_valid(exdates), json_type(exdates), 'none') = 'array', exdates, '[]'),
  rdates = iif(iif(json_valid(rdates), json_type(rdates), 'none') = 'array', rdates, '[]')
where iif(json_valid(payload_template), json_type(payload_template), 'none') <> 'object'
  or iif(json_valid(overrides), json_type(overrides), 'none') <> 'object'
  or iif(json_valid(exdates), json_type(exdates), 'none') <> 'array'
  or iif(json_valid(rdates), json_type(rdates), 'none') <> 'array';
update {ns}recurring_schedules set
  starts_at = max(-62135596800000000, min(starts_at, 253402300799999999)),
  ends_at = max(-62135596800000000, min(ends_at, 253402300799999999)),
  last_materialized_at = max(-62135596800000000, min(last_materialized_at, 253402300799999999)),
  look_at = max(-62135596800000000, min(look_at, 253402300799999999)),
  reroll_from = max(-62135596800000000, min(reroll_from, 253402300799999999)),
  created_at = max(-62135596800000000, min(created_at, 253402300799999999)),
  grace_seconds = min(grace_seconds, 315360000)
where starts_at not between -62135596800000000 and 253402300799999999
  or ends_at not between -62135596800000000 and 253402300799999999
  or last_materialized_at not between -62135596800000000 and 253402300799999999
  or look_at not between -62135596800000000 and 253402300799999999
  or reroll_from not between -62135596800000000 and 253402300799999999
  or created_at not between -62135596800000000 and 253402300799999999
  or grace_seconds > 315360000;
delete from {ns}rule_occurrences where nominal_at not between -62135596800000000 and 253402300799999999;
update {ns}rule_occurrences set
  moved_to = max(-62135596800000000, min(moved_to, 253402300799999999)),
  changed_at = max(-62135596800000000, min(changed_at, 253402300799999999))
where moved_to not between -62135596800000000 and 253402300799999999
  or changed_at not between -62135596800000000 and 253402300799999999;

-- SQLite adds no checks to a table, so that this one is made anew. What names it elsewhere does so by its name.
create table {ns}recurring_schedules_before as select * from {ns}recurring_schedules;
drop table {ns}recurring_schedules;
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
  constraint {p}recurring_schedules_grace check (grace_seconds between 1 and 315360000),
  constraint {p}recurring_schedules_overlap check (overlap in ('skip', 'allow')),
  constraint {p}recurring_schedules_status check (status in ('active', 'paused', 'ended')),
  constraint {p}recurring_schedules_payload_object check (iif(json_valid(payload_template), json_type(payload_template), 'none') = 'object'),
  constraint {p}recurring_schedules_overrides_object check (iif(json_valid(overrides), json_type(overrides), 'none') = 'object'),
  constraint {p}recurring_schedules_exdates_array check (iif(json_valid(exdates), json_type(exdates), 'none') = 'array'),
  constraint {p}recurring_schedules_rdates_array check (iif(json_valid(rdates), json_type(rdates), 'none') = 'array'),
  constraint {p}recurring_schedules_starts_at_range check (starts_at between -62135596800000000 and 253402300799999999),
  constraint {p}recurring_schedules_ends_at_range check (ends_at between -62135596800000000 and 253402300799999999),
  constraint {p}recurring_schedules_last_materialized_at_range check (last_materialized_at between -62135596800000000 and 253402300799999999),
  constraint {p}recurring_schedules_look_at_range check (look_at between -62135596800000000 and 253402300799999999),
  constraint {p}recurring_schedules_reroll_from_range check (reroll_from between -62135596800000000 and 253402300799999999),
  constraint {p}recurring_schedules_created_at_range check (created_at between -62135596800000000 and 253402300799999999)
) strict;
insert into {ns}recurring_schedules select * from {ns}recurring_schedules_before;
drop table {ns}recurring_schedules_before;
create index {p}recurring_schedules_look on {ns}recurring_schedules (look_at, id) where status = 'active';
create index {p}recurring_schedules_workspace on {ns}recurring_schedules (workspace_id, id);
create index {p}recurring_schedules_user on {ns}recurring_schedules (user_id);
create index {p}recurring_schedules_holidays on {ns}recurring_schedules (holidays) where holidays is not null;

create trigger {p}recurring_schedules_deleted after delete on {ns}recurring_schedules
begin
  delete from {ns}rule_occurrences where rule_id = old.id;
  delete from {ns}action_events where action_id = old.id;
end;

alter table {ns}rule_occurrences add column wall_time text
  constraint {p}rule_occurrences_nominal_at_range check (nominal_at between -62135596800000000 and 253402300799999999)
  constraint {p}rule_occurrences_moved_to_range check (moved_to between -62135596800000000 and 253402300799999999)
  constraint {p}rule_occurrences_changed_at_range check (changed_at between -62135596800000000 and 253402300799999999);
alter table {ns}rule_occurrences add column moved_wall text;

-- What people decided about single occurrences of rules that go by clocks.
create index {p}rule_occurrences_decided on {ns}rule_occurrences (rule_id, nominal_at) where wall_time is not null;
