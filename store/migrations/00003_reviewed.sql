-- +goose Up

-- The fetch stage credits integrated content only if the changes that made it were
-- reviewed: it may see whether a changelist has such a review, and nothing else.
grant select (changelist_id, shelved, outcome) on criticizer.jobs to criticizer_fetch;
