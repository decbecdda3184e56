-- +goose Up

-- Workers ask Temporal whether an unfinished review still runs: each at intervals, and
-- not by every worker.
alter table criticizer.jobs add column checked_at timestamptz;
