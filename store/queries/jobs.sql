-- name: LockChangelist :exec
-- Serialises what is decided about one changelist until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('criticizer changelist ' || @changelist_id::bigint, 0));

-- name: Incumbent :one
-- The row that decides about a request: its own, else the same version's under
-- another key, else the highest version above it.
select *
from criticizer.jobs
-- Reviews of the changelist's shelf do not decide about others.
where idempotency_key = @idempotency_key
   or (changelist_id = @changelist_id and not shelved and (review_version >= @review_version or asked_version = @review_version))
order by (idempotency_key = @idempotency_key) desc, (review_version = @review_version or asked_version is not distinct from @review_version) desc, review_version desc
limit 1
for update;

-- name: InsertJob :one
-- As the version asked for, or the next one where reviews of the shelf have taken it.
insert into criticizer.jobs (idempotency_key, changelist_id, review_version, asked_version, server_id, run_id)
select @idempotency_key, @changelist_id, greatest(@review_version::integer, top + 1),
       case when top >= @review_version::integer then @review_version::integer end, @server_id, @run_id
from (select coalesce(max(review_version), 0) as top from criticizer.jobs where changelist_id = @changelist_id) as known
returning *;

-- name: JobOfShelfEvent :one
select * from criticizer.jobs where shelf_event = @shelf_event::text;

-- name: TopVersion :one
select coalesce(max(review_version), 0)::integer from criticizer.jobs where changelist_id = @changelist_id;

-- name: InsertShelfJob :exec
insert into criticizer.jobs (idempotency_key, changelist_id, review_version, server_id, run_id, shelved, shelf_event)
values (@idempotency_key, @changelist_id, @review_version, @server_id, @run_id, true, @shelf_event::text);

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
-- Of the highest version that had succeeded when this one was opened, else of the
-- shelf that the changelist was under another number: the answer is the same on
-- every attempt to mail. What was skipped has told nobody anything.
select earlier.changelist_id, earlier.review_version, earlier.report, this.created_at as begun_at
from criticizer.jobs this
left join criticizer.contents c using (changelist_id, review_version)
join criticizer.jobs earlier on earlier.changelist_id = any (array[this.changelist_id, c.shelf_of])
where this.changelist_id = @changelist_id and this.review_version = @review_version
  and (earlier.changelist_id = this.changelist_id and earlier.review_version < this.review_version
       or earlier.changelist_id <> this.changelist_id and earlier.shelved)
  and earlier.state = 'succeeded' and earlier.skipped_by is null and earlier.finished_at <= this.created_at
order by (earlier.changelist_id = this.changelist_id) desc, earlier.review_version desc
limit 1;

-- name: SchemaVersion :one
select criticizer.schema_version()::bigint;

-- name: AppendAudit :exec
insert into criticizer.audit_log (actor, action, object, detail)
values (coalesce(nullif(@actor::text, ''), current_user), @action, @object, @detail);
