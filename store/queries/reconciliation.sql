-- name: DueDeliveries :many
-- What reconciliation looks at: rows whose last attempt's end is unknown, rows
-- of finished reviews that are unsent, and rows that were sent. An attempt
-- younger than grace may be under way. A sent row is first looked at when it is
-- old enough to have bounced, and then when its age has grown fourfold, until watch
-- is over; not while its review runs, which has counted it among the told.
select sqlc.embed(d), j.state as job_state, j.report, now()::timestamptz as now
from criticizer.deliveries d
join criticizer.jobs j using (changelist_id, review_version)
where (d.status in ('pending', 'held') and (d.begun or d.notification_id is not null)
       and (d.last_attempt_at is null or d.last_attempt_at <= now() - @grace::interval))
   or (d.status = 'pending' and not d.begun and d.notification_id is null and j.state = 'succeeded')
   or (d.status = 'sent' and j.state <> 'in_progress' and d.notified_at > now() - @watch::interval
       and now() - greatest(d.checked_at, d.notified_at)
           >= greatest(@bounced::interval, 3 * (greatest(d.checked_at, d.notified_at) - d.notified_at)))
order by (d.status = 'sent'), d.checked_at nulls first, d.id
limit @max_rows;

-- name: NoteChecked :exec
update criticizer.deliveries
set checked_at = now(), confirmed_at = case when @confirmed::boolean then coalesce(confirmed_at, now()) else confirmed_at end
where id = @id;

-- name: FailDeliveryIfUnchanged :execrows
-- A bounce may come long after the mail was sent.
update criticizer.deliveries d
set status = 'failed', failure_class = @failure_class::text, notified_at = null, begun = false, checked_at = now()
where d.id = @id and d.status = @status and d.attempts = @attempts
  and (d.status in ('pending', 'held') or (d.status = 'sent' and not exists (
    select from criticizer.jobs j
    where j.changelist_id = d.changelist_id and j.review_version = d.review_version and j.state = 'in_progress')));

-- name: RequeueUnprovenDelivery :one
-- Clears the markers of a row that was marked sent without evidence
-- (review-notification 8.2). Begun, so that it is looked up again before it is
-- sent; and only once: what is unproven again waits for an operator.
update criticizer.deliveries d
set status = case when unproven = 0 then 'pending' else 'held' end,
    notification_id = null, notified_at = null, evidence = null,
    begun = attempts > 0, unproven = unproven + 1, checked_at = now()
where d.id = @id and d.status = 'sent' and d.attempts = @attempts and d.notified_at = @notified_at and d.confirmed_at is null
  and not exists (
    select from criticizer.jobs j
    where j.changelist_id = d.changelist_id and j.review_version = d.review_version and j.state = 'in_progress')
returning d.status;

-- name: ReleaseHeldDelivery :execrows
-- Begun stays: it is looked up again before it is sent.
update criticizer.deliveries
set status = 'pending', checked_at = now()
where id = @id and status = 'held' and attempts = @attempts and unproven < 2;
