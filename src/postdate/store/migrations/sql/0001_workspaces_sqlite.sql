-- In which workspaces, where the host has no such table of its own.

create table {ns}workspaces (
  id text not null constraint {p}workspaces_pkey primary key,
  name text,
  settings text not null default '{}',
  created_at integer not null default ({now}),
  constraint {p}workspaces_settings_object check (json_type(settings) is 'object')
) strict;
