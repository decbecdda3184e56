-- name: PutResult :exec
with recorded as (insert into complaint_rewrite.audit_log (action, object) values ('artifact.write', 'result:' || @id::text))
insert into complaint_rewrite.results (id, body) values (@id::text, @body);

-- name: Message :one
-- Every access is recorded, in the same statement.
with recorded as (insert into complaint_rewrite.audit_log (action, object) values ('artifact.read', 'message:' || @id::text))
select body from complaint_rewrite.messages where id = @id::text and expires_at > now() limit 1;

-- name: DeleteExpiredMessages :execrows
delete from complaint_rewrite.messages where expires_at <= now();

-- name: DeleteExpiredResults :execrows
delete from complaint_rewrite.results where expires_at <= now();

-- name: AppendAudit :exec
insert into complaint_rewrite.audit_log (claimed, action, object, detail) values (@claimed, @action, @object, @detail);

-- name: Figures :many
-- The metrics that rewrite/docs/rewrite.md lists.
select 'complaint_rewrite_jobs'::text as name, jsonb_build_object('status', s.status)::jsonb as labels, count(j.job_id)::double precision as figure
from unnest(array['queued', 'processing', 'batch_submitted', 'completed', 'failed', 'canceled']) s (status)
left join complaint_rewrite.jobs j on j.status = s.status group by s.status
union all
select 'complaint_rewrite_oldest_seconds', '{}'::jsonb,
       coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::double precision
from complaint_rewrite.jobs where status = 'queued' and coalesce(not_before_at, created_at) <= now()
union all
select 'complaint_rewrite_capacity_rounds', '{}'::jsonb, coalesce(max(capacity_rounds), 0)::double precision
from complaint_rewrite.jobs where status = 'queued'
union all
select 'complaint_rewrite_unread_batches', '{}'::jsonb, count(*)::double precision
from complaint_rewrite.batches where state = 'submitted' and final_at is not null
union all
select 'complaint_rewrite_refusals', jsonb_build_object('worker', worker),
       (select coalesce(jsonb_array_length(r.refusals), 0) from complaint_rewrite.runs r where r.worker = w.worker order by r.started_at desc limit 1)::double precision
from (select distinct worker from complaint_rewrite.runs where started_at > now() - interval '7 days') w
union all
select 'criticizer_retention_lag_seconds', '{"namespace": "rewrite"}'::jsonb,
       greatest(0, extract(epoch from now() - least((select min(expires_at) from complaint_rewrite.messages),
                                                    (select min(expires_at) from complaint_rewrite.results))))::double precision;

-- name: NewestMessages :many
-- The references of the newest messages that have not expired.
select r.text_ref from complaint_rewrite.requests r
join complaint_rewrite.messages m on m.id = substr(r.text_ref, length('message:') + 1) and m.expires_at > now()
order by r.created_at desc limit @max_messages;
