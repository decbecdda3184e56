-- name: DeleteRecipients :exec
delete from criticizer.recipients where changelist_id = @changelist_id and review_version = @review_version;

-- name: InsertRecipients :exec
insert into criticizer.recipients (changelist_id, review_version, position, user_name, address, role)
select @changelist_id, @review_version, position, recipient ->> 'user', recipient ->> 'address', recipient ->> 'role'
from jsonb_array_elements(@recipients::jsonb) with ordinality as each (recipient, position);

-- name: Recipients :many
select user_name as "user", address, role
from criticizer.recipients
where changelist_id = @changelist_id and review_version = @review_version
order by (role <> 'author'), position;

-- name: RecipientDecisions :many
-- Whether each person is notified of a version. why is null until stage notify has decided, and
-- empty if the person is notified. The decisions are kept for 30 days.
select review_version, user_name as "user", address, role, why
from criticizer.recipients
where changelist_id = @changelist_id
order by review_version, (role <> 'author'), position;

-- name: DecideAllRecipients :exec
update criticizer.recipients set why = '' where changelist_id = @changelist_id and review_version = @review_version;

-- name: ExcludeRecipient :exec
update criticizer.recipients set why = @why::text
where changelist_id = @changelist_id and review_version = @review_version and user_name = @user_name and address = @address;

-- name: Bounced :many
-- The addresses that a mail server has refused, and that no operator has sent to again.
select distinct recipient from criticizer.deliveries where recipient = any(@addresses::text[]) and bounced_at is not null;

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
-- attempts is the fence: of two workers that read the same row, one begins.
with attempt as (
  insert into criticizer.delivery_attempts (delivery_id, attempt)
  select d.id, d.attempts + 1 from criticizer.deliveries d where d.id = @id and d.status = 'pending' and d.attempts = @attempts
  on conflict do nothing)
update criticizer.deliveries u
set attempts = u.attempts + 1, last_attempt_at = now(), begun = true, error_class = null
where u.id = @id and u.status = 'pending' and u.attempts = @attempts
returning u.*;

-- name: EndAttempt :exec
-- The first result stays, unless evidence shows that the message was accepted.
update criticizer.delivery_attempts
set ended_at = now(), result = @result::text, answer = @answer::text, detail = @detail::text
where delivery_id = @delivery_id and attempt = @attempt and ended_at is null;

-- name: AcceptAttempt :exec
update criticizer.delivery_attempts a
set ended_at = now(), result = 'accepted', evidence = @evidence::text,
    accepted_at = case when @accepted::boolean then now() end
from criticizer.deliveries d
where d.id = @delivery_id and a.delivery_id = d.id and a.attempt = d.attempts and a.result <> 'accepted';

-- name: Attempts :many
-- An attempt without an end runs, or its worker died. accepted_at is when the provider confirmed
-- the message.
select attempt, begun_at, ended_at, accepted_at, result, answer, detail, evidence
from criticizer.delivery_attempts where delivery_id = @delivery_id order by attempt;

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
set status = 'failed', error_class = @error_class::text, begun = false, bounced_at = case when @bounced::boolean then now() else bounced_at end
where id = @id and status = 'pending' and attempts = @attempts and (begun or notification_id is not null);

-- name: HoldPendingDelivery :execrows
update criticizer.deliveries
set status = 'held'
where id = @id and status = 'pending' and attempts = @attempts and (begun or notification_id is not null);

-- name: FindDeliveries :many
-- With the state of each row's review: the newest changelist first, then the newest version, then
-- by recipient. A zero argument selects all, and at most 1000 rows. Class is of the failure;
-- DELIVERY_AMBIGUOUS selects held rows. Since and Until bound the age of the last attempt.
select d.id, d.changelist_id as changelist, d.review_version, d.recipient, d.status, d.attempts, d.begun, d.last_attempt_at,
       coalesce(d.notification_id, '')::text as notification_id, d.notified_at, coalesce(d.error_class, '')::text as error_class,
       coalesce(d.evidence, '')::text as evidence, d.checked_at, d.confirmed_at, d.unproven, d.bounced_at,
       (d.recipient like 'forgotten:%')::boolean as forgotten, j.state as job_state, j.idempotency_key as workflow_id
from criticizer.deliveries d
join criticizer.jobs j using (changelist_id, review_version)
where (d.id = @id or @id = 0)
  and (d.changelist_id = @changelist or @changelist = 0)
  and (d.status = @status or @status = '')
  and (@class::text = '' or @class = coalesce(d.error_class, case when d.status = 'held' then 'DELIVERY_AMBIGUOUS' end))
  and (@since::interval = '0' or d.last_attempt_at >= now() - @since)
  and (@until::interval = '0' or d.last_attempt_at < now() - @until)
order by d.changelist_id desc, d.review_version desc, d.recipient collate "C"
limit coalesce(nullif(sqlc.arg('limit')::integer, 0), 1000);

-- name: WaiveUnsentDelivery :execrows
update criticizer.deliveries set status = 'waived', missing_at = null where id = @id and status in ('pending', 'failed', 'held');

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
-- or the last attempt is younger than settle, the attempt may still be in flight. A review
-- that runs may have sent all that it sends, and cannot end with an unsent row.
update criticizer.deliveries d
set status = 'pending', begun = false, notification_id = null, error_class = null,
    checked_at = null, confirmed_at = null, missing_at = null, unproven = 0
where d.id = @id
  and d.recipient not like 'forgotten:%'
  and (not d.begun or d.last_attempt_at <= now() - @settle::interval)
  and (d.status in ('failed', 'held')
    or ((d.status = 'waived' or d.status = 'pending' and (d.begun or d.notification_id is not null)) and not exists (
      select from criticizer.jobs j
      where j.changelist_id = d.changelist_id and j.review_version = d.review_version and j.state = 'in_progress')));

-- name: LiftBounces :exec
-- An operator states that the address of a row works.
update criticizer.deliveries set bounced_at = null
where bounced_at is not null and recipient = (select d.recipient from criticizer.deliveries d where d.id = @id);

-- name: BeginNotice :many
select changelist::bigint as changelist, version::integer as version, stage::text as stage, class::text as class,
       failed_at::timestamptz as failed_at, begun::timestamptz as begun, again::boolean as again, now()::timestamptz as now
from criticizer.begin_notice(@open_for::interval);

-- name: MarkNotice :execrows
update criticizer.notices set begun_at = case when @in_doubt::boolean then now() end, why = null
where changelist_id = @changelist_id and review_version = @review_version;

-- name: PostponeNotice :exec
update criticizer.notices set why = @why::text
where changelist_id = @changelist_id and review_version = @review_version;

-- name: EndNotice :exec
update criticizer.notices
set final = true, notification_id = sqlc.narg('notification_id')::text, why = sqlc.narg('why')::text, checked_at = now(),
    notified_at = case when sqlc.narg('notification_id')::text is not null then now() end
where changelist_id = @changelist_id and review_version = @review_version;

-- name: Notices :many
-- The notices that reviews of a changelist wait for an operator; why the author does not get one.
select review_version, notified_at, coalesce(why, '')::text as why from criticizer.notices where changelist_id = @changelist_id;

-- name: ForgetMetadata :one
select coalesce(addresses, 0)::integer as addresses, coalesce(paths, 0)::integer as paths from criticizer.forget_metadata();

-- name: PurgeReviews :one
select criticizer.purge_reviews(@ttl::interval, @at_most::bigint)::bigint;
