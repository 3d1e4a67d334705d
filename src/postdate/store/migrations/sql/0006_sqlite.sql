-- Where the zone of an action came from, and what is to become of it when that zone changes.

-- Of older rows nobody knows where it came from: they keep the zone they have.
alter table {ns}actions add column tz_source text
  constraint {p}actions_tz_source check (tz_source in ('call', 'owner'));
alter table {ns}actions add column zone_policy text
  constraint {p}actions_zone_policy check (zone_policy in ('follow', 'pin', 'ask'));

-- What is still to come in a zone, and which owners have what is to come in which zone.
create index {p}actions_zone on {ns}actions (tz, publish_at, id) where tz is not null;
create index {p}actions_owner_zone on {ns}actions (user_id, workspace_id, tz, publish_at) where tz_source = 'owner';
