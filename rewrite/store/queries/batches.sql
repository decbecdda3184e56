-- name: InsertBatch :exec
insert into complaint_rewrite.batches (batch_id, routing_decision, language_pair, requests, tokens, run_id, lease_token, leased_until)
values (@batch_id, @routing_decision, @language_pair, @requests, @tokens, @run_id, @lease_token::uuid, now() + @lease::interval);

-- name: BindJobs :execrows
update complaint_rewrite.jobs
set batch_id = @batch_id::uuid, updated_at = now()
where job_id = any (@job_ids::uuid[]) and status = 'processing' and claim_token = @claim_token::uuid and batch_id is null;

-- name: RecordUpload :execrows
-- Called before the creation: from now on the provider may have the batch.
update complaint_rewrite.batches
set input_file_id = @input_file_id, create_begun_at = now(), leased_until = now() + @lease::interval
where batch_id = @batch_id and state = 'submitting' and lease_token = @lease_token::uuid and leased_until > now();

-- name: RecordCreateError :exec
update complaint_rewrite.batches
set create_error = @create_error
where batch_id = @batch_id and state = 'submitting' and lease_token = @lease_token::uuid;

-- name: MarkBatchSubmitted :execrows
update complaint_rewrite.batches
set state = 'submitted', provider_batch_id = @provider_batch_id, provider_status = @provider_status,
    submitted_at = now(), lease_token = null, leased_until = null
where batch_id = @batch_id and state = 'submitting';

-- name: MarkJobsSubmitted :exec
update complaint_rewrite.jobs
set status = 'batch_submitted', updated_at = now(), run_id = @run_id::uuid, claim_token = null
where batch_id = @batch_id::uuid and status = 'processing';

-- name: LeaseBatch :one
-- The batch whose last poll is the oldest; none that this run has polled. An abandoned
-- batch that the provider may still execute is due as a submitted one: to be canceled.
with due as materialized (
    select b.batch_id from complaint_rewrite.batches b
    where (b.state = @state
           or b.state = 'abandoned' and @state = 'submitted' and b.provider_batch_id <> '' and b.cancel_asked_at is null
           and b.provider_status in ('validating', 'in_progress') and b.ended_at > now() - interval '24 hours')
      and (b.leased_until is null or b.leased_until <= now())
      and (b.polled_at is null or b.polled_at < (select r.started_at from complaint_rewrite.runs r where r.run_id = @run_id::uuid))
    order by b.polled_at nulls first, b.created_at
    limit 1
    for update skip locked)
update complaint_rewrite.batches b
set lease_token = @lease_token::uuid, leased_until = now() + @lease::interval, polled_at = now()
from due
where b.batch_id = due.batch_id
returning sqlc.embed(b), (now() - coalesce(b.submitted_at, b.created_at))::interval as age, coalesce(now() - b.final_at, '0')::interval as final_age;

-- name: RecordPoll :exec
update complaint_rewrite.batches
set provider_status = @provider_status, lease_token = null, leased_until = null,
    final_at = case when @final::boolean then coalesce(final_at, now()) end,
    cancel_asked_at = case when @cancel_asked::boolean then coalesce(cancel_asked_at, now()) else cancel_asked_at end
where batch_id = @batch_id and state in ('submitted', 'abandoned') and lease_token = @lease_token::uuid;

-- name: EndBatch :exec
-- Changes nothing while a job of the batch is undecided.
update complaint_rewrite.batches b
set state = @state, provider_status = coalesce(nullif(@provider_status::text, ''), b.provider_status),
    ended_at = now(), lease_token = null, leased_until = null
where b.batch_id = @batch_id and b.state in ('submitting', 'submitted')
  and not exists (select from complaint_rewrite.jobs j where j.batch_id = b.batch_id and j.status in ('processing', 'batch_submitted'));

-- name: ReleaseJobs :exec
-- Queues the jobs of a claim again. No provider was asked to execute them, so this
-- counts no attempt (rewrite 6.1).
update complaint_rewrite.jobs j
set status = 'queued', not_before_at = now() + @wait::interval, last_error = @error::text, last_error_at = now(), updated_at = now(),
    run_id = @run_id::uuid, claimed_at = null, claimed_by = null, claim_token = null, batch_id = null
