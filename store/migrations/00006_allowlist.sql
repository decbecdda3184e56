-- +goose Up

-- Every list of depot paths that was ever in force: what, by whom, when and why
-- (security 9.1.5). The newest is the one that workers accept. applied_at and
-- login are the database's own word; no role may change a row.
create table criticizer.allowlist_versions (
    id         bigint generated always as identity primary key,
    applied_at timestamptz not null default now(),
    login      text        not null default session_user,
    who        text        not null,
    reason     text        not null,
    allowed    text[]      not null,
    embargoed  text[]      not null,
    constraint allowlist_versions_say_who_why check (who <> '' and reason <> ''),
    constraint allowlist_versions_not_empty check (cardinality(allowed) > 0)
);

grant select on criticizer.allowlist_versions to criticizer_fetch, criticizer_operator;
grant insert (who, reason, allowed, embargoed) on criticizer.allowlist_versions to criticizer_operator;
