-- name: LockChangelist :exec
-- Serializes the decisions about one changelist until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('criticizer changelist ' || @changelist_id::bigint, 0));

-- name: DecidingJob :one
-- The row that decides about a request: the request's own, else the row of the
-- same version under another key, else the highest version above it. Reviews of
-- the changelist's shelf decide only about their own requests.
select *
from criticizer.jobs
where idempotency_key = @idempotency_key
   or (changelist_id = @changelist_id and not shelved and (review_version >= @review_version or asked_version = @review_version))
order by (idempotency_key = @idempotency_key) desc, (review_version = @review_version or asked_version is not distinct from @review_version) desc, review_version desc
limit 1
for update;

-- name: InsertJob :one
-- Inserts the version asked for, or the next one if reviews of the shelf have
-- taken it.
insert into criticizer.jobs (idempotency_key, changelist_id, review_version, asked_version, server_id, run_id, only_new)
select @idempotency_key, @changelist_id, greatest(@review_version::integer, top + 1),
       case when top >= @review_version::integer then @review_version::integer end, @server_id, @run_id, @only_new
from (select coalesce(max(review_version), 0) as top from criticizer.jobs where changelist_id = @changelist_id) as known
returning *;

-- name: ReopenUnfinishedJob :one
update criticizer.jobs
set state = 'in_progress', run_id = @run_id, updated_at = now(), finished_at = null, closed_how = null
where idempotency_key = @idempotency_key and state <> 'succeeded'
returning *;

-- name: FinishJobIfAllNotified :one
-- The condition and the change are one statement (notification 6.5). The
-- job may have any state but succeeded: a run that was terminated may be reset and
-- then finish.
select criticizer.finish_job(@idempotency_key::text, @report::text)::boolean;

-- name: SkipJob :one
select criticizer.skip_job(@idempotency_key::text, @skipped_by::text)::boolean;

-- name: CancelJobIfRunning :exec
update criticizer.jobs
set state = 'canceled', updated_at = now(), finished_at = now(), closed_how = @how::text
where idempotency_key = @idempotency_key and state = 'in_progress';

-- name: CancelReplacedJob :one
update criticizer.jobs
set state = 'canceled', run_id = @run_id, updated_at = now(), finished_at = now(), closed_how = 'superseded: a newer version of the review has succeeded'
where idempotency_key = @idempotency_key and state <> 'succeeded'
returning *;

-- name: DeadLetterUnfinishedJob :exec
update criticizer.jobs
set state = 'retryable_failed', updated_at = now(), finished_at = now()
where idempotency_key = @idempotency_key and state <> 'succeeded';

-- name: HasNewerReview :one
-- Whether a higher version of the changelist has succeeded. A shelf does not replace a
-- submitted change.
select exists (
    select from criticizer.jobs newer
    join criticizer.jobs this on this.changelist_id = newer.changelist_id and this.review_version < newer.review_version
    where this.idempotency_key = @idempotency_key and newer.state = 'succeeded' and (this.shelved or not newer.shelved))::boolean;

-- name: ClaimWatch :execrows
-- Of all workers, one claims each watch.
update criticizer.watch set due_at = now() + @every::interval where due_at <= now();

-- name: ClaimUnfinishedJobs :many
-- Some reviews that are unfinished or replayed and were not looked at for unchecked_for,
-- those that were not looked at for longest first. The cost does not depend on how many
-- reviews are unfinished.
with due as (
    (select j.id from criticizer.jobs j
     where j.state = 'in_progress' and coalesce(j.checked_at, j.updated_at) < now() - @unchecked_for::interval
     order by coalesce(j.checked_at, j.updated_at) limit @at_most::bigint)
    union
    (select j.id from criticizer.jobs j
     join criticizer.dead_letters l on l.workflow_id = j.idempotency_key
     where l.state = 'replaying' and coalesce(j.checked_at, j.updated_at) < now() - @unchecked_for::interval
     order by coalesce(j.checked_at, j.updated_at) limit @at_most::bigint))
update criticizer.jobs j set checked_at = now()
from due where j.id = due.id
returning j.idempotency_key, j.run_id;

-- name: CloseEndedJob :one
-- Closes the job of a run that has ended without doing so. It is dead-lettered if an
-- operator still has a letter to act on.
update criticizer.jobs j
set state = now_is.state, updated_at = now(), finished_at = now(), closed_how = @how::text
from (select case when exists (select from criticizer.dead_letters l where l.workflow_id = @idempotency_key and l.state <> 'resolved')
                  then 'retryable_failed' else 'canceled' end as state) now_is
where j.idempotency_key = @idempotency_key and j.run_id = @run_id and j.state not in ('succeeded', 'retryable_failed')
  and j.state <> now_is.state
returning j.state;

-- name: Job :one
select * from criticizer.jobs where idempotency_key = @idempotency_key;

