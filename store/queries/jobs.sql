-- name: LockChangelist :exec
-- Serialises what is decided about one changelist until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('criticizer changelist ' || @changelist_id::bigint, 0));

-- name: Incumbent :one
-- The row that decides about a request: its own, else the same version's under
-- another key, else the highest version above it.
select *
from criticizer.jobs
where idempotency_key = @idempotency_key
   or (changelist_id = @changelist_id and review_version >= @review_version)
order by (idempotency_key = @idempotency_key) desc, (review_version = @review_version) desc, review_version desc
limit 1
for update;

-- name: InsertJob :one
insert into criticizer.jobs (idempotency_key, changelist_id, review_version, server_id, run_id)
values (@idempotency_key, @changelist_id, @review_version, @server_id, @run_id)
returning *;

-- name: ReopenUnfinishedJob :one
update criticizer.jobs
set state = 'in_progress', run_id = @run_id, updated_at = now(), finished_at = null
where idempotency_key = @idempotency_key and state <> 'succeeded'
returning *;

-- name: FinishJobIfAllTold :one
-- The condition and the change are one statement (review-notification 6.5). A run
-- that was ended by hand may be reset, and come to its end all the same.
update criticizer.jobs j
set state = 'succeeded', outcome = @outcome::text, findings = @findings, report = nullif(@report::text, ''),
    updated_at = now(), finished_at = now()
where j.idempotency_key = @idempotency_key
  and j.state <> 'succeeded'
  and not exists (
    select from criticizer.deliveries d
    where d.changelist_id = j.changelist_id and d.review_version = j.review_version
      and d.notified_at is null and d.status <> 'waived')
returning *;

-- name: SkipJob :one
update criticizer.jobs
set state = 'succeeded', outcome = 'not_reviewed', skipped_by = @skipped_by::text, updated_at = now(), finished_at = now()
where idempotency_key = @idempotency_key and state <> 'succeeded'
returning *;

-- name: CancelJobIfRunning :execrows
update criticizer.jobs
set state = 'canceled', updated_at = now(), finished_at = now()
where idempotency_key = @idempotency_key and state in ('in_progress', 'retryable_failed');

-- name: DeadLetterUnfinishedJob :exec
update criticizer.jobs
set state = 'dead_lettered', updated_at = now(), finished_at = now()
where idempotency_key = @idempotency_key and state <> 'succeeded';

-- name: Job :one
select * from criticizer.jobs where idempotency_key = @idempotency_key;

-- name: LockJob :one
select * from criticizer.jobs where idempotency_key = @idempotency_key for update;

-- name: EarlierReport :one
-- Of the highest version that had succeeded when this one was opened: the answer
-- is the same on every attempt to mail.
select earlier.review_version, earlier.report
from criticizer.jobs earlier
join criticizer.jobs this using (changelist_id)
where this.changelist_id = @changelist_id and this.review_version = @review_version
  and earlier.review_version < this.review_version
  and earlier.state = 'succeeded' and earlier.finished_at <= this.created_at
order by earlier.review_version desc
limit 1;

-- name: SchemaVersion :one
select criticizer.schema_version()::bigint;

-- name: AppendAudit :exec
insert into criticizer.audit_log (actor, action, object, detail)
values (coalesce(nullif(@actor::text, ''), current_user), @action, @object, @detail);
