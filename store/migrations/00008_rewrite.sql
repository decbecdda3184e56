-- +goose Up

-- The complaint_rewrite queue. Sections cited as "queue N" are those of the
-- contract complaint_rewrite_queue_processing_v1.

-- +goose StatementBegin
do $$
declare
    part text;
    part_role text;
begin
    foreach part in array array['rewrite', 'backend', 'frontend'] loop
        part_role := 'criticizer_' || part;
        if not exists (select from pg_roles where rolname = part_role) then
            begin
                execute format('create role %I nologin', part_role);
            exception when duplicate_object or unique_violation then null;
            end;
        end if;
        if not (select rolsuper from pg_roles where rolname = current_user) then
            begin
                execute format('grant %I to current_user', part_role);
            exception when insufficient_privilege or unique_violation then null;
            end;
        end if;
    end loop;
end $$;
-- +goose StatementEnd

-- Messages, preferences and results: encrypted, and away from all that is
-- listed, logged or shown (queue 10).
create schema rewrite;

create table rewrite.artifacts (
    id         text primary key,
    body       bytea       not null,
    stored_at  timestamptz not null default now(),
    expires_at timestamptz not null,
    constraint artifacts_id_is_hash check (id ~ '^[0-9a-f]{64}$'),
    constraint artifacts_body_present check (octet_length(body) > 0),
    constraint artifacts_ttl_30_days check (
        expires_at > stored_at and expires_at <= stored_at + interval '720 hours')
);
alter table rewrite.artifacts alter column body set storage external;
create index artifacts_expiry on rewrite.artifacts (expires_at);
create trigger artifacts_delete_expired_only before delete on rewrite.artifacts
    for each row when (old.expires_at > now()) execute function criticizer.refuse_early_delete();

-- One message of a sender, for one or more recipients.
create table criticizer.rewrite_requests (
    rewrite_request_id uuid primary key,
    text_ref           text        not null, -- of the message, in rewrite.artifacts
    created_at         timestamptz not null default now(),
    constraint rewrite_requests_text_present check (text_ref like 'rewrite:%')
);

-- One record per run of a worker (queue 10). The counts are filled in when the
-- run ends, from rewrite_transitions.
create table criticizer.rewrite_runs (
    run_id            uuid primary key, -- of the Temporal run
    worker            text        not null,
    started_at        timestamptz not null default now(),
    finished_at       timestamptz,
    event             text        not null default '',
    max_jobs_per_run  integer     not null,
    claimed_count     integer     not null default 0,
    submitted_count   integer     not null default 0,
    succeeded_count   integer     not null default 0,
    failed_count      integer     not null default 0,
    requeued_count    integer     not null default 0,
    stale_count       integer     not null default 0,
    rate_limit_errors integer     not null default 0,
    capacity_errors   integer     not null default 0,
    per_model         jsonb       not null default '[]',
    constraint rewrite_runs_worker_known check (
        worker in ('rewrite_batch_submitter', 'rewrite_batch_collector', 'rewrite_async')),
    constraint rewrite_runs_are_limited check (max_jobs_per_run > 0),
    constraint rewrite_runs_event_known check (event in ('', worker || ' skipped: no pending items')),
    constraint rewrite_runs_skipped_did_nothing check (event = '' or (finished_at is not null and claimed_count = 0))
);
create index rewrite_runs_newest on criticizer.rewrite_runs (started_at);

-- One batch at a provider. batch_id is the submission key: it is written here
-- before the provider is asked, and is in the batch's metadata there, so that a
-- batch whose id was lost is found again and not paid twice.
create table criticizer.rewrite_batches (
    batch_id          uuid primary key,
    state             text        not null default 'submitting',
    routing_decision  jsonb       not null,
    language_pair     jsonb       not null,
    lane              text        not null,
    requests          integer     not null,
    tokens            integer     not null,
    run_id            uuid        not null,
    created_at        timestamptz not null default now(),
    lease_token       uuid,
    leased_until      timestamptz,
    input_file_id     text,
    create_begun_at   timestamptz, -- since then the provider may have the batch
    create_error      text,        -- how the creation ended, if in doubt
    provider_batch_id text,
    provider_status   text,
    submitted_at      timestamptz,
    polled_at         timestamptz,
    cancel_asked_at   timestamptz, -- it took too long
    ended_at          timestamptz,
    constraint rewrite_batches_state_known check (state in ('submitting', 'submitted', 'collected', 'abandoned')),
    constraint rewrite_batches_lane_known check (lane in ('same_language', 'cross_language')),
    constraint rewrite_batches_hold_jobs check (requests > 0),
    constraint rewrite_batches_submitted_has_id check (
        state not in ('submitted', 'collected') or (coalesce(provider_batch_id, '') <> '' and submitted_at is not null)),
    constraint rewrite_batches_ended_iff_final check ((ended_at is not null) = (state in ('collected', 'abandoned'))),
    constraint rewrite_batches_lease_has_end check ((lease_token is null) = (leased_until is null))
);
create index rewrite_batches_open on criticizer.rewrite_batches (created_at) where state in ('submitting', 'submitted');

