-- name: Enqueue :one
select job_id::uuid, status::text, created::boolean from complaint_rewrite.enqueue(@sealed::jsonb);

-- name: LockEnqueue :exec
-- Serializes the calls that repeat after a deadlock.
select pg_advisory_xact_lock(hashtextextended('complaint_rewrite enqueue', 0));

-- name: Result :one
select complaint_rewrite.result(@job_id::uuid)::jsonb as sealed;

-- name: PendingJobs :one
-- How many jobs a run of this mode could claim, route or recover.
select count(*)::integer as pending from complaint_rewrite.jobs j
where (j.status = 'queued' and (j.not_before_at is null or j.not_before_at <= now())
       and (j.execution_mode = @mode::text or j.execution_mode is null))
   or (j.status = 'processing' and j.claimed_at < now() - @claim_timeout::interval);

-- name: RouteJobs :exec
-- Routes the oldest jobs that have no decision. Two runs may route at once: each takes its own jobs.
with unrouted as materialized (
    select q.job_id from complaint_rewrite.jobs q
    where q.status = 'queued' and q.execution_mode is null
    order by q.created_at, q.job_id
    limit @max_jobs
    for update skip locked)
update complaint_rewrite.jobs j set routing_decision = @routing_decision, updated_at = now()
from unrouted where j.job_id = unrouted.job_id;

-- name: RecoverStaleClaims :execrows
-- Ends claims that have timed out and counts an attempt (rewrite 7.2), unless the run may
-- be alive: Temporal runs one run of a worker at a time, for at most an hour and some
-- minutes, so a run is dead if it has ended, is old, or another one has begun. Jobs of a
-- batch that the provider may have are left to the submitter, which searches for the batch.
update complaint_rewrite.jobs j
set status = case when j.attempt_count + 1 < j.max_attempts then 'queued' else 'failed' end,
    last_error = case when j.attempt_count + 1 < j.max_attempts then 'stale_claim_requeued' else 'stale_claim_failed' end,
    attempt_count = j.attempt_count + 1, last_error_at = now(), updated_at = now(), run_id = @run_id::uuid,
    claimed_at = null, claimed_by = null, claim_token = null, begun_at = null, batch_id = null
where j.status = 'processing' and j.claimed_at < now() - @claim_timeout::interval
  and not exists (select from complaint_rewrite.batches b where b.batch_id = j.batch_id and b.state = 'submitting')
  and not exists (
      select from complaint_rewrite.runs r
      where r.run_id = j.run_id and r.finished_at is null and r.started_at > now() - interval '2 hours'
        and not exists (select from complaint_rewrite.runs n where n.worker = r.worker and n.started_at > r.started_at));

-- name: ClaimedByRun :one
-- How many jobs the attempts of a run have claimed so far.
select count(*)
from complaint_rewrite.transitions t
where t.run_id = @run_id::uuid and t.to_status = 'processing'
  and t.at >= (select r.started_at from complaint_rewrite.runs r where r.run_id = @run_id::uuid);

-- name: ClaimJobs :many
-- Selects and claims in one statement (rewrite 7.1). The CTE is materialized: a
-- plan may execute an inlined LIMIT more than once and claim too many jobs.
with due as materialized (
    select q.job_id from complaint_rewrite.jobs q
    where q.status = 'queued' and q.execution_mode = @mode::text and (q.not_before_at is null or q.not_before_at <= now())
      and coalesce(q.routing_decision ->> 'provider', '') <> all (@refusing::text[])
    order by q.created_at, q.job_id
    limit @max_jobs
    for update skip locked)
update complaint_rewrite.jobs j
set status = 'processing', claimed_at = now(), claimed_by = @worker::text, claim_token = @claim_token::uuid,
    run_id = @run_id::uuid, updated_at = now(), begun_at = null, batch_id = null
from due
where j.job_id = due.job_id
returning to_jsonb(j.*);

-- name: DueProviders :many
-- The providers of the oldest jobs that a run may claim.
select distinct provider::text from (
    select coalesce(routing_decision ->> 'provider', '') as provider from complaint_rewrite.jobs
    where status = 'queued' and execution_mode = @mode::text and (not_before_at is null or not_before_at <= now())
    order by created_at, job_id
    limit @max_jobs) due
order by 1;

-- name: PartState :one
-- Of a part of a rejected batch, whose name is BATCH/ and a digit per half: was a job of the batch
-- executed, and was the other half rejected and divided again?
select coalesce(bool_or(status = 'completed'), false)::boolean as works,
       coalesce(bool_or(batch_part like left(@part::text, -1) || translate(right(@part::text, 1), '12', '21') || '_%'), false)::boolean as alike
from complaint_rewrite.jobs where batch_part like split_part(@part::text, '/', 1) || '/%';

