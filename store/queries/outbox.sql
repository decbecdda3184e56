-- name: DeleteRecipients :exec
delete from criticizer.recipients where changelist_id = @changelist_id and review_version = @review_version;

-- name: InsertRecipients :copyfrom
insert into criticizer.recipients (changelist_id, review_version, position, user_name, address, role)
values (@changelist_id, @review_version, @position, @user_name, @address, @role);

-- name: Recipients :many
select user_name, address, role
from criticizer.recipients
where changelist_id = @changelist_id and review_version = @review_version
order by (role <> 'author'), position;

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
-- With the database's time, which need not be that of who asks.
select sqlc.embed(d), now()::timestamptz as now from criticizer.deliveries d where d.id = @id;

-- name: BeginDeliveryIfUnchanged :one
-- Attempts is the fence: of two that read the same row, one begins.
update criticizer.deliveries
set attempts = attempts + 1, last_attempt_at = now(), begun = true, failure_class = null
where id = @id and status = 'pending' and attempts = @attempts
returning *;

-- name: AbandonDeliveryIfUnchanged :exec
update criticizer.deliveries
set begun = false, failure_class = null
where id = @id and status = 'pending' and attempts = @attempts;

-- name: NoteRefusalIfUnchanged :exec
-- A pending row that is begun has a class if its message was refused as a whole.
update criticizer.deliveries
set failure_class = @failure_class::text
where id = @id and status = 'pending' and begun and attempts = @attempts;

-- name: MarkSentIfNotSent :execrows
-- Id, time and status in a single write (review-notification 6.4).
update criticizer.deliveries
set status = 'sent', notification_id = @notification_id::text, notified_at = now(), evidence = @evidence::text, begun = false,
    failure_class = null
where id = @id and status <> 'sent';

-- name: FailPendingDelivery :execrows
-- Attempts and begun are the fence: who is late says nothing about another's
-- attempt, nor about what an operator has decided meanwhile.
update criticizer.deliveries
set status = 'failed', failure_class = @failure_class::text, begun = false
where id = @id and status = 'pending' and attempts = @attempts and (begun or notification_id is not null);

-- name: HoldPendingDelivery :execrows
update criticizer.deliveries
set status = 'held'
where id = @id and status = 'pending' and attempts = @attempts and (begun or notification_id is not null);
