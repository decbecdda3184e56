-- +goose Up

-- The database refuses every row of the rewrite queue that the worker cannot read. A run
-- reads many rows at once: one unreadable row would stop the others. Builds of schema 3
-- write the counts of runs themselves, which is refused now.
update criticizer.schema_serves set oldest_build = 4;

alter table criticizer.rewrite_jobs add column batch_part text; -- jobs of a rejected batch that may share the next one
alter table criticizer.rewrite_batches add column final_at timestamptz; -- when the provider was first seen to have ended the batch
grant update (batch_part) on criticizer.rewrite_jobs to criticizer_rewrite;
grant update (state, ended_at, lease_token, leased_until) on criticizer.rewrite_batches to criticizer_operator;

---------------------------------------------------------------------- jobs

-- Ended jobs keep what they have. An open job that violates a condition below fails by the
-- name of its field before the condition becomes a constraint. A decision without any field
-- is as good as none: the router decides.
alter table criticizer.rewrite_jobs
    drop constraint rewrite_jobs_languages_are_tags,
    drop constraint rewrite_jobs_routing_holds_no_text,
    drop constraint rewrite_jobs_routing_has_mode;
update criticizer.rewrite_jobs set routing_decision = null where routing_decision in ('{}', 'null') and status = 'queued';
update criticizer.rewrite_jobs set not_before_at = null where not_before_at < '2000-01-01Z' and status = 'queued';
update criticizer.rewrite_jobs set max_attempts = 50 where max_attempts > 50;
alter table criticizer.rewrite_jobs add constraint rewrite_jobs_attempts_limited check (max_attempts <= 50);

-- A CHECK accepts NULL, so each condition is compared with true. The conditions are not
-- functions: every update of a job evaluates them.
-- +goose StatementBegin
do $$
declare
    tag  constant text := 'like_regex "^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,8}$"';
    word constant text := 'like_regex "^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$"';
    c    record;
begin
    for c in select * from (values
        ('rewrite_jobs_languages_are_tags', 'language_pair', format($q$
            case when jsonb_typeof(language_pair) = 'object' then language_pair - array['from', 'to'] = '{}'
                and language_pair @@ 'strict $.from %s && $.to %s' end $q$, tag, tag)),
        -- Names are identifiers and the decision is short: it cannot hold a message (rewrite 4).
        ('rewrite_jobs_routing_holds_no_text', 'routing_decision', $q$
            routing_decision is null or case when jsonb_typeof(routing_decision) = 'object' then
                routing_decision - array['provider', 'adapter_kind', 'base_url', 'model', 'prompt_version', 'policy_version',
                                         'execution_mode', 'cache_eligible', 'max_retries'] = '{}'
                and octet_length(routing_decision::text) <= 1000 end $q$),
        ('rewrite_jobs_routing_has_mode', 'routing_decision', $q$
            routing_decision is null or routing_decision ->> 'execution_mode' in ('async', 'batch') $q$),
        ('rewrite_jobs_routing_is_readable', 'routing_decision', format($q$
            routing_decision is null or (
                routing_decision @@ 'strict $.provider %1$s && $.adapter_kind %1$s && $.model %1$s && $.prompt_version %1$s && $.policy_version %1$s'
                and coalesce(routing_decision -> 'base_url', 'null') @@
                    'strict $ == null || $ == "" || $ like_regex "^https?://[][A-Za-z0-9._:/%%~-]{1,190}$"'
                and coalesce(routing_decision -> 'cache_eligible', 'null') @@ 'strict $ == null || $ == true || $ == false'
                and coalesce(routing_decision -> 'max_retries', 'null') @@ 'strict $ == null || ($ >= 0 && $ <= 50 && $.floor() == $)') $q$, word)),
        ('rewrite_jobs_times_are_finite', 'not_before_at', $q$
            coalesce(not_before_at, created_at) >= '2000-01-01Z' and coalesce(not_before_at, created_at) < '3000-01-01Z'
            and isfinite(created_at) and isfinite(updated_at) and isfinite(coalesce(claimed_at, updated_at))
            and isfinite(coalesce(begun_at, updated_at)) and isfinite(coalesce(last_error_at, updated_at)) $q$)
    ) as v (name, field, condition) loop
        execute format($q$ update criticizer.rewrite_jobs
            set status = 'processing', claimed_at = now(), claimed_by = 'migration', updated_at = now()
            where status = 'queued' and (%s) is not true $q$, c.condition);
        execute format($q$ update criticizer.rewrite_jobs
            set status = 'failed', last_error = 'unreadable_%s', last_error_at = now(), updated_at = now(), claim_token = null
            where status in ('processing', 'batch_submitted') and (%s) is not true $q$, c.field, c.condition);
        execute format('alter table criticizer.rewrite_jobs add constraint %I check (status in (''completed'', ''failed'', ''canceled'') or (%s) is true)',
            c.name, c.condition);
    end loop;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create function criticizer.refuse_result_change() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    raise exception 'change result of rewrite job %: the job has ended', old.job_id using errcode = 'insufficient_privilege';