-- The jobs, with the names of the contract (queue 4) and what fences them.
create table criticizer.rewrite_jobs (
    job_id                           uuid primary key,
    rewrite_request_id               uuid        not null,
    task                             text        not null default 'complaint_rewrite',
    surface                          text        not null,
    rewrite_strength                 text        not null,
    language_pair                    jsonb       not null,
    recipient_user_id                uuid        not null,
    recipient_snapshot_id            uuid        not null,
    recipient_preference_snapshot_id uuid        not null,
    status                           text        not null default 'queued',
    created_at                       timestamptz not null default clock_timestamp(),
    updated_at                       timestamptz not null default now(),
    not_before_at                    timestamptz,
    claimed_at                       timestamptz,
    claimed_by                       text,
    attempt_count                    integer     not null default 0,
    max_attempts                     integer     not null default 2,
    last_error                       text,
    last_error_at                    timestamptz,
    routing_decision                 jsonb, -- null until the router has decided
    execution_mode                   text generated always as (routing_decision ->> 'execution_mode') stored,
    preferences_ref                  text, -- of the snapshot, in rewrite.artifacts
    result_ref                       text, -- of the rewrite, in rewrite.artifacts
    claim_token                      uuid, -- of the attempt that holds the claim: every write of it is guarded by this
    begun_at                         timestamptz, -- the provider was asked under this claim
    batch_id                         uuid,
    run_id                           uuid, -- that changed the job last; null if an operator did
    constraint rewrite_jobs_unit_unique unique (rewrite_request_id, recipient_user_id),
    constraint rewrite_jobs_of_request foreign key (rewrite_request_id) references criticizer.rewrite_requests (rewrite_request_id),
    constraint rewrite_jobs_of_batch foreign key (batch_id) references criticizer.rewrite_batches (batch_id),
    constraint rewrite_jobs_task_known check (task = 'complaint_rewrite'),
    constraint rewrite_jobs_surface_known check (surface in ('weekly_harmony', 'direct_message', 'other')),
    constraint rewrite_jobs_strength_known check (rewrite_strength in ('light_touch', 'full_reframe')),
    constraint rewrite_jobs_languages_are_tags check (
        language_pair - array['from', 'to'] = '{}'
        and language_pair ->> 'from' ~ '^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$'
        and language_pair ->> 'to' ~ '^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$'),
    constraint rewrite_jobs_status_known check (
        status in ('queued', 'processing', 'batch_submitted', 'completed', 'failed', 'canceled')),
    constraint rewrite_jobs_attempts_counted check (attempt_count >= 0 and max_attempts > 0),
    constraint rewrite_jobs_processing_is_claimed check (
        status <> 'processing' or (claimed_at is not null and coalesce(claimed_by, '') <> '')),
    constraint rewrite_jobs_submitted_has_batch check (status <> 'batch_submitted' or batch_id is not null),
    constraint rewrite_jobs_completed_has_result check (status <> 'completed' or result_ref is not null),
    constraint rewrite_jobs_failed_has_error check (
        status <> 'failed' or (coalesce(last_error, '') <> '' and last_error_at is not null)),
    -- A decision is a few names: no place for a message (queue 4).
    constraint rewrite_jobs_routing_holds_no_text check (
        routing_decision - array['provider', 'adapter_kind', 'base_url', 'model', 'prompt_version',
                                 'policy_version', 'execution_mode', 'cache_eligible', 'max_retries'] = '{}'
        and octet_length(routing_decision::text) <= 1000),
    constraint rewrite_jobs_routing_has_mode check (
        routing_decision is null or routing_decision ->> 'execution_mode' in ('async', 'batch'))
);

-- Small however many jobs are finished: a claim reads nothing else.
create index rewrite_jobs_claimable on criticizer.rewrite_jobs (execution_mode, created_at, job_id) where status = 'queued';
create index rewrite_jobs_claimed on criticizer.rewrite_jobs (claimed_at) where status = 'processing';
create index rewrite_jobs_in_batch on criticizer.rewrite_jobs (batch_id) where batch_id is not null;
alter table criticizer.rewrite_jobs set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

