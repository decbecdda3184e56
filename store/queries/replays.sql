-- name: InsertReplay :exec
-- The replay is explained by a request with the same reason, unless the request
-- has another run.
insert into criticizer.replays (dead_letter_id, new_run_id, who, reason, request_id)
values (@dead_letter_id, @new_run_id, @who, @reason, (
    select q.id from criticizer.replay_requests q
    where q.dead_letter_id = @dead_letter_id and q.reason = @reason and coalesce(q.new_run_id, @new_run_id) = @new_run_id
    order by q.id desc
    limit 1))
on conflict (dead_letter_id, new_run_id) do nothing;

-- name: MarkReplaying :exec
update criticizer.dead_letters set state = 'replaying' where id = @id and state in ('open', 'failed_again');

-- name: ReplayDeadLetters :many
-- The letters that a reset replays: that of the run that it copies, and the unresolved
-- ones of the review. A resolved letter stays so; one that has failed again is replayed
-- if it is of that run.
with replayed as (
    update criticizer.dead_letters l set state = 'replaying'
    where l.workflow_id = @workflow_id and l.run_id <> @new_run_id
      and (l.state in ('open', 'replaying') or l.state = 'failed_again' and l.run_id = @former_run_id)
    returning l.id)
select replayed.id from replayed
union
select former.id from criticizer.dead_letters former where former.workflow_id = @workflow_id and former.run_id = @former_run_id;

-- name: Replays :many
-- The replay records of a letter, oldest first.
select r.dead_letter_id, r.new_run_id, coalesce(q.who, r.who)::text as who, coalesce(q.reason, r.reason)::text as reason,
       r.explained, coalesce(r.acknowledged_by, '')::text as acknowledged_by, coalesce(q.full_restart, false)::boolean as "full", r.started_at
from criticizer.replays r
left join criticizer.replay_requests q on q.id = r.request_id
where r.dead_letter_id = @dead_letter_id
order by r.id;

-- name: InterruptedReplay :one
-- The request whose reset has an unknown result.
select q.id, q.dead_letter_id, q.who, q.reason, q.full_restart as "full"
from criticizer.replay_requests q
where q.dead_letter_id = @dead_letter_id and q.new_run_id is null and q.withdrawn_at is null
  and not exists (select from criticizer.replays r where r.request_id = q.id)
order by q.id desc
limit 1;

-- name: InsertReplayRequest :one
insert into criticizer.replay_requests (dead_letter_id, who, reason, full_restart)
values (@dead_letter_id, @who, @reason, @full_restart)
returning id;

-- name: CloseReplayRequest :execrows
update criticizer.replay_requests set new_run_id = @new_run_id::text
where id = @id and new_run_id is null and withdrawn_at is null;

-- name: ExplainReplay :exec
insert into criticizer.replays (dead_letter_id, new_run_id, who, reason, request_id)
values (@dead_letter_id, @new_run_id, @who, @reason, @request_id::bigint)
on conflict (dead_letter_id, new_run_id) do update set request_id = excluded.request_id
where replays.request_id is null;

-- name: WithdrawReplayRequests :exec
update criticizer.replay_requests set withdrawn_at = now()
where dead_letter_id = @dead_letter_id and new_run_id is null and withdrawn_at is null;

-- name: ReopenDeadLetterIfNotReplayed :exec
update criticizer.dead_letters l set state = 'open'
where l.id = @id and l.state = 'replaying'
  and not exists (select from criticizer.replays r where r.dead_letter_id = l.id);

-- name: ReopenReplayedDeadLetters :many
-- Except letters whose reset may be about to happen.
update criticizer.dead_letters l set state = 'open'
where l.workflow_id = @workflow_id and l.state = 'replaying'
  and not exists (
    select from criticizer.replay_requests q
    where q.dead_letter_id = l.id and q.new_run_id is null and q.withdrawn_at is null
      and not exists (select from criticizer.replays r where r.request_id = q.id))
returning l.id;

-- name: AcknowledgeReplays :execrows
update criticizer.replays set acknowledged_by = @who::text, acknowledged_at = now() where dead_letter_id = @dead_letter_id and not explained;