-- name: TakeOverClaims :many
-- Takes over the claims of an earlier attempt of the run. The new token fences that
-- attempt: its writes fail from now on.
update complaint_rewrite.jobs
set claim_token = @claim_token::uuid, claimed_at = now(), claimed_by = @worker::text, updated_at = now()
where status = 'processing' and run_id = @run_id::uuid
returning to_jsonb(jobs.*);

-- name: ExtendClaims :exec
-- The heartbeat of a live claim: it does not become stale (rewrite 7.2).
update complaint_rewrite.jobs set claimed_at = now() where status = 'processing' and claim_token = @claim_token::uuid;

-- name: BeginJob :execrows
update complaint_rewrite.jobs
set begun_at = now(), updated_at = now()
where job_id = @job_id and status = 'processing' and claim_token = @claim_token::uuid and begun_at is null;

-- name: SettleJobs :execrows
-- Writes how attempts ended, by the right of a claim or of a batch; a holder that has lost both
-- changes nothing. Package rewrite counts the attempts (rewrite 8.1, 8.2). coalesce keeps the
-- planner from using the index of claimed jobs: it estimates that index as nearly empty and plans
-- a nested loop.
update complaint_rewrite.jobs j
set status = r.status, result_ref = coalesce(nullif(r.result, ''), j.result_ref), attempt_count = r.attempts, updated_at = now(),
    last_error = case when r.status = 'completed' then j.last_error else r.error end,
    last_error_at = case when r.status = 'completed' then j.last_error_at else now() end,
    capacity_rounds = r.rounds, batch_part = coalesce(nullif(r.part, ''), j.batch_part),
    not_before_at = case when r.status = 'queued' then now() + make_interval(secs => r.wait / 1e9) else j.not_before_at end,
    run_id = @run_id::uuid, claim_token = null, begun_at = null,
    claimed_at = case when r.status = 'queued' then null else j.claimed_at end,
    claimed_by = case when r.status = 'queued' then null else j.claimed_by end,
    batch_id = case when r.status = 'queued' then null else j.batch_id end
from jsonb_to_recordset(@outcomes::jsonb) as r (
    job_id uuid, status text, result text, attempts integer, wait bigint, error text, part text, rounds integer)
where j.job_id = r.job_id and r.attempts in (j.attempt_count, j.attempt_count + 1)
  and coalesce(j.status in ('processing', 'batch_submitted')
               and (j.claim_token = @claim_token::uuid or j.batch_id = sqlc.narg(batch_id)::uuid), false);

-- name: JobsOfBatch :many
-- All jobs of a batch in the order of the lines of its input file.
select to_jsonb(jobs.*) from complaint_rewrite.jobs where batch_id = @batch_id::uuid order by created_at, job_id;

-- name: Input :one
select r.text_ref, coalesce(j.preferences_ref, '')::text as preferences_ref
from complaint_rewrite.jobs j
join complaint_rewrite.requests r using (rewrite_request_id)
where j.job_id = @job_id;

-- name: Job :one
select to_jsonb(jobs.*) from complaint_rewrite.jobs where job_id = @job_id;

-- name: FindJobs :many
-- An empty argument selects all.
select to_jsonb(jobs.*) from complaint_rewrite.jobs
where (@status::text = '' or status = @status::text)
  and (sqlc.narg(rewrite_request_id)::uuid is null or rewrite_request_id = sqlc.narg(rewrite_request_id)::uuid)
order by created_at desc, job_id
limit @max_jobs;

-- name: Transitions :many
select at, login, coalesce(from_status, '')::text as from_status, to_status, attempt_count, coalesce(error, '')::text as error,
       coalesce(run_id::text, '')::text as run_id, coalesce(batch_id::text, '')::text as batch_id
from complaint_rewrite.transitions where job_id = @job_id order by id;

-- name: CancelJob :one
update complaint_rewrite.jobs
set status = 'canceled', updated_at = now(), run_id = null, claim_token = null
where job_id = @job_id and status in ('queued', 'processing', 'batch_submitted')
returning to_jsonb(jobs.*);

-- name: RequeueJob :one
-- Requeues a waiting job, or a claimed one that no provider has; the latter counts
-- an attempt.
update complaint_rewrite.jobs
set not_before_at = null, updated_at = now(), run_id = null,
    attempt_count = case status when 'queued' then attempt_count else attempt_count + 1 end,
    status = 'queued', claimed_at = null, claimed_by = null, claim_token = null, begun_at = null
where job_id = @job_id and batch_id is null
  and (status = 'queued' or (status = 'processing' and attempt_count + 1 < max_attempts))
returning to_jsonb(jobs.*);

-- name: Stats :many
select status, coalesce(execution_mode, '')::text as execution_mode, count(*)::integer as jobs, min(created_at)::timestamptz as oldest,
       (count(*) filter (where not_before_at > now()))::integer as deferred
from complaint_rewrite.jobs
group by 1, 2
order by 1, 2;
