-- In which workspaces, where the host has no such table of its own.

create table {ns}workspaces (
  id uuid not null default gen_random_uuid(),
  name text,
  settings jsonb not null default '{}',
  created_at timestamptz not null default now(),
  constraint {p}workspaces_pkey primary key (id),
  constraint {p}workspaces_settings_object check (jsonb_typeof(settings) = 'object')
);
