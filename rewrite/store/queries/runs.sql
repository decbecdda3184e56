-- name: BeginRun :exec
insert into complaint_rewrite.runs (run_id, worker, max_jobs_per_run) values (@run_id, @worker, @max_jobs_per_run)
on conflict (run_id) do nothing;

-- name: SkipRun :exec
insert into complaint_rewrite.runs (run_id, worker, max_jobs_per_run, event, finished_at)
values (@run_id, @worker, @max_jobs_per_run, @event, now())
on conflict (run_id) do nothing;

-- name: Runtime :one
select (now() - started_at)::interval as runtime from complaint_rewrite.runs where run_id = @run_id;

-- name: RecordRefusals :exec
update complaint_rewrite.runs set refusals = @refusals where run_id = @run_id;

-- name: FinishRun :exec
select complaint_rewrite.finish_run(@run_id::uuid);

-- name: FinishLostRuns :exec
-- A run lasts at most an hour and some minutes; one that was terminated records no end.
select complaint_rewrite.finish_run(run_id) from complaint_rewrite.runs
where worker = @worker and finished_at is null and started_at < now() - interval '2 hours' and run_id <> @run_id;

-- name: Run :one
select * from complaint_rewrite.runs where run_id = @run_id;

-- name: Runs :many
select * from complaint_rewrite.runs
order by started_at desc, run_id
limit @max_runs;