-- The database's own record of every change of a job's status. Its check holds
-- the legal changes (queue 3), the same as in package rewrite: a statement that
-- makes another is refused as a whole. It has few indexes, for every change of a
-- job writes here: a run is found by its time.
create table criticizer.rewrite_transitions (
    id            bigint generated always as identity,
    job_id        uuid        not null,
    at            timestamptz not null default now(),
    login         text        not null default session_user,
    from_status   text, -- null: enqueued
    to_status     text        not null,
    attempt_count integer     not null,
    error         text, -- why it failed or was queued again
    run_id        uuid,
    batch_id      uuid,
    constraint rewrite_transitions_legal check (
        (coalesce(from_status, ''), to_status) in (
            ('', 'queued'),
            ('queued', 'processing'),
            ('queued', 'canceled'),
            ('processing', 'queued'),
            ('processing', 'batch_submitted'),
            ('processing', 'completed'),
            ('processing', 'failed'),
            ('processing', 'canceled'),
            ('batch_submitted', 'queued'),
            ('batch_submitted', 'completed'),
            ('batch_submitted', 'failed'),
            ('batch_submitted', 'canceled')))
);
create index rewrite_transitions_of_job on criticizer.rewrite_transitions (job_id);
create index rewrite_transitions_by_time on criticizer.rewrite_transitions using brin (at);

-- +goose StatementBegin
create function criticizer.refuse_rewrite_history() returns trigger language plpgsql as $$
begin
    raise exception 'rewrite_transitions is append-only: % refused', tg_op using errcode = 'insufficient_privilege';
end $$;
-- +goose StatementEnd

create trigger rewrite_transitions_append_only
    before update or delete or truncate on criticizer.rewrite_transitions
    for each statement execute function criticizer.refuse_rewrite_history();

-- Once per statement, not per row: a claim is one insert. Nobody may write
-- transitions but these.
-- +goose StatementBegin
create function criticizer.record_rewrite_enqueued() returns trigger
    language plpgsql security definer set search_path = '' as $$
begin
    insert into criticizer.rewrite_transitions (job_id, to_status, attempt_count)
    select job_id, status, attempt_count from fresh order by created_at;
    return null;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create function criticizer.record_rewrite_transition() returns trigger
    language plpgsql security definer set search_path = '' as $$
begin
    insert into criticizer.rewrite_transitions (job_id, from_status, to_status, attempt_count, error, run_id, batch_id)
    select n.job_id, o.status, n.status, n.attempt_count,
           case when n.status in ('queued', 'failed') then n.last_error end, n.run_id, coalesce(n.batch_id, o.batch_id)
    from fresh n join gone o using (job_id)
    where o.status <> n.status;
    return null;
end $$;
-- +goose StatementEnd

create trigger rewrite_jobs_enqueued_recorded after insert on criticizer.rewrite_jobs
    referencing new table as fresh for each statement execute function criticizer.record_rewrite_enqueued();
create trigger rewrite_jobs_transition_recorded after update on criticizer.rewrite_jobs
    referencing old table as gone new table as fresh for each statement execute function criticizer.record_rewrite_transition();

-- An id of a new job: a UUID of version 7, whose order in time keeps the indexes
-- of many finished jobs from being written all over.
-- +goose StatementBegin
create function criticizer.rewrite_job_id() returns uuid language sql volatile set search_path = '' as $$
    select encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
        placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6), 52, 1), 53, 1), 'hex')::uuid
$$;
-- +goose StatementEnd

-- What a backend calls. job has the fields of the contract, those that the queue
-- itself fills left out; sealed is what `starter rewrite seal` printed. The
-- second call for one request and recipient returns the first job and changes
-- nothing.
-- +goose StatementBegin
create function criticizer.enqueue_rewrite(job jsonb, sealed jsonb)
    returns table (job_id uuid, status text, created boolean)
    language plpgsql security definer set search_path = '' as $$
declare
    request   uuid := (job ->> 'rewrite_request_id')::uuid;
    recipient uuid := (job ->> 'recipient_user_id')::uuid;
    message   text := 'rewrite:' || (sealed -> 'text' ->> 'id');
    fresh     uuid := coalesce((job ->> 'job_id')::uuid, criticizer.rewrite_job_id());
    unknown   text;
    made      boolean;
