-- +goose Up

-- What the model answered is kept, encrypted, so that a retried attempt and a
-- rerun ask only for what is missing. Its id is a keyed hash of the question.
-- Only the stage that asks may read it: it is a namespace of its own.
create schema answer;

create table answer.artifacts (
    id         text primary key,
    body       bytea       not null,
    stored_at  timestamptz not null default now(),
    expires_at timestamptz not null,
    constraint artifacts_id_is_hash check (id ~ '^[0-9a-f]{64}$'),
    constraint artifacts_body_present check (octet_length(body) > 0),
    constraint artifacts_ttl_30_days check (
        expires_at > stored_at and expires_at <= stored_at + interval '720 hours')
);
alter table answer.artifacts alter column body set storage external;
create index artifacts_expiry on answer.artifacts (expires_at);
create trigger artifacts_delete_expired_only before delete on answer.artifacts
    for each row when (old.expires_at > now()) execute function criticizer.refuse_early_delete();

-- The tokens of a day (UTC), of all workers together: those that were used, and
-- those set aside for calls under way.
create table criticizer.token_days (
    day    date primary key,
    tokens bigint not null,
    constraint token_days_not_negative check (tokens >= 0)
);

-- How each review was made, and what it cost in all its attempts: figures and
-- names, no content. tokens are those that count against the review's budget.
create table criticizer.review_records (
    changelist_id     bigint      not null,
    review_version    integer     not null,
    tokens            bigint      not null default 0,
    calls             bigint      not null default 0,
    prompt_tokens     bigint      not null default 0,
    completion_tokens bigint      not null default 0,
    cached_tokens     bigint      not null default 0,
    estimated         boolean     not null default false,
    -- The rest is known once the review is over, as package review writes it.
    record            jsonb,
    updated_at        timestamptz not null default now(),
    primary key (changelist_id, review_version),
    constraint review_records_not_negative check (tokens >= 0 and calls >= 0)
);

grant usage on schema answer to criticizer_llm, criticizer_operator, criticizer_retention;
grant select, insert, update on answer.artifacts to criticizer_llm;
grant select (id, stored_at, expires_at) on answer.artifacts to criticizer_operator;
grant delete, select (id, expires_at) on answer.artifacts to criticizer_retention;

grant select, insert, update on criticizer.token_days, criticizer.review_records to criticizer_llm;
grant select on criticizer.token_days, criticizer.review_records to criticizer_operator;