where j.status = 'processing' and j.begun_at is null and j.claim_token = @claim_token::uuid and j.batch_id is null;

-- name: PendingBatches :one
select count(*)::integer as pending from complaint_rewrite.batches b
where (b.state = @state
       or b.state = 'abandoned' and @state = 'submitted' and b.provider_batch_id <> '' and b.cancel_asked_at is null
       and b.provider_status in ('validating', 'in_progress') and b.ended_at > now() - interval '24 hours')
  and (leased_until is null or leased_until <= now());

-- name: Enqueued :one
-- The tokens of a model's open batches, and the limits, lowered to those that the last refusal
-- within a day taught: least ignores null.
with of_model as (
    select * from complaint_rewrite.batches
    where routing_decision ->> 'provider' = @provider::text and routing_decision ->> 'model' = @model::text)
select coalesce(sum(tokens) filter (where state in ('submitting', 'submitted')), 0)::integer as tokens,
       least(@max_requests::integer, (array_agg(limit_requests order by created_at desc) filter (where limit_requests > 0))[1])::integer as max_requests,
       least(@max_tokens::integer, (array_agg(limit_tokens order by created_at desc) filter (where limit_tokens > 0))[1])::integer as max_tokens
from of_model where state in ('submitting', 'submitted') or created_at > now() - interval '24 hours';

-- name: LearnLimit :exec
update complaint_rewrite.batches b
set limit_requests = greatest(1, b.requests / 2),
    limit_tokens = case when @full_up::boolean then (
        select greatest(1, sum(o.tokens) / 2) from complaint_rewrite.batches o
        where o.state in ('submitting', 'submitted') and o.routing_decision ->> 'provider' = b.routing_decision ->> 'provider'
          and o.routing_decision ->> 'model' = b.routing_decision ->> 'model') end
where b.batch_id = @batch_id;

-- name: OpenBatches :many
select * from complaint_rewrite.batches where state in ('submitting', 'submitted') order by created_at desc, batch_id;

-- name: UnbindJobs :exec
-- Takes the claimed jobs out of a batch that the provider refused: they join others.
update complaint_rewrite.jobs set batch_id = null, updated_at = now()
where batch_id = @batch_id::uuid and status = 'processing' and claim_token = @claim_token::uuid;

-- name: AbandonBatch :execrows
update complaint_rewrite.batches set state = 'abandoned', ended_at = now(), lease_token = null, leased_until = null
where batch_id = @batch_id and state in ('submitting', 'submitted');

-- name: AbandonJobs :execrows
-- The provider may have executed the jobs, so this counts an attempt.
update complaint_rewrite.jobs j
set status = case when j.attempt_count + 1 < j.max_attempts then 'queued' else 'failed' end, attempt_count = j.attempt_count + 1,
    last_error = @error::text, last_error_at = now(), updated_at = now(), run_id = null, claim_token = null, begun_at = null,
    claimed_at = null, claimed_by = null, batch_id = null, not_before_at = null
where j.batch_id = @batch_id::uuid and j.status in ('processing', 'batch_submitted');

-- name: Installation :one
select id::text as id, (looked_at < now() - interval '24 hours')::boolean as look_due from complaint_rewrite.installation;

-- name: RecordLook :exec
update complaint_rewrite.installation set looked_at = now();

-- name: BatchRoutes :many
-- A decision per provider to which batches were sent within a month.
select distinct on (routing_decision ->> 'provider', routing_decision ->> 'base_url') routing_decision
from complaint_rewrite.batches where created_at > now() - interval '30 days';

-- name: KnowsBatch :one
select exists (select from complaint_rewrite.batches where batch_id::text = @key::text or provider_batch_id = @provider_batch_id);

-- name: ClaimListed :many
-- Claims the queued jobs among those that a batch at the provider has results of.
update complaint_rewrite.jobs
set status = 'processing', claimed_at = now(), claimed_by = @worker::text, claim_token = @claim_token::uuid,
    run_id = @run_id::uuid, updated_at = now(), begun_at = null, batch_id = null
where job_id::text = any (@job_ids::text[]) and status = 'queued' and routing_decision ->> 'provider' = @provider::text
returning to_jsonb(jobs.*);
