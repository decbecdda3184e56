-- name: SaveAdmission :exec
-- An attempt that fetches the change again may need other slots.
insert into criticizer.admissions (changelist_id, review_version, patterns, by_bot)
values (@changelist_id, @review_version, @patterns, @by_bot)
on conflict (changelist_id, review_version) do update
set patterns = @patterns, by_bot = @by_bot, waits_for = null, back_by = null;

-- name: ShareUnfinishedJob :one
-- Keeps the job from ending, and so from releasing its slots, until the transaction ends.
select changelist_id, review_version from criticizer.jobs
where idempotency_key = @idempotency_key and state = 'in_progress'
for share;

-- name: LockSlots :exec
-- Serializes acquisitions of the slots of a review until the transaction ends. The order
-- is the same in every transaction: no deadlock.
select pg_advisory_xact_lock(hashtextextended('criticizer slots ' || needed.pattern, 0))
from (select pattern from criticizer.slots
      where changelist_id = @changelist_id and review_version = @review_version order by pattern offset 0) needed;

-- name: LockPattern :exec
select pg_advisory_xact_lock(hashtextextended('criticizer slots ' || @pattern::text, 0));

-- name: SlotState :one
select held::boolean, awaited::boolean, free::boolean from criticizer.slot_state(@changelist_id, @review_version, @limits::jsonb);

-- name: SetSlots :exec
update criticizer.slots set state = @state, given_at = case when @given::boolean then now() end
where changelist_id = @changelist_id and review_version = @review_version and (state <> @state or given_at is not null);

-- name: NextInLine :many
select idempotency_key::text, run_id::text from criticizer.slots_next(@pattern, @limits::jsonb);

-- name: PatternsOfReview :many
select s.pattern from criticizer.slots s
join criticizer.jobs j using (changelist_id, review_version)
where j.idempotency_key = @idempotency_key;

-- name: AwaitedPatterns :many
-- Reads one row per pattern.
with recursive awaited as (
    (select pattern from criticizer.slots where state = 'awaited' order by pattern limit 1)
    union all
    select (select s.pattern from criticizer.slots s where s.state = 'awaited' and s.pattern > awaited.pattern order by s.pattern limit 1)
    from awaited where awaited.pattern is not null)
select pattern::text from awaited where pattern is not null;

-- name: UnnoticedSlots :many
-- The reviews that were given slots and have not noticed for a while.
select distinct j.idempotency_key, j.run_id
from criticizer.slots s
join criticizer.jobs j using (changelist_id, review_version)
where s.given_at < now() - interval '5 seconds';

-- name: WaitsOfChangelist :many
select review_version, array_agg(pattern order by pattern)::text[] as waits_for, min(asked_at)::timestamptz as asked_at
from criticizer.slots
where changelist_id = @changelist_id and state = 'awaited'
group by review_version;

-- name: SlotUse :many
-- How many reviews hold a slot of each pattern, how many wait for one and for how
-- long, and which review is next.
select s.pattern,
       (count(*) filter (where s.state = 'held'))::integer as taken,
       (count(*) filter (where s.state = 'awaited'))::integer as awaited,
       floor(coalesce(extract(epoch from now() - min(s.asked_at) filter (where s.state = 'awaited')), 0))::bigint as longest_seconds,
       coalesce((select first.changelist_id || ' v' || first.review_version from criticizer.slots first
                 where first.pattern = s.pattern and first.state = 'awaited'
                 order by first.by_bot, first.asked_at, first.changelist_id, first.review_version limit 1), '')::text as next
from criticizer.slots s
where s.state in ('awaited', 'held')
group by s.pattern
order by s.pattern;
