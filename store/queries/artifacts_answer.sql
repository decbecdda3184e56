-- name: PutAnswer :exec
-- A later answer to the same question takes the place of the one before.
insert into answer.artifacts (id, body, expires_at)
values (@id, @body, now() + @ttl::interval)
on conflict (id) do update
set body = @body, stored_at = now(), expires_at = greatest(artifacts.expires_at, now() + @ttl::interval);

-- name: AnswerBody :one
select body from answer.artifacts where id = @id and expires_at > now();

-- name: DeleteExpiredAnswers :execrows
delete from answer.artifacts where expires_at <= now();
