-- name: Server :one
select
    (current_setting('server_version_num')::integer / 10000)::integer as major_version,
    clock_timestamp()::timestamptz as clock,
    (select rolsuper from pg_catalog.pg_roles where rolname = session_user)::boolean as superuser;

-- name: Figures :many
select name::text as name, labels::jsonb as labels, figure::double precision as figure from criticizer.figures;

-- name: RewriteFigures :many
-- Of the rewrite queue, for the role that works it.
select 'criticizer_rewrite_jobs'::text as name, jsonb_build_object('status', status)::jsonb as labels, count(*)::double precision as figure
from criticizer.rewrite_jobs group by status
union all
select 'criticizer_rewrite_oldest_seconds', '{}'::jsonb,
       coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::double precision
from criticizer.rewrite_jobs where status = 'queued' and coalesce(not_before_at, created_at) <= now()
union all
select 'criticizer_retention_lag_seconds', '{"namespace": "rewrite"}'::jsonb,
       greatest(0, extract(epoch from now() - min(expires_at)))::double precision
from rewrite.artifacts;
