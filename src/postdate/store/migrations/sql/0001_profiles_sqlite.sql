-- Who owns actions, where the host has no such table of its own.

create table {ns}profiles (
  id text not null constraint {p}profiles_pkey primary key,
  tz text,
  created_at integer not null default ({now})
) strict;

insert into {ns}profiles (id) values ({system});
