-- name: Server :one
-- No role restricts a superuser.
select
    (current_setting('server_version_num')::integer / 10000)::integer as major_version,
    clock_timestamp()::timestamptz as clock,
    (select rolsuper from pg_catalog.pg_roles where rolname = session_user)::boolean as superuser;

-- name: Figures :many
-- The metrics that docs/observability.md lists as read from Postgres.
select name, labels, value from criticizer.figures;
