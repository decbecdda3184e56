-- name: FindDeliveries :many
-- With the state of the review each belongs to. An argument that is empty or
-- zero does not narrow the search.
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
-- A row whose mail certainly reached nobody.
update criticizer.deliveries set status = 'waived'
where id = @id and (status = 'failed' or (status = 'pending' and not begun and notification_id is null))
returning changelist_id, review_version;

-- name: InsertDelivery :one
insert into criticizer.deliveries (changelist_id, review_version, recipient)
values (@changelist_id, @review_version, lower(@address::text))
on conflict (changelist_id, recipient, review_version) do nothing
returning id;

-- name: RequeueUnsentDelivery :execrows
-- Whatever was begun counts as not accepted: the operator says so. While the
-- review runs, or the last attempt is younger than settle, it may be under way.
update criticizer.deliveries d
set status = 'pending', begun = false, notification_id = null, failure_class = null,
    checked_at = null, confirmed_at = null, unproven = 0
where d.id = @id
  and (not d.begun or d.last_attempt_at <= now() - @settle::interval)
  and (d.status in ('failed', 'held', 'waived')
    or (d.status = 'pending' and (d.begun or d.notification_id is not null) and not exists (
      select from criticizer.jobs j
      where j.changelist_id = d.changelist_id and j.review_version = d.review_version and j.state = 'in_progress')));
