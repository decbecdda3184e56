-- name: InsertDeadLetter :one
-- Escalated when a replay failed again for the same reason that no retry cures
-- (criticizer-processing 8.5).
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

-- name: DeadLetterID :one
select id from criticizer.dead_letters where workflow_id = @workflow_id and run_id = @run_id;

-- name: InsertReplay :execrows
-- Explained by the request that gave the same evidence and has no other run.
insert into criticizer.replays (dead_letter_id, new_run_id, who, reason, request_id)
values (@dead_letter_id, @new_run_id, @who, @reason, (
    select q.id from criticizer.replay_requests q
    where q.dead_letter_id = @dead_letter_id and q.evidence = @reason and coalesce(q.new_run_id, @new_run_id) = @new_run_id
    order by q.id desc
    limit 1))
on conflict (dead_letter_id, new_run_id) do nothing;

-- name: MarkReplaying :exec
update criticizer.dead_letters set state = 'replaying' where id = @id and state in ('open', 'failed_again');

-- name: ReplayOpenDeadLetters :exec
-- A full restart names no dead run and nobody who asked: it replays what is
-- open, and what is being replayed it takes over. It is unexplained until an
-- operator's request claims it.
with replayed as (
    update criticizer.dead_letters set state = 'replaying'
    where workflow_id = @workflow_id and state in ('open', 'replaying') and run_id <> @new_run_id
    returning id)
insert into criticizer.replays (dead_letter_id, new_run_id, who, reason)
select replayed.id, @new_run_id, '', '' from replayed
on conflict (dead_letter_id, new_run_id) do nothing;

-- name: ResolveDeadLetters :exec
-- By whoever replayed last, and for the reason they gave.
with final as (
    select coalesce(q.who, r.who) as who, coalesce(q.evidence, r.reason) as reason
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
