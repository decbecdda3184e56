-- name: InsertDeadLetter :one
-- A letter is escalated if it ends a replay with the error class of the replayed
-- letter and the class is not retryable (processing 8.5).
insert into criticizer.dead_letters (
    workflow_id, run_id, changelist_id, review_version, stage, error_class, payload,
    first_failure_at, last_failure_at, escalated)
values (
    @workflow_id, @run_id, @changelist_id, @review_version, @stage, @error_class, @payload,
    @first_failure_at, @last_failure_at,
    not @retryable::boolean and exists (
        select from criticizer.dead_letters earlier
        where earlier.workflow_id = @workflow_id and earlier.state = 'replaying' and earlier.error_class = @error_class))
on conflict (workflow_id, run_id) do nothing
returning id, escalated;

-- name: IsEscalated :one
select escalated from criticizer.dead_letters where workflow_id = @workflow_id and run_id = @run_id;

-- name: FailReplayedDeadLetters :exec
update criticizer.dead_letters
set state = 'failed_again'
where workflow_id = @workflow_id and run_id <> @run_id and state = 'replaying';

-- name: DeadLetterState :one
select state from criticizer.dead_letters where id = @id for update;

-- name: DeadLetters :many
-- An empty, zero or false argument selects all.
select l.id, l.workflow_id, l.run_id, l.changelist_id, l.review_version, l.payload, l.state, l.escalated,
       exists (select from criticizer.replays r where r.dead_letter_id = l.id and not r.explained)::boolean as unexplained,
       (l.state = 'replaying' and exists (
           select from criticizer.replay_requests q
           where q.dead_letter_id = l.id and q.new_run_id is null and q.withdrawn_at is null
             and not exists (select from criticizer.replays r where r.request_id = q.id)))::boolean as interrupted,
       l.recorded_at, l.resolved_at, l.resolved_by, l.resolution
from criticizer.dead_letters l
where (cardinality(@ids::bigint[]) = 0 or l.id = any (@ids::bigint[]))
  and (cardinality(@states::text[]) = 0 or l.state = any (@states::text[]))
  and (@changelist::bigint = 0 or l.changelist_id = @changelist)
  and (@error_class::text = '' or l.error_class = @error_class)
  and (@stage::text = '' or l.stage = @stage)
  and l.recorded_at <= now() - @older_than::interval
  and (not @escalated::boolean or l.escalated)
  and (not @unexplained::boolean or exists (select from criticizer.replays r where r.dead_letter_id = l.id and not r.explained))
order by l.id;

-- name: ResolveDeadLetters :exec
-- Records the person and the reason of the last replay.
with final as (
    select coalesce(q.who, r.who) as who, coalesce(q.reason, r.reason) as reason
    from criticizer.replays r
    join criticizer.dead_letters replayed on replayed.id = r.dead_letter_id
    left join criticizer.replay_requests q on q.id = r.request_id
    where replayed.workflow_id = @workflow_id
    order by r.id desc
    limit 1)
update criticizer.dead_letters l
set state = 'resolved', resolved_at = now(),
    resolved_by = coalesce((select who from final), ''), resolution = coalesce((select reason from final), '')
where l.workflow_id = @workflow_id and l.state <> 'resolved';

-- name: ResolveDeadLetter :execrows
update criticizer.dead_letters
set state = 'resolved', resolved_at = now(), resolved_by = @who::text, resolution = @reason::text
where id = @id and state <> 'resolved';

-- name: TryLockDeadLetter :one
-- The session holds the lock, not a transaction: the reset happens between two
-- transactions.
select pg_try_advisory_lock(hashtextextended('criticizer dead letter ' || @id::bigint, 0))::boolean as locked;

-- name: UnlockDeadLetter :exec
select pg_advisory_unlock(hashtextextended('criticizer dead letter ' || @id::bigint, 0));
