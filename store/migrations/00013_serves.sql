-- Which builds this schema serves, so that an old worker goes on while it is
-- migrated and a new one is rolled out (docs/upgrade.md). A build knows the
-- version it was made for; a migration that takes away or changes what older
-- builds use raises oldest_build to its own version.

-- +goose Up
create table criticizer.schema_serves (
    oldest_build bigint not null,
    one_row boolean primary key default true,
    constraint schema_serves_one_row check (one_row)
);
insert into criticizer.schema_serves (oldest_build) values (13);

-- +goose StatementBegin
create function criticizer.oldest_build() returns bigint
    language plpgsql stable security definer set search_path = '' as $$
begin
    return (select oldest_build from criticizer.schema_serves);
end $$;
-- +goose StatementEnd
