-- name: Figures :many
select name::text as name, labels::jsonb as labels, figure::double precision as figure from criticizer.figures
union all
-- By pattern, as the configuration has it.
select case when a.admitted_run = j.run_id then 'criticizer_slots_taken' else 'criticizer_slots_awaited' end,
       jsonb_build_object('path', slot.pattern), count(*)
from criticizer.admissions a
join criticizer.jobs j using (changelist_id, review_version)
cross join unnest(case when a.admitted_run = j.run_id then a.patterns else a.waits_for end) as slot (pattern)
where j.state in ('in_progress', 'retryable_failed')
  and (a.admitted_run = j.run_id and not a.ended or a.back_by > now())
group by 1, 2;

-- name: RewriteFigures :many
-- Of the queue of rewrites, for the role that works it.
select 'criticizer_rewrite_jobs'::text as name, jsonb_build_object('status', status)::jsonb as labels, count(*)::double precision as figure
from criticizer.rewrite_jobs group by status
union all
select 'criticizer_rewrite_oldest_seconds', '{}'::jsonb,
       coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::double precision
from criticizer.rewrite_jobs where status = 'queued' and coalesce(not_before_at, created_at) <= now();
