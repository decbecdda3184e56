-- name: PutRewrite :exec
insert into rewrite.artifacts (id, body, expires_at)
values (@id, @body, now() + @ttl::interval)
on conflict (id) do update
set body = @body, stored_at = now(), expires_at = greatest(artifacts.expires_at, now() + @ttl::interval);

-- name: RewriteBody :one
select body from rewrite.artifacts where id = @id and expires_at > now();

-- name: DeleteExpiredRewrite :execrows
delete from rewrite.artifacts where expires_at <= now();
