-- name: SaveAdmission :exec
-- An attempt that fetches the change again may need other slots.
insert into criticizer.admissions (changelist_id, review_version, patterns, by_bot)
values (@changelist_id, @review_version, @patterns, @by_bot)
on conflict (changelist_id, review_version) do update
set patterns = @patterns, by_bot = @by_bot, waits_for = null, back_by = null;

-- name: LockAdmissions :exec
-- Serializes acquisitions until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('criticizer admissions', 0));

-- name: Admission :one
select a.changelist_id, a.review_version, j.run_id, coalesce(a.admitted_run = j.run_id, false)::boolean as admitted
from criticizer.admissions a
join criticizer.jobs j using (changelist_id, review_version)
where j.idempotency_key = @idempotency_key;

-- name: SlotsTaken :many
-- For each pattern of a review, how many slots other reviews hold or will acquire
-- first. Changes of people precede those of bots, then the earlier request
-- precedes. So a review that needs several slots gets each in its turn.
select wanted.pattern::text as pattern, count(*)::integer as taken
from criticizer.admissions this
cross join unnest(this.patterns) as wanted (pattern)
join criticizer.admissions other on wanted.pattern = any (other.patterns)
join criticizer.jobs j on j.changelist_id = other.changelist_id and j.review_version = other.review_version
where this.changelist_id = @changelist_id and this.review_version = @review_version
  and j.state in ('in_progress', 'retryable_failed')
  and (other.admitted_run = j.run_id
       or other.back_by > now()
          and (other.by_bot, other.asked_at, other.changelist_id, other.review_version)
            < (this.by_bot, this.asked_at, this.changelist_id, this.review_version))
  and (other.changelist_id, other.review_version) <> (this.changelist_id, this.review_version)
group by wanted.pattern;

-- name: AcquireSlots :exec
-- Older workers read checked_at and ended.
update criticizer.admissions
set admitted_run = @run_id::text, checked_at = now(), ended = false, waits_for = null, back_by = null
where changelist_id = @changelist_id and review_version = @review_version;

-- name: AwaitSlots :exec
update criticizer.admissions
set waits_for = @waits_for::text[], back_by = now() + @back_in::interval,
    admitted_run = null, checked_at = null, ended = false
where changelist_id = @changelist_id and review_version = @review_version;

-- name: WaitsOfChangelist :many
select a.review_version, a.waits_for, a.asked_at
from criticizer.admissions a
join criticizer.jobs j using (changelist_id, review_version)
where a.changelist_id = @changelist_id and a.waits_for is not null and j.state in ('in_progress', 'retryable_failed');

-- name: SlotUse :many
-- How many reviews hold a slot of each pattern, how many wait for one and for how
-- long, and which review is next.
select slot.pattern::text as pattern,
       (count(*) filter (where a.admitted_run is not null))::integer as taken,
       (count(*) filter (where a.admitted_run is null))::integer as awaited,
       floor(coalesce(extract(epoch from now() - min(a.asked_at) filter (where a.admitted_run is null)), 0))::bigint as longest_seconds,
       coalesce((array_agg(a.changelist_id || ' v' || a.review_version order by a.by_bot, a.asked_at, a.changelist_id, a.review_version)
                 filter (where a.admitted_run is null))[1], '')::text as next
from criticizer.admissions a
join criticizer.jobs j using (changelist_id, review_version)
cross join unnest(case when a.admitted_run is null then a.waits_for else a.patterns end) as slot (pattern)
where j.state in ('in_progress', 'retryable_failed')
  and (a.admitted_run = j.run_id or a.back_by > now())
group by slot.pattern
order by slot.pattern;
