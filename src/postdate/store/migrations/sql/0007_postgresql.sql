-- Rows of rules that nobody could read are refused, and single occurrences keep the wall time that they mean.

-- What was written past the verbs is mended first, since one such row stopped all rules. JSON's null stands for nothing; by
-- anything else the rule may have been kept from firing, so that it waits for a person, who finds here what it said.
update {ns}recurring_schedules set overrides = '{}' where overrides = 'null';
update {ns}recurring_schedules set exdates = '[]' where exdates = 'null';
update {ns}recurring_schedules set rdates = '[]' where rdates = 'null';
update {ns}recurring_schedules set
  status = case status when 'active' then 'paused' else status end,
  last_error = left(concat('paused by an upgrade, since it could not be read: payload_template ', payload_template,
    ', overrides ', overrides, ', exdates ', exdates, ', rdates ', rdates), 2000),
  payload_template = case jsonb_typeof(payload_template) when 'object' then payload_template else '{}' end,
  overrides = case jsonb_typeof(overrides) when 'object' then overrides else '{}' end,
  exdates = case jsonb_typeof(exdates) when 'array' then exdates else '[]' end,
  rdates = case jsonb_typeof(rdates) when 'array' then rdates else '[]' end
where jsonb_typeof(payload_template) <> 'object' or jsonb_typeof(overrides) <> 'object'
  or jsonb_typeof(exdates) <> 'array' or jsonb_typeof(rdates) <> 'array';
update {ns}recurring_schedules set
  starts_at = greatest('0001-01-01 00:00Z', least(starts_at, '9999-12-31 23:59:59.999999Z')),
  ends_at = case when ends_at is not null then greatest('0001-01-01 00:00Z', least(ends_at, '9999-12-31 23:59:59.999999Z')) end,
  last_materialized_at = greatest('0001-01-01 00:00Z', least(last_materialized_at, '9999-12-31 23:59:59.999999Z')),
  look_at = greatest('0001-01-01 00:00Z', least(look_at, '9999-12-31 23:59:59.999999Z')),
  reroll_from = case when reroll_from is not null then greatest('0001-01-01 00:00Z', least(reroll_from, '9999-12-31 23:59:59.999999Z')) end,
  created_at = greatest('0001-01-01 00:00Z', least(created_at, '9999-12-31 23:59:59.999999Z'))
where least(starts_at, ends_at, last_materialized_at, look_at, reroll_from, created_at) < '0001-01-01 00:00Z'
  or greatest(starts_at, ends_at, last_materialized_at, look_at, reroll_from, created_at) >= '10000-01-01 00:00Z';
delete from {ns}rule_occurrences where not (nominal_at >= '0001-01-01 00:00Z' and nominal_at < '10000-01-01 00:00Z');
update {ns}rule_occurrences set
  moved_to = case when moved_to is not null then greatest('0001-01-01 00:00Z', least(moved_to, '9999-12-31 23:59:59.999999Z')) end,
  changed_at = greatest('0001-01-01 00:00Z', least(changed_at, '9999-12-31 23:59:59.999999Z'))
where least(moved_to, changed_at) < '0001-01-01 00:00Z' or greatest(moved_to, changed_at) >= '10000-01-01 00:00Z';

alter table {ns}recurring_schedules
  add constraint {p}recurring_schedules_payload_object check (jsonb_typeof(payload_template) = 'object'),
  add constraint {p}recurring_schedules_overrides_object check (jsonb_typeof(overrides) = 'object'),
  add constraint {p}recurring_schedules_exdates_array check (jsonb_typeof(exdates) = 'array'),
  add constraint {p}recurring_schedules_rdates_array check (jsonb_typeof(rdates) = 'array'),
  add constraint {p}recurring_schedules_starts_at_range check (starts_at >= '0001-01-01 00:00Z' and starts_at < '10000-01-01 00:00Z'),
  add constraint {p}recurring_schedules_ends_at_range check (ends_at >= '0001-01-01 00:00Z' and ends_at < '10000-01-01 00:00Z'),
  add constraint {p}recurring_schedules_last_materialized_at_range check (last_materialized_at >= '0001-01-01 00:00Z' and last_materialized_at < '10000-01-01 00:00Z'),
  add constraint {p}recurring_schedules_look_at_range check (look_at >= '0001-01-01 00:00Z' and look_at < '10000-01-01 00:00Z'),
  add constraint {p}recurring_schedules_reroll_from_range check (reroll_from >= '0001-01-01 00:00Z' and reroll_from < '10000-01-01 00:00Z'),
  add constraint {p}recurring_schedules_created_at_range check (created_at >= '0001-01-01 00:00Z' and created_at < '10000-01-01 00:00Z');

alter table {ns}rule_occurrences add column wall_time text, add column moved_wall text,
  add constraint {p}rule_occurrences_nominal_at_range check (nominal_at >= '0001-01-01 00:00Z' and nominal_at < '10000-01-01 00:00Z'),
  add constraint {p}rule_occurrences_moved_to_range check (moved_to >= '0001-01-01 00:00Z' and moved_to < '10000-01-01 00:00Z'),
  add constraint {p}rule_occurrences_changed_at_range check (changed_at >= '0001-01-01 00:00Z' and changed_at < '10000-01-01 00:00Z');

-- What people decided about single occurrences of rules that go by clocks.
create index {p}rule_occurrences_decided on {ns}rule_occurrences (rule_id, nominal_at) where wall_time is not null;
