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

-- name: FinishRewriteRun :exec
select criticizer.finish_rewrite_run(@run_id::uuid);

-- name: FinishLostRewriteRuns :exec
-- A run lasts at most an hour and some minutes; one that was terminated records no end.
select criticizer.finish_rewrite_run(run_id) from criticizer.rewrite_runs
where worker = @worker and finished_at is null and started_at < now() - interval '2 hours' and run_id <> @run_id;

-- name: RewriteRun :one
select * from criticizer.rewrite_runs where run_id = @run_id;

-- name: RewriteRuns :many
select * from criticizer.rewrite_runs
where (@worker::text = '' or worker = @worker::text)
order by started_at desc, run_id
limit @max_runs;