-- name: LockJob :one
select * from criticizer.jobs where idempotency_key = @idempotency_key for update;

-- name: JobsOfChangelist :many
-- stand_in is set if a simulation made the report.
select sqlc.embed(j), coalesce(o.stand_in, false)::boolean as stand_in, coalesce(o.tally, '{}')::jsonb as tally
from criticizer.jobs j
left join criticizer.outcomes o using (changelist_id, review_version, report)
where j.changelist_id = @changelist_id
order by j.review_version;

-- name: RecentJobs :many
-- The newest jobs first, with the newest dead letter of each that did not succeed.
-- An empty or zero argument selects all. IDs ascend in the order in which jobs
-- begin, so the scan of the primary key ends at the limit. The stage of an
-- unfinished job follows from the rows that the earlier stages wrote.
with newest as (
    select id from criticizer.jobs
    where (@state::text = '' or state = @state)
      and (@outcome::text = '' or outcome = @outcome)
      and (@since::interval = interval '0' or created_at > now() - @since::interval)
    order by id desc
    limit @limit_to::bigint)
select sqlc.embed(j), coalesce(l.id, 0)::bigint as letter, coalesce(l.stage, '')::text as letter_stage,
       coalesce(l.error_class, '')::text as letter_class, coalesce(l.state, '')::text as letter_state,
       case when j.state <> 'in_progress' then ''
            when exists (select from criticizer.deliveries d
                         where d.changelist_id = j.changelist_id and d.review_version = j.review_version)
              or exists (select from criticizer.outcomes made
                         where made.changelist_id = j.changelist_id and made.review_version = j.review_version) then 'notify'
            when exists (select from criticizer.recipients r
                         where r.changelist_id = j.changelist_id and r.review_version = j.review_version) then 'llm'
            else 'fetch' end::text as stage,
       coalesce(o.stand_in, false)::boolean as stand_in
from newest
join criticizer.jobs j on j.id = newest.id
left join criticizer.outcomes o on o.changelist_id = j.changelist_id and o.review_version = j.review_version and o.report = j.report
left join criticizer.dead_letters l on j.state <> 'succeeded' and l.id = (
    select max(d.id) from criticizer.dead_letters d where d.workflow_id = j.idempotency_key)
order by j.id desc;

-- name: EarlierReport :one
-- The report of the highest version that had succeeded when this one was opened,
-- else of the shelf that the changelist was under another number. The answer is
-- the same for every attempt of the notify stage. Skipped reviews have notified no
-- recipient and do not count.
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

-- name: ReportOfReview :one
select coalesce(report, '')::text from criticizer.jobs where changelist_id = @changelist_id and review_version = @review_version;

-- name: ReportIsStored :one
-- Whether a review has a report that has not expired.
select exists (
    select from criticizer.jobs j join report.artifacts a on a.id = split_part(j.report, ':', 2)
    where j.changelist_id = @changelist_id and j.review_version = @review_version and a.expires_at > now())::boolean;

-- name: CreditOfChangelists :many
-- What all reviews of each submitted changelist say. One of them has to have read it, and the
-- findings of each have to be there: a purge deletes them. A finding that is accepted to be
-- wrong in one version is so in all. An adopted report has its findings at the review of the
-- shelf.
with reviews as (
    select j.changelist_id, j.findings, coalesce(j.outcome in ('clean', 'findings'), false) as is_read,
           coalesce(o.of_changelist, j.changelist_id) as of_changelist, coalesce(o.of_version, j.review_version) as of_version
    from criticizer.jobs j
    left join criticizer.outcomes o using (changelist_id, review_version, report)
    where j.changelist_id = any (@changelists::bigint[]) and not j.shelved),
credited as (
    select changelist_id, bool_or(is_read) and bool_and(findings <= (
               select count(*) from criticizer.findings f
               where f.changelist_id = reviews.of_changelist and f.review_version = reviews.of_version)) as is_read
    from reviews group by changelist_id)
select distinct on (r.changelist_id, fingerprint)
       r.changelist_id, c.is_read::boolean as is_read, r.of_changelist::bigint as of_changelist, r.of_version::integer as of_version,
       coalesce(f.fingerprint, '')::text as fingerprint, coalesce(f.place_fingerprints, '{}')::text[] as place_fingerprints, coalesce(f.path, '')::text as path,
       coalesce(f.category, '')::text as category, coalesce(f.severity, '')::text as severity, coalesce(f.verbatim, false)::boolean as verbatim,
       (bool_or(f.accepted_at is not null) over (partition by r.changelist_id, f.fingerprint))::boolean as accepted
from reviews r
join credited c using (changelist_id)
left join criticizer.findings f on f.changelist_id = r.of_changelist and f.review_version = r.of_version
order by r.changelist_id, fingerprint, r.of_version desc;