end $$;
-- +goose StatementEnd
create trigger rewrite_jobs_result_is_final before update of result_ref on criticizer.rewrite_jobs
    for each row when (old.status in ('completed', 'failed', 'canceled') and new.result_ref is distinct from old.result_ref)
    execute function criticizer.refuse_result_change();

---------------------------------------------------------------------- runs

-- Ends a run and counts its transitions (rewrite 10). No role writes the counts itself.
-- +goose StatementBegin
create function criticizer.finish_rewrite_run(run uuid) returns void
    language sql security definer set search_path = pg_catalog, pg_temp as $$
    with per as (
        select coalesce(j.routing_decision ->> 'provider', '') as provider, coalesce(j.routing_decision ->> 'model', '') as model,
               count(*) filter (where t.to_status = 'processing') as claimed_count,
               count(*) filter (where t.to_status = 'batch_submitted') as submitted_count,
               count(*) filter (where t.to_status = 'completed') as succeeded_count,
               count(*) filter (where t.to_status = 'failed') as failed_count,
               count(*) filter (where t.to_status = 'queued') as requeued_count,
               count(*) filter (where t.error in ('stale_claim_requeued', 'stale_claim_failed')) as stale_count,
               count(*) filter (where t.error in ('RATE_LIMITED', 'SERVER_BUSY')) as rate_limit_errors,
               count(*) filter (where t.error in ('QUOTA_EXHAUSTED', 'provider_capacity_requeued')) as capacity_errors
        from criticizer.rewrite_transitions t
        join criticizer.rewrite_jobs j using (job_id)
        where t.run_id = run and t.at >= (select r.started_at from criticizer.rewrite_runs r where r.run_id = run)
        group by 1, 2)
    update criticizer.rewrite_runs
    set finished_at = now(), claimed_count = total.claimed, submitted_count = total.submitted, succeeded_count = total.succeeded,
        failed_count = total.failed, requeued_count = total.requeued, stale_count = total.stale,
        rate_limit_errors = total.rate_limited, capacity_errors = total.capacity, per_model = models
    from (select coalesce(sum(claimed_count), 0) as claimed, coalesce(sum(submitted_count), 0) as submitted,
                 coalesce(sum(succeeded_count), 0) as succeeded, coalesce(sum(failed_count), 0) as failed,
                 coalesce(sum(requeued_count), 0) as requeued, coalesce(sum(stale_count), 0) as stale,
                 coalesce(sum(rate_limit_errors), 0) as rate_limited, coalesce(sum(capacity_errors), 0) as capacity,
                 coalesce(jsonb_agg(to_jsonb(per) - 'stale_count' order by provider, model), '[]') as models
          from per) total
    where run_id = run
$$;
-- +goose StatementEnd
revoke insert, update on criticizer.rewrite_runs from criticizer_rewrite;
grant insert (run_id, worker, max_jobs_per_run, event, finished_at) on criticizer.rewrite_runs to criticizer_rewrite;
grant execute on function criticizer.finish_rewrite_run to criticizer_rewrite;

---------------------------------------------------------------------- enqueue

