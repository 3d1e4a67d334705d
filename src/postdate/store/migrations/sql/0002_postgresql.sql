-- Endpoints that have said that they are gone, by owner: the action's workspace, else its user.

create table {ns}disabled_endpoints (
  owner_id uuid not null,
  digest text not null,
  url text not null,
  action_id uuid not null,
  disabled_at timestamptz not null,
  constraint {p}disabled_endpoints_pkey primary key (owner_id, digest),
  constraint {p}disabled_endpoints_digest check (length(digest) = 64)
);
create index {p}disabled_endpoints_action on {ns}disabled_endpoints (action_id);

-- Deleting an owner deletes its actions, and so what they found.
create function {ns}disabled_endpoints_deleted() returns trigger language plpgsql as $$
begin
  delete from {ns}disabled_endpoints where action_id = old.id;
  return null;
end $$;
create trigger {p}disabled_endpoints_deleted after delete on {ns}actions
  for each row execute function {ns}disabled_endpoints_deleted();
