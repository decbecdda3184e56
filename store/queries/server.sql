-- What criticizer doctor asks of the server.

-- name: ServerState :one
select
    current_setting('server_version_num')::int / 10000 as major_version,
    clock_timestamp()::timestamptz as clock,
    (select rolsuper from pg_catalog.pg_roles where rolname = session_user)::boolean as superuser;

-- name: OldestBuild :one
select criticizer.oldest_build()::bigint;
