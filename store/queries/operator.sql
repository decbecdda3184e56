-- name: DeadLetters :many
-- An argument that is empty, zero or false does not narrow the search.
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

-- name: ReplaysOf :many
select r.dead_letter_id, r.new_run_id, r.explained, r.started_at,
       coalesce(q.who, r.who)::text as who, coalesce(q.evidence, r.reason)::text as reason, coalesce(q.full_restart, false)::boolean as full_restart
from criticizer.replays r
left join criticizer.replay_requests q on q.id = r.request_id
where r.dead_letter_id = any (@ids::bigint[])
order by r.id;

-- name: AuditOf :many
select at, actor, login, action, detail from criticizer.audit_log where object = @object order by id;

-- name: PageOf :one
select reason, attempts, created_at, sent_at from criticizer.pages where dead_letter_id = @dead_letter_id;

-- name: TryLockDeadLetter :one
-- Held by the session, not the transaction: the reset is between two.
select pg_try_advisory_lock(hashtextextended('criticizer dead letter ' || @id::bigint, 0))::boolean as locked;

-- name: UnlockDeadLetter :exec
select pg_advisory_unlock(hashtextextended('criticizer dead letter ' || @id::bigint, 0));

-- name: DeadLetterState :one
select state from criticizer.dead_letters where id = @id for update;

-- name: InterruptedReplay :one
-- The request of which is not known whether its reset has happened.
select * from criticizer.replay_requests q
where q.dead_letter_id = @dead_letter_id and q.new_run_id is null and q.withdrawn_at is null
  and not exists (select from criticizer.replays r where r.request_id = q.id)
order by q.id desc
limit 1;

-- name: InsertReplayRequest :one
insert into criticizer.replay_requests (dead_letter_id, who, evidence, full_restart)
values (@dead_letter_id, @who, @evidence, @full_restart)
returning *;

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

-- name: ReopenReplayedDeadLetter :execrows
-- Not one whose reset may be about to happen.
update criticizer.dead_letters l set state = 'open'
where l.id = @id and l.state = 'replaying'
  and not exists (
    select from criticizer.replay_requests q
    where q.dead_letter_id = l.id and q.new_run_id is null and q.withdrawn_at is null
      and not exists (select from criticizer.replays r where r.request_id = q.id));

-- name: ResolveDeadLetter :execrows
update criticizer.dead_letters
set state = 'resolved', resolved_at = now(), resolved_by = @who::text, resolution = @evidence::text
where id = @id and state <> 'resolved';

-- name: JobsOfChangelist :many
select * from criticizer.jobs where changelist_id = @changelist_id order by review_version;

-- name: DeliveriesOfChangelist :many
select * from criticizer.deliveries where changelist_id = @changelist_id order by review_version, recipient collate "C";

-- name: RecentJobs :many
-- The newest first, with the newest dead letter of those that did not succeed. An
-- argument that is empty or zero does not narrow the search. Jobs have their ids in
-- the order they begin, and the key's index ends the search at the limit. The stage of
-- one that is not over is told by what the stages before it have left.
with newest as (
    select id from criticizer.jobs
    where (@state::text = '' or state = @state)
      and (@outcome::text = '' or outcome = @outcome)
      and (@since::interval = interval '0' or created_at > now() - @since::interval)
    order by id desc
    limit @limit_to::bigint)
select sqlc.embed(j), coalesce(l.id, 0)::bigint as letter, coalesce(l.stage, '')::text as letter_stage,
       coalesce(l.error_class, '')::text as letter_class, coalesce(l.state, '')::text as letter_state,
       exists (select from criticizer.admissions a
               where a.changelist_id = j.changelist_id and a.review_version = j.review_version
                 and a.waits_for is not null and j.state in ('in_progress', 'retryable_failed'))::boolean as awaits_slot,
       case when j.state not in ('in_progress', 'retryable_failed') then ''
            when exists (select from criticizer.deliveries d
                         where d.changelist_id = j.changelist_id and d.review_version = j.review_version)
              or exists (select from criticizer.review_records r
                         where r.changelist_id = j.changelist_id and r.review_version = j.review_version and r.record is not null) then 'notify'
            when exists (select from criticizer.recipients r
                         where r.changelist_id = j.changelist_id and r.review_version = j.review_version) then 'llm'
            else 'fetch' end::text as stage
from newest
join criticizer.jobs j on j.id = newest.id
left join criticizer.dead_letters l on j.state <> 'succeeded' and l.id = (
    select max(d.id) from criticizer.dead_letters d where d.workflow_id = j.idempotency_key)
order by j.id desc;
