-- name: BeginRewriteRun :exec
insert into criticizer.rewrite_runs (run_id, worker, max_jobs_per_run) values (@run_id, @worker, @max_jobs_per_run)
on conflict (run_id) do nothing;

-- name: SkipRewriteRun :exec
insert into criticizer.rewrite_runs (run_id, worker, max_jobs_per_run, event, finished_at)
values (@run_id, @worker, @max_jobs_per_run, @event, now())
on conflict (run_id) do nothing;

-- name: RewriteRuntime :one
-- Seconds since the run began.
select extract(epoch from now() - started_at)::float8 as runtime from criticizer.rewrite_runs where run_id = @run_id;

-- name: RewriteRunCounts :many
select coalesce(j.routing_decision ->> 'provider', '')::text as provider, coalesce(j.routing_decision ->> 'model', '')::text as model,
       count(*) filter (where t.to_status = 'processing')::integer as claimed,
       count(*) filter (where t.to_status = 'batch_submitted')::integer as submitted,
       count(*) filter (where t.to_status = 'completed')::integer as succeeded,
       count(*) filter (where t.to_status = 'failed')::integer as failed,
       count(*) filter (where t.to_status = 'queued')::integer as requeued,
       count(*) filter (where t.error in ('stale_claim_requeued', 'stale_claim_failed'))::integer as stale,
       count(*) filter (where t.error in ('RATE_LIMITED', 'SERVER_BUSY'))::integer as rate_limited,
       count(*) filter (where t.error in ('QUOTA_EXHAUSTED', 'provider_capacity_requeued'))::integer as capacity
from criticizer.rewrite_transitions t
join criticizer.rewrite_jobs j using (job_id)
where t.run_id = @run_id::uuid
  and t.at >= (select r.started_at from criticizer.rewrite_runs r where r.run_id = @run_id::uuid)
group by 1, 2
order by 1, 2;

-- name: FinishRewriteRun :one
update criticizer.rewrite_runs
set finished_at = now(), claimed_count = @claimed, submitted_count = @submitted, succeeded_count = @succeeded,
    failed_count = @failed, requeued_count = @requeued, stale_count = @stale,
    rate_limit_errors = @rate_limited, capacity_errors = @capacity, per_model = @per_model
where run_id = @run_id
returning *;

-- name: RewriteRuns :many
select * from criticizer.rewrite_runs
where (@worker::text = '' or worker = @worker::text)
order by started_at desc, run_id
limit @max_runs;
