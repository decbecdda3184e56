-- name: DeleteRecipients :exec
delete from criticizer.recipients where changelist_id = @changelist_id and review_version = @review_version;

-- name: InsertRecipients :copyfrom
insert into criticizer.recipients (changelist_id, review_version, position, user_name, address, role)
values (@changelist_id, @review_version, @position, @user_name, @address, @role);

-- name: Recipients :many
select user_name as "user", address, role
from criticizer.recipients
where changelist_id = @changelist_id and review_version = @review_version
order by (role <> 'author'), position;

-- name: DeleteOldRecipients :execrows
delete from criticizer.recipients where saved_at <= now() - interval '720 hours';

-- name: InsertMissingDeliveries :exec
insert into criticizer.deliveries (changelist_id, review_version, recipient)
select distinct @changelist_id::bigint, @review_version::integer, lower(address)
from unnest(@addresses::text[]) as address
on conflict (changelist_id, recipient, review_version) do nothing;

-- name: InsertMissingChannels :exec
insert into criticizer.deliveries (changelist_id, review_version, channel, recipient)
select @changelist_id::bigint, @review_version::integer, channel, channel
from unnest(@channels::text[]) as channel
on conflict (changelist_id, recipient, review_version) do nothing;

-- name: Deliveries :many
select *
from criticizer.deliveries
where changelist_id = @changelist_id and review_version = @review_version
order by recipient collate "C";

-- name: Delivery :one
-- With the database's time: the caller's clock may differ.
select sqlc.embed(d), now()::timestamptz as now from criticizer.deliveries d where d.id = @id;

-- name: BeginDeliveryIfUnchanged :one
-- attempts is the fence: of two workers that read the same row, one begins. A repeated
-- attempt keeps the time of the first.
update criticizer.deliveries
set attempts = attempts + 1, last_attempt_at = case when @repeats::boolean then last_attempt_at else now() end, begun = true, error_class = null
where id = @id and status = 'pending' and attempts = @attempts
returning *;

-- name: AbandonDeliveryIfUnchanged :exec
update criticizer.deliveries
set begun = false, error_class = null
where id = @id and status = 'pending' and attempts = @attempts;

-- name: RecordRefusalIfUnchanged :exec
-- A begun pending row has a class if the provider refused its complete message.
update criticizer.deliveries
set error_class = @error_class::text
where id = @id and status = 'pending' and begun and attempts = @attempts;

-- name: MarkSentIfNotSent :execrows
-- Sets ID, time and status in one write (notification 6.4).
update criticizer.deliveries
set status = 'sent', notification_id = @notification_id::text, notified_at = now(), evidence = @evidence::text, begun = false,
    error_class = null
where id = @id and status <> 'sent';

-- name: FailPendingDelivery :execrows
-- attempts and begun are the fence: a late worker changes neither a newer attempt
-- nor an operator's decision.
update criticizer.deliveries
set status = 'failed', error_class = @error_class::text, begun = false
where id = @id and status = 'pending' and attempts = @attempts and (begun or notification_id is not null);

-- name: HoldPendingDelivery :execrows
update criticizer.deliveries
set status = 'held'
where id = @id and status = 'pending' and attempts = @attempts and (begun or notification_id is not null);

-- name: FindDeliveries :many
-- With the state of each row's review. An empty or zero argument selects all.
select sqlc.embed(d), j.state as job_state, j.idempotency_key as job_key
from criticizer.deliveries d
join criticizer.jobs j using (changelist_id, review_version)
where (@id::bigint = 0 or d.id = @id)
  and (@changelist::bigint = 0 or d.changelist_id = @changelist)
  and (@status::text = '' or d.status = @status)
order by d.changelist_id desc, d.review_version desc, d.recipient collate "C"
limit @max_rows;

-- name: WaiveUnsentDelivery :execrows
update criticizer.deliveries set status = 'waived' where id = @id and status in ('pending', 'failed', 'held');

-- name: WaiveRefusedDelivery :one
-- Waives a row whose mail certainly reached no recipient.
update criticizer.deliveries set status = 'waived'
where id = @id and (status = 'failed' or (status = 'pending' and not begun and notification_id is null))
returning changelist_id, review_version;

-- name: InsertDelivery :one
insert into criticizer.deliveries (changelist_id, review_version, recipient)
values (@changelist_id, @review_version, lower(@address::text))
on conflict (changelist_id, recipient, review_version) do nothing
returning id;

-- name: RequeueUnsentDelivery :execrows
-- The operator states that a begun attempt was not accepted. While the review runs,
-- or the last attempt is younger than settle, the attempt may still be in flight.
update criticizer.deliveries d
set status = 'pending', begun = false, notification_id = null, error_class = null,
    checked_at = null, confirmed_at = null, unproven = 0
where d.id = @id
  and (not d.begun or d.last_attempt_at <= now() - @settle::interval)
  and (d.status in ('failed', 'held', 'waived')
    or (d.status = 'pending' and (d.begun or d.notification_id is not null) and not exists (
      select from criticizer.jobs j
      where j.changelist_id = d.changelist_id and j.review_version = d.review_version and j.state = 'in_progress')));

-- name: ForgetMetadata :one
select coalesce(addresses, 0)::integer as addresses, coalesce(paths, 0)::integer as paths from criticizer.forget_metadata();

-- name: PurgeReviews :one
select criticizer.purge_reviews(@ttl::interval, @at_most::bigint)::bigint;