-- What is wrong with the arguments of enqueue_rewrite: one text per field. It quotes no
-- value, and no name of a field that may be a text.
-- +goose StatementBegin
create function criticizer.rewrite_order_faults(job jsonb, sealed jsonb) returns setof text
    language sql stable set search_path = pg_catalog, pg_temp as $$
    with forms (uuid, tag, name, hash, body, tries, instant) as (values (
        'like_regex "^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$" flag "i"',
        'like_regex "^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,8}$"',
        'like_regex "^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$"',
        'like_regex "^[0-9a-f]{64}$"',
        'like_regex "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)$"',
        '<= 50 && $.floor() == $ && $ >= ',
        'like_regex "^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}:?[0-9]{2})$"')),
    -- parent is empty, or an optional object whose fields are checked only if it is there.
    rules as (
        select r.* from forms, lateral (values
            ('', 'job_id', true, forms.uuid, 'a UUID'),
            ('', 'rewrite_request_id', false, forms.uuid, 'a UUID'),
            ('', 'recipient_user_id', false, forms.uuid, 'a UUID'),
            ('', 'recipient_snapshot_id', false, forms.uuid, 'a UUID'),
            ('', 'recipient_preference_snapshot_id', false, forms.uuid, 'a UUID'),
            ('', 'task', true, '== "complaint_rewrite"', 'complaint_rewrite, or leave it out'),
            ('', 'surface', false, '== "weekly_harmony" || $ == "direct_message" || $ == "other"', 'weekly_harmony, direct_message or other'),
            ('', 'rewrite_strength', false, '== "light_touch" || $ == "full_reframe"', 'light_touch or full_reframe'),
            ('', 'language_pair.from', false, forms.tag, 'a BCP-47 tag such as en'),
            ('', 'language_pair.to', false, forms.tag, 'a BCP-47 tag such as en'),
            ('', 'max_attempts', true, forms.tries || '1', 'a whole number from 1 to 50'),
            ('', 'not_before_at', true, forms.instant, 'a time such as 2026-01-31T12:00:00Z'),
            ('routing_decision', 'provider', false, forms.name, 'a name without spaces'),
            ('routing_decision', 'adapter_kind', false, forms.name, 'a name without spaces'),
            ('routing_decision', 'model', false, forms.name, 'a name without spaces'),
            ('routing_decision', 'prompt_version', false, forms.name, 'a name without spaces'),
            ('routing_decision', 'policy_version', false, forms.name, 'a name without spaces'),
            ('routing_decision', 'execution_mode', false, '== "async" || $ == "batch"', 'async or batch'),
            ('routing_decision', 'base_url', true, 'like_regex "^(https?://[][A-Za-z0-9._:/%~-]{1,190})?$"', 'a URL of at most 190 characters'),
            ('routing_decision', 'cache_eligible', true, '== true || $ == false', 'true or false'),
            ('routing_decision', 'max_retries', true, forms.tries || '0', 'a whole number from 0 to 50'),
            ('', 'sealed.text.id', false, forms.hash, 'the output of starter rewrite seal'),
            ('', 'sealed.text.body', false, forms.body, 'the output of starter rewrite seal'),
            ('sealed.preferences', 'id', false, forms.hash, 'the output of starter rewrite seal'),
            ('sealed.preferences', 'body', false, forms.body, 'the output of starter rewrite seal')) as r (parent, name, optional, form, want)),
    given as (
        select case when jsonb_typeof(job) = 'object' then job else '{}' end || jsonb_build_object('sealed', sealed) as whole),
    found as (
        select r.*, ltrim(parent || '.' || name, '.') as field, coalesce(whole #> string_to_array(ltrim(parent || '.' || name, '.'), '.'), 'null') as value,
               parent = '' or coalesce(whole #> string_to_array(parent, '.'), 'null') <> 'null' as needed
        from rules r, given),
    objects (prefix, content, known) as (values
        ('', job, array['job_id', 'rewrite_request_id', 'task', 'surface', 'rewrite_strength', 'language_pair', 'recipient_user_id',
            'recipient_snapshot_id', 'recipient_preference_snapshot_id', 'not_before_at', 'max_attempts', 'routing_decision']),
        ('language_pair.', job -> 'language_pair', array['from', 'to']),
        ('routing_decision.', job -> 'routing_decision', array['provider', 'adapter_kind', 'base_url', 'model', 'prompt_version',
            'policy_version', 'execution_mode', 'cache_eligible', 'max_retries']),
        ('sealed.', sealed, array['text', 'preferences']),
        ('sealed.text.', sealed -> 'text', array['id', 'body']),
        ('sealed.preferences.', sealed -> 'preferences', array['id', 'body']))
    select format('%s: want %s', field, want) from found
    where needed and case when value = 'null' then not optional else (value @@ ('strict $ ' || form)::jsonpath) is not true end
    union all
    select 'unknown field ' || prefix || case when key ~ '^[a-z_]{1,40}$' then key else 'with a malformed name' end
    from objects, jsonb_object_keys(case when jsonb_typeof(content) = 'object' then content else '{}' end) key
    where key <> all (known)
    union all
    select 'sealed: want at most 400000 bytes' where octet_length(sealed::text) > 400000
$$;
-- +goose StatementEnd

-- A second call for the same request and recipient returns the first job and changes
-- nothing; with another text it is refused. A text that is stored and lives long enough is
-- not written again: a write would wait for the other transactions that enqueue it.
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

    insert into rewrite.artifacts (id, body, ttl)
    select a ->> 'id', decode(a ->> 'body', 'base64'), interval '720 hours'
    from jsonb_path_query(sealed, '$.* ? (@ != null)') a
    where not exists (select from rewrite.artifacts r where r.id = a ->> 'id'
                      and r.expires_at > greatest(now() + interval '360 hours', not_before + interval '20 hours'))
    order by 1 -- the same in every transaction: no deadlock
    on conflict (id) do update set stored_at = now(), expires_at = excluded.expires_at;

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

-- The columns of a job that backends and frontends may read (rewrite 11). position counts
-- the queued jobs of the same execution mode up to this one, from 1.
create or replace view criticizer.rewrite_job_states as
    select j.job_id, j.rewrite_request_id, j.recipient_user_id, j.status, j.created_at, j.updated_at,
           j.last_error, j.attempt_count, j.max_attempts, j.not_before_at,
           case when j.status = 'queued' then (
               select count(*) from criticizer.rewrite_jobs q
               where q.status = 'queued' and q.execution_mode is not distinct from j.execution_mode
                 and (q.created_at, q.job_id) <= (j.created_at, j.job_id)) end as position
    from criticizer.rewrite_jobs j;
