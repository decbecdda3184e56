-- How far the search for changelists that no trigger told of has come, by
-- Perforce server. What was submitted up to "since" is older than the
-- installation and is not looked for.

-- +goose Up
create table criticizer.catch_up (
    server_id text primary key,
    since bigint not null,
    mark bigint not null,
    updated_at timestamptz not null default now(),
    constraint catch_up_mark_is_no_older check (mark >= since),
    constraint catch_up_since_is_a_number check (since >= 0)
);
grant select, insert, update on criticizer.catch_up to criticizer_bookkeeping;
grant select on criticizer.catch_up to criticizer_operator;
