-- name: InsertDeadLetter :execrows
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
on conflict (workflow_id, run_id) do nothing;

-- name: FailReplayedDeadLetters :exec
update criticizer.dead_letters
set state = 'failed_again'
where workflow_id = @workflow_id and run_id <> @run_id and state = 'replaying';

-- name: DeadLetterID :one
select id from criticizer.dead_letters where workflow_id = @workflow_id and run_id = @run_id;

-- name: InsertReplay :execrows
insert into criticizer.replays (dead_letter_id, new_run_id, who, reason)
values (@dead_letter_id, @new_run_id, @who, @reason)
on conflict (dead_letter_id, new_run_id) do nothing;

-- name: MarkReplaying :exec
update criticizer.dead_letters set state = 'replaying' where id = @id and state in ('open', 'failed_again');

-- name: ReplayOpenDeadLetters :exec
-- A full restart names no dead run and nobody who asked: it replays what is
-- open, unattested.
with replayed as (
    update criticizer.dead_letters set state = 'replaying'
    where workflow_id = @workflow_id and state = 'open'
    returning id)
insert into criticizer.replays (dead_letter_id, new_run_id, who, reason)
select replayed.id, @new_run_id, '', '' from replayed
on conflict (dead_letter_id, new_run_id) do nothing;

-- name: ResolveDeadLetters :exec
update criticizer.dead_letters
set state = 'resolved', resolved_at = now()
where workflow_id = @workflow_id and state <> 'resolved';
