-- name: PutRaw :exec
-- Putting the same content again starts its time anew and never shortens it.
-- The body is replaced: it may be sealed with a newer key. It is not taken from
-- excluded, for that needs the right to read bodies.
insert into raw.artifacts (id, body, expires_at)
values (@id, @body, now() + @ttl::interval)
on conflict (id) do update
set body = @body, stored_at = now(), expires_at = greatest(artifacts.expires_at, now() + @ttl::interval);

-- name: RawBody :one
select body from raw.artifacts where id = @id and expires_at > now();

-- name: DeleteExpiredRaw :execrows
delete from raw.artifacts where expires_at <= now();
