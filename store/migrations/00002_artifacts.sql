-- +goose Up

-- One schema per namespace, so that who may read what is a matter of grants
-- (security 9.4.4). Bodies come encrypted and compressed: TOAST must not try again.
-- stored_at is the last time the content was put; a TTL counts from there, in
-- hours because days bend with daylight saving (security 9.4.1).
create schema raw;
create schema redacted;
create schema report;

create table raw.artifacts (
    id         text primary key,
    body       bytea       not null,
    stored_at  timestamptz not null default now(),
    expires_at timestamptz not null,
    constraint artifacts_id_is_hash check (id ~ '^[0-9a-f]{64}$'),
    constraint artifacts_body_present check (octet_length(body) > 0),
    constraint artifacts_ttl_7_days check (
        expires_at > stored_at and expires_at <= stored_at + interval '168 hours')
);

create table redacted.artifacts (
    id         text primary key,
    body       bytea       not null,
    stored_at  timestamptz not null default now(),
    expires_at timestamptz not null,
    constraint artifacts_id_is_hash check (id ~ '^[0-9a-f]{64}$'),
    constraint artifacts_body_present check (octet_length(body) > 0),
    constraint artifacts_ttl_30_days check (
        expires_at > stored_at and expires_at <= stored_at + interval '720 hours')
);

create table report.artifacts (
    id         text primary key,
    body       bytea       not null,
    stored_at  timestamptz not null default now(),
    expires_at timestamptz not null,
    constraint artifacts_id_is_hash check (id ~ '^[0-9a-f]{64}$'),
    constraint artifacts_body_present check (octet_length(body) > 0),
    constraint artifacts_ttl_30_days check (
        expires_at > stored_at and expires_at <= stored_at + interval '720 hours')
);

alter table raw.artifacts alter column body set storage external;
alter table redacted.artifacts alter column body set storage external;
alter table report.artifacts alter column body set storage external;

create index artifacts_expiry on raw.artifacts (expires_at);
create index artifacts_expiry on redacted.artifacts (expires_at);
create index artifacts_expiry on report.artifacts (expires_at);

-- The retention role may delete, but nothing that a review may still need.
-- +goose StatementBegin
create function criticizer.refuse_early_delete() returns trigger language plpgsql as $$
begin
    raise exception 'artifact in schema % has not expired: delete refused', tg_table_schema
        using errcode = 'insufficient_privilege';
end $$;
-- +goose StatementEnd

create trigger artifacts_delete_expired_only before delete on raw.artifacts
    for each row when (old.expires_at > now()) execute function criticizer.refuse_early_delete();
create trigger artifacts_delete_expired_only before delete on redacted.artifacts
    for each row when (old.expires_at > now()) execute function criticizer.refuse_early_delete();
create trigger artifacts_delete_expired_only before delete on report.artifacts
    for each row when (old.expires_at > now()) execute function criticizer.refuse_early_delete();
