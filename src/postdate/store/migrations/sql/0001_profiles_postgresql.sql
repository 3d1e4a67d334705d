-- Who owns actions, where the host has no such table of its own.

create table {ns}profiles (
  id uuid not null default gen_random_uuid(),
  tz text,
  created_at timestamptz not null default now(),
  constraint {p}profiles_pkey primary key (id)
);

insert into {ns}profiles (id) values ({system});
