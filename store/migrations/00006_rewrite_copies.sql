-- +goose Up

-- Builds of schema 5 store a text of the rewrite queue by an upsert, which needs the key
-- that this migration drops.
update criticizer.schema_serves set oldest_build = 6;

-------------------------------------------------------------------- artifacts

-- A text may be stored more than once: with a unique id, a transaction that stores a text
-- waits for every open transaction that stores the same, and two that store two texts in
-- opposite orders deadlock.
alter table rewrite.artifacts drop constraint artifacts_pkey;
alter table rewrite.artifacts add column copy bigint generated always as identity primary key;
create index artifacts_of_text on rewrite.artifacts (id);
revoke update (body, ttl) on rewrite.artifacts from criticizer_rewrite;

-- The worker of the queue deletes expired texts itself: an installation of the queue alone
-- has no stage retention. A trigger refuses to delete the others.
grant delete on rewrite.artifacts to criticizer_rewrite;

-- A second call for the same request and recipient returns the first job and changes
-- nothing; with another text it is refused. A text that is stored and lives long enough is
-- not stored again.
-- +goose StatementBegin
create or replace function criticizer.enqueue_rewrite(job jsonb, sealed jsonb)
    returns table (job_id uuid, status text, created boolean)
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    faults    text := (select string_agg(f, '; ') from criticizer.rewrite_order_faults(job, sealed) f);
    message   text := 'rewrite:' || (sealed -> 'text' ->> 'id');
    request   uuid;
    recipient uuid;
    not_before timestamptz;
    made      boolean;
begin
    if faults is not null then
        raise exception 'enqueue rewrite: %', faults
            using errcode = 'invalid_parameter_value', hint = 'correct the fields; docs/rewrite.md has an example';
    end if;
    begin
        not_before := (job ->> 'not_before_at')::timestamptz;
    exception when others then
        raise exception 'enqueue rewrite: not_before_at: want a time such as 2026-01-31T12:00:00Z' using errcode = 'invalid_parameter_value';
    end;
    if not_before < '2000-01-01Z' or not_before > now() + interval '700 hours' then
        raise exception 'enqueue rewrite: not_before_at: want a time of this century, at most 700 hours from now'
            using errcode = 'invalid_parameter_value', hint = 'the text is kept for 720 hours';
    end if;
    request := (job ->> 'rewrite_request_id')::uuid;
    recipient := (job ->> 'recipient_user_id')::uuid;

    insert into rewrite.artifacts (id, body)
    select a ->> 'id', decode(a ->> 'body', 'base64')
    from jsonb_path_query(sealed, '$.* ? (@ != null)') a
    where not exists (select from rewrite.artifacts r where r.id = a ->> 'id'
                      and r.expires_at > greatest(now() + interval '360 hours', not_before + interval '20 hours'));

    insert into criticizer.rewrite_requests (rewrite_request_id, text_ref) values (request, message)
    on conflict (rewrite_request_id) do nothing;
    if not exists (select from criticizer.rewrite_requests r where r.rewrite_request_id = request and r.text_ref = message) then
        raise exception 'enqueue rewrite: request % exists with another text', request
            using errcode = 'unique_violation', hint = 'use another rewrite_request_id';
    end if;

    -- max_retries of the decision bounds the attempts, too.
    insert into criticizer.rewrite_jobs as j (
        job_id, rewrite_request_id, surface, rewrite_strength, language_pair, recipient_user_id, recipient_snapshot_id,
        recipient_preference_snapshot_id, not_before_at, max_attempts, routing_decision, preferences_ref)
    values (
        coalesce((job ->> 'job_id')::uuid, criticizer.rewrite_job_id()), request, job ->> 'surface', job ->> 'rewrite_strength',
        job -> 'language_pair', recipient, (job ->> 'recipient_snapshot_id')::uuid,
        (job ->> 'recipient_preference_snapshot_id')::uuid, not_before,
        least(coalesce((job ->> 'max_attempts')::numeric::integer, 2), (job -> 'routing_decision' ->> 'max_retries')::numeric::integer + 1),
        nullif(job -> 'routing_decision', 'null'), 'rewrite:' || (sealed -> 'preferences' ->> 'id'))
    on conflict (rewrite_request_id, recipient_user_id) do nothing;
    made := found;
    return query select j.job_id, j.status, made from criticizer.rewrite_jobs j
        where j.rewrite_request_id = request and j.recipient_user_id = recipient;
end $$;
-- +goose StatementEnd

-- The sealed result of a completed job, which `starter rewrite open` decrypts; null if the
-- job is not completed or its result has expired. The audit log records every call
-- (security 9.4.3).
-- +goose StatementBegin
create or replace function criticizer.rewrite_result(job uuid) returns jsonb
    language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    sealed jsonb := (
        select jsonb_build_object('id', a.id, 'body', encode(a.body, 'base64'))
        from criticizer.rewrite_jobs j
        join rewrite.artifacts a on a.id = substr(j.result_ref, length('rewrite:') + 1) and a.expires_at > now()
        where j.job_id = job and j.status = 'completed'
        limit 1);
begin
    insert into criticizer.audit_log (action, object, detail)
    values ('artifact.read', 'rewrite-job:' || coalesce(job::text, ''), jsonb_build_object('found', sealed is not null));
    return sealed;
end $$;
-- +goose StatementEnd

-------------------------------------------------------------------- monitoring

-- Retention of answers; the rewrite worker exports that of its texts (security 9.4.5).
-- +goose StatementBegin
do $$
begin
    execute 'create or replace view criticizer.figures (name, labels, figure) as '
        || rtrim(pg_get_viewdef('criticizer.figures'::regclass), '; ')
        || $q$ union all
            select 'criticizer_retention_lag_seconds', '{"namespace": "answer"}', greatest(0, extract(epoch from now() - min(expires_at)))
            from answer.artifacts $q$;
end $$;
-- +goose StatementEnd