begin
    select min(key) into unknown from jsonb_object_keys(job) key where key not in (
        'job_id', 'rewrite_request_id', 'task', 'surface', 'rewrite_strength', 'language_pair', 'recipient_user_id',
        'recipient_snapshot_id', 'recipient_preference_snapshot_id', 'not_before_at', 'max_attempts', 'routing_decision');
    if unknown is not null then
        raise exception 'enqueue_rewrite: field % is not for a backend to set', quote_ident(unknown) using errcode = 'invalid_parameter_value';
    end if;

    return query select j.job_id, j.status, false from criticizer.rewrite_jobs j
        where j.rewrite_request_id = request and j.recipient_user_id = recipient;
    if found then
        return;
    end if;

    insert into rewrite.artifacts (id, body, expires_at)
    select a ->> 'id', decode(a ->> 'body', 'base64'), now() + interval '720 hours'
    from jsonb_path_query(sealed, '$.*') a
    on conflict (id) do update set stored_at = now(), expires_at = excluded.expires_at;

    insert into criticizer.rewrite_requests (rewrite_request_id, text_ref) values (request, message)
    on conflict (rewrite_request_id) do nothing;
    if not exists (select from criticizer.rewrite_requests r where r.rewrite_request_id = request and r.text_ref = message) then
        raise exception 'enqueue_rewrite: request % is known with another text: use another rewrite_request_id', request
            using errcode = 'unique_violation';
    end if;

    insert into criticizer.rewrite_jobs as j (
        job_id, rewrite_request_id, task, surface, rewrite_strength, language_pair, recipient_user_id, recipient_snapshot_id,
        recipient_preference_snapshot_id, not_before_at, max_attempts, routing_decision, preferences_ref)
    values (
        fresh, request, coalesce(job ->> 'task', 'complaint_rewrite'), job ->> 'surface', job ->> 'rewrite_strength',
        job -> 'language_pair', recipient, (job ->> 'recipient_snapshot_id')::uuid,
        (job ->> 'recipient_preference_snapshot_id')::uuid, (job ->> 'not_before_at')::timestamptz,
        coalesce((job ->> 'max_attempts')::integer, 2), nullif(job -> 'routing_decision', 'null'),
        'rewrite:' || (sealed -> 'preferences' ->> 'id'))
    on conflict (rewrite_request_id, recipient_user_id) do nothing;
    made := found;
    return query select j.job_id, j.status, made from criticizer.rewrite_jobs j
        where j.rewrite_request_id = request and j.recipient_user_id = recipient;
end $$;
-- +goose StatementEnd

-- The sealed result of a completed job, which `starter rewrite open` opens; null
-- if there is none, or none any more.
-- +goose StatementBegin
create function criticizer.rewrite_result(job uuid) returns jsonb
    language sql stable security definer set search_path = '' as $$
    select jsonb_build_object('id', a.id, 'body', encode(a.body, 'base64'))
    from criticizer.rewrite_jobs j
    join rewrite.artifacts a on 'rewrite:' || a.id = j.result_ref and a.expires_at > now()
    where j.job_id = job and j.status = 'completed';
$$;
-- +goose StatementEnd

-- What backends and frontends see of a job (queue 11).
create view criticizer.rewrite_job_states as
    select job_id, rewrite_request_id, recipient_user_id, status, created_at, updated_at
    from criticizer.rewrite_jobs;

revoke all on function criticizer.enqueue_rewrite, criticizer.rewrite_result from public;

grant usage on schema criticizer to criticizer_rewrite, criticizer_backend, criticizer_frontend;
grant select on criticizer.rewrite_job_states to criticizer_backend, criticizer_frontend;
grant execute on function criticizer.enqueue_rewrite, criticizer.rewrite_result to criticizer_backend;

grant insert (actor, action, object, detail) on criticizer.audit_log to criticizer_rewrite;
grant usage on schema rewrite to criticizer_rewrite;
grant select, insert, update on rewrite.artifacts to criticizer_rewrite;
grant select on criticizer.rewrite_jobs, criticizer.rewrite_requests, criticizer.rewrite_transitions to criticizer_rewrite;
grant update (status, updated_at, not_before_at, claimed_at, claimed_by, attempt_count, last_error, last_error_at,
              routing_decision, result_ref, claim_token, begun_at, batch_id, run_id) on criticizer.rewrite_jobs to criticizer_rewrite;
grant select, insert, update on criticizer.rewrite_batches, criticizer.rewrite_runs to criticizer_rewrite;

-- Operators see all but texts, and change nothing but where a job stands.
grant usage on schema rewrite to criticizer_operator;
grant select (id, stored_at, expires_at) on rewrite.artifacts to criticizer_operator;
grant select on criticizer.rewrite_jobs, criticizer.rewrite_requests, criticizer.rewrite_transitions,
                criticizer.rewrite_batches, criticizer.rewrite_runs, criticizer.rewrite_job_states to criticizer_operator;
grant update (status, updated_at, not_before_at, claimed_at, claimed_by, attempt_count, last_error, last_error_at,
              claim_token, begun_at, batch_id, run_id) on criticizer.rewrite_jobs to criticizer_operator;

grant usage on schema rewrite to criticizer_retention;
grant delete, select (id, expires_at) on rewrite.artifacts to criticizer_retention;
