-- name: SaveOutage :exec
-- The rows of processes that have died are deleted on the way.
with dead as (
    delete from criticizer.outages where seen_at < now() - interval '1 day')
insert into criticizer.outages (stage, worker, since, half_open, error_class, reason)
values (@stage, @worker, now() - @lasting::interval, @half_open, @error_class, @reason)
on conflict (stage, worker) do update
set seen_at = now(), half_open = @half_open, error_class = @error_class, reason = @reason;

-- name: DeleteOutage :exec
delete from criticizer.outages where stage = @stage and worker = @worker;

-- name: Outages :many
-- The circuit breakers that are not closed, as their processes confirmed in the last 5 minutes.
select stage, worker, since, seen_at, half_open, error_class, reason from criticizer.outages
where seen_at > now() - interval '5 minutes'
order by stage, since, worker;
