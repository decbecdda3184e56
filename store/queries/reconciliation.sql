-- name: DueDeliveries :many
-- The rows that reconciliation checks: rows whose last attempt has an unknown
-- result, unsent rows of finished reviews, and sent rows. An attempt younger than
-- grace may be in flight. A sent row is checked when it is old enough to have
-- bounced, then each time its age has grown fourfold, at least once a day because
-- servers bounce after five days. When it is older than watch, it is checked once a week if no
-- source has had evidence of it, until its address is forgotten. It is not checked while its
-- review runs, which has counted the recipient as notified.
select sqlc.embed(d), j.state as job_state, j.report, j.only_new, now()::timestamptz as now
from criticizer.deliveries d
join criticizer.jobs j using (changelist_id, review_version)
where (d.status in ('pending', 'held') and (d.begun or d.notification_id is not null)
       and (d.last_attempt_at is null or d.last_attempt_at <= now() - @grace::interval))
   or (d.status = 'pending' and not d.begun and d.notification_id is null and j.state = 'succeeded')
   or (d.status = 'sent' and j.state <> 'in_progress' and d.recipient not like 'forgotten:%'
       and (d.confirmed_at is null or d.notified_at > now() - @watch::interval)
       and now() - greatest(d.checked_at, d.notified_at)
           >= greatest(@bounced::interval, least(
               case when d.notified_at > now() - @watch::interval or d.checked_at is null then interval '1 day' else interval '7 days' end,
               3 * (greatest(d.checked_at, d.notified_at) - d.notified_at))))
order by d.checked_at nulls first, d.id
limit @max_rows;

-- name: RecordCheck :exec
update criticizer.deliveries
set checked_at = now(), confirmed_at = case when @confirmed::boolean then coalesce(confirmed_at, now()) else confirmed_at end,
    missing_at = case when not @confirmed then missing_at end
where id = @id;

-- name: RecordMissing :exec
update criticizer.deliveries set missing_at = coalesce(missing_at, now()) where id = any(@ids::bigint[]);

-- name: CountMissing :one
-- Rows that were requeued count until a source has their mails.
select count(*)::integer from criticizer.deliveries where missing_at is not null;

-- name: FailDeliveryIfUnchanged :execrows
-- A bounce may arrive long after the mail was sent.
update criticizer.deliveries d
set status = 'failed', error_class = @error_class::text, notified_at = null, begun = false, checked_at = now(), missing_at = null,
    bounced_at = case when @bounced::boolean then now() else bounced_at end
where d.id = @id and d.status = @status and d.attempts = @attempts
  and (d.status in ('pending', 'held') or (d.status = 'sent' and not exists (
    select from criticizer.jobs j
    where j.changelist_id = d.changelist_id and j.review_version = d.review_version and j.state = 'in_progress')));

-- name: RequeueUnprovenDelivery :one
-- Clears the markers of a row that was marked sent without evidence
-- (notification 8.2). begun is set, so that the evidence sources are queried
-- again before the row is sent. A row that is unproven a second time, or that no source can
-- prove, is held for an operator.
update criticizer.deliveries d
set status = case when unproven = 0 and not @hold::boolean then 'pending' else 'held' end,
    notification_id = null, notified_at = null, evidence = null,
    begun = attempts > 0, unproven = unproven + 1, checked_at = now()
where d.id = @id and d.status = 'sent' and d.attempts = @attempts and d.notified_at = @notified_at and d.confirmed_at is null
  and not exists (
    select from criticizer.jobs j
    where j.changelist_id = d.changelist_id and j.review_version = d.review_version and j.state = 'in_progress')
returning d.status;

-- name: ReleaseHeldDelivery :execrows
-- begun is kept: the evidence sources are queried again before the row is sent.
update criticizer.deliveries
set status = 'pending', checked_at = now()
where id = @id and status = 'held' and attempts = @attempts and unproven < 2;
