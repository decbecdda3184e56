-- name: SaveOutage :exec
-- The rows of processes that have died are deleted on the way.
with dead as (
    delete from criticizer.outages where seen_at < now() - interval '1 day')
insert into criticizer.outages (stage, worker, since, half_open, class, reason)
values (@stage, @worker, now() - @lasting::interval, @half_open, @class, @reason)
on conflict (stage, worker) do update
set seen_at = now(), half_open = @half_open, class = @class, reason = @reason;

-- name: DeleteOutage :exec
delete from criticizer.outages where stage = @stage and worker = @worker;

-- name: Outages :many
select stage, worker, since, seen_at, half_open, class, reason from criticizer.outages
where seen_at > now() - interval '5 minutes'
order by stage, since, worker;
