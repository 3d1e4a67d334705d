-- Which source wants an action, what it said, and a way to find what ended by its key.

alter table {ns}actions add column fingerprint text;

-- What a source has in the queue is read in the order of its keys; only that is in the index.
alter table {ns}queue add column source text;
create index {p}queue_source on {ns}queue (source, workspace_id, key) where source is not null;

-- With outcomes_guard: everything that a source must not bring back.
create index {p}outcomes_ended on {ns}outcomes (key) where status = 'failed' or reason = 'user' or reason = 'skipped';
