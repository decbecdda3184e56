-- The complaint rewrite queue. Sections: roles, audit log, texts, jobs, functions of a backend,
-- grants, owner of the audit log. The database sets all times: the clocks of the hosts may
-- differ.

create schema complaint_rewrite;

-- The files of this folder that the database has. A build refuses a database with other
-- fingerprints.
create table complaint_rewrite.migrations (
    name        text primary key,
    fingerprint text        not null,
    applied_at  timestamptz not null default now()
);

-- Postgres lets every role execute a new function. A role that may execute a trigger
-- function can attach it to a table of its own and forge what it records.
alter default privileges revoke execute on functions from public;

-- Group roles (security 9.4.3); a login is a member of the roles that it uses. Roles belong to
-- the cluster: another database may have created them, or may be creating them at the same
-- time. The migrating login becomes a member, so that an installation with one login can use
-- every role; it owns all tables anyway. If an administrator created the roles and the login
-- may not grant them, the grant is skipped.
do $$
declare
    part_role text;
begin
    foreach part_role in array array['complaint_rewrite_worker', 'complaint_rewrite_backend', 'complaint_rewrite_frontend',
                                     'complaint_rewrite_operator'] loop
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

create table complaint_rewrite.audit_log (
    id      bigint generated always as identity, -- orders the rows; see transitions
    at      timestamptz not null default now(),
    actor   text        not null default session_user,
    claimed text        not null default '', -- the name that the caller gave
    action  text        not null,
    object  text        not null,
    detail  jsonb       not null default '{}',
    role    text        not null default current_user,
    constraint audit_log_says_what check (action <> '' and object <> '')
);

create function complaint_rewrite.refuse_change() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    raise exception '% %: the table is append-only', lower(tg_op), tg_table_name
        using errcode = 'insufficient_privilege', hint = 'insert a row that corrects the earlier one';
end $$;
comment on function complaint_rewrite.refuse_change is
    'The audit log and the transitions are append-only, for their owner as well.';
create trigger audit_log_append_only before update or delete or truncate on complaint_rewrite.audit_log
    for each statement execute function complaint_rewrite.refuse_change();

-- The texts (rewrite 10): raw ones of senders and recipients, and the rewrites, into which
-- our code has put the secrets of the message back. Each namespace is a table of its own, so
-- that grants decide who reads what; all are raw and expire after 7 days (security 9.4.2). A
-- text may be stored more than once, without a key: with a unique id, a transaction that stores a text waits
-- for every open transaction that stores the same, and two that store two texts in opposite
-- orders deadlock.
create table complaint_rewrite.messages (
    id         text        not null,
    body       bytea       not null,
    stored_at  timestamptz not null default now(),
    expires_at timestamptz not null default now() + interval '168 hours',
    constraint messages_id_is_hash check (id ~ '^[0-9a-f]{64}$'),
    constraint messages_body_present check (octet_length(body) > 0),
    constraint messages_expire_in_7_days check (expires_at > stored_at and expires_at <= stored_at + interval '168 hours')
);
alter table complaint_rewrite.messages alter column body set storage external;
create index messages_of_text on complaint_rewrite.messages (id);
create index messages_expiry on complaint_rewrite.messages (expires_at);

create table complaint_rewrite.results (
    id         text        not null,
    body       bytea       not null,
    stored_at  timestamptz not null default now(),
    expires_at timestamptz not null default now() + interval '168 hours',
    constraint results_id_is_hash check (id ~ '^[0-9a-f]{64}$'),
    constraint results_body_present check (octet_length(body) > 0),
    constraint results_expire_in_7_days check (expires_at > stored_at and expires_at <= stored_at + interval '168 hours')
);
alter table complaint_rewrite.results alter column body set storage external;
create index results_of_text on complaint_rewrite.results (id);
create index results_expiry on complaint_rewrite.results (expires_at);

create function complaint_rewrite.refuse_early_delete() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    raise exception 'delete text of %: it has not expired', tg_table_name
        using errcode = 'insufficient_privilege', hint = 'delete only texts whose expires_at has passed';
end $$;
comment on function complaint_rewrite.refuse_early_delete is 'A text stays until it has expired.';
create trigger messages_delete_expired_only before delete on complaint_rewrite.messages
    for each row when (old.expires_at > now()) execute function complaint_rewrite.refuse_early_delete();
create trigger results_delete_expired_only before delete on complaint_rewrite.results
    for each row when (old.expires_at > now()) execute function complaint_rewrite.refuse_early_delete();

-- One message of a sender, for one or more recipients.
create table complaint_rewrite.requests (
    rewrite_request_id uuid primary key,
    text_ref           text        not null, -- of the message
    created_at         timestamptz not null default now(),
    constraint requests_text_present check (text_ref like 'message:%')
);

-- One row per run of a worker (rewrite 10). The counts are computed from
-- transitions when the run ends.
create table complaint_rewrite.runs (
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
    refusals          jsonb       not null default '[]', -- providers that refused a call: their jobs were not claimed
    per_model         jsonb       not null default '[]',
    constraint runs_worker_known check (
        worker in ('rewrite_batch_submitter', 'rewrite_batch_collector', 'rewrite_async')),
    constraint runs_are_limited check (max_jobs_per_run > 0),
    constraint runs_event_known check (event in ('', worker || ' skipped: no pending items')),
    constraint runs_skipped_did_nothing check (event = '' or (finished_at is not null and claimed_count = 0))
);
create index runs_newest on complaint_rewrite.runs (started_at);

-- The name of this installation in the metadata of its batches, and when the providers were last
-- searched for batches that no row knows.
create table complaint_rewrite.installation (
    id        uuid        not null default gen_random_uuid(),
    looked_at timestamptz not null default now()
);
insert into complaint_rewrite.installation default values;

-- One batch at a provider. batch_id is the submission key. It is committed here
-- before the request to the provider and is part of the batch's metadata there,
-- so that a batch whose provider ID was lost is found and not paid twice.
create table complaint_rewrite.batches (
    batch_id          uuid primary key,
    state             text        not null default 'submitting',
    routing_decision  jsonb       not null,
    language_pair     jsonb       not null,
    requests          integer     not null,
    tokens            integer     not null,
    run_id            uuid        not null,
    created_at        timestamptz not null default now(),
    lease_token       uuid,
    leased_until      timestamptz,
    input_file_id     text        not null default '',
    create_begun_at   timestamptz, -- since then the provider may have the batch
    create_error      text        not null default '', -- error class of a creation whose result is unknown
    provider_batch_id text        not null default '',
    provider_status   text        not null default '',
    submitted_at      timestamptz,
    polled_at         timestamptz,
    cancel_asked_at   timestamptz, -- the batch exceeded its time limit
    ended_at          timestamptz,
    final_at          timestamptz, -- when the provider was first seen to have ended the batch
    limit_requests    integer,     -- learned: the provider refused the batch for its size, or for what
    limit_tokens      integer,     -- was enqueued. Each is half of what it refused
    constraint batches_state_known check (state in ('submitting', 'submitted', 'collected', 'abandoned')),
    constraint batches_hold_jobs check (requests > 0),
    constraint batches_submitted_has_id check (
        state not in ('submitted', 'collected') or (provider_batch_id <> '' and submitted_at is not null)),
    constraint batches_ended_iff_final check ((ended_at is not null) = (state in ('collected', 'abandoned'))),
    constraint batches_lease_has_end check ((lease_token is null) = (leased_until is null))
);
create index batches_open on complaint_rewrite.batches (created_at) where state in ('submitting', 'submitted');

-- The jobs. Names up to routing_decision are those of the contract (rewrite 4).
create table complaint_rewrite.jobs (
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
    preferences_ref                  text, -- of the recipient's preferences, in messages
    result_ref                       text, -- of the rewrite
    claim_token                      uuid, -- of the attempt that holds the claim: every write of the attempt is guarded by it
    begun_at                         timestamptz, -- when the request to the provider began under this claim
    batch_id                         uuid,
    run_id                           uuid, -- of the last change; null if an operator made it
    batch_part                       text, -- jobs of a rejected batch that may share the next one
    capacity_rounds                  integer     not null default 0, -- refusals in a row that were not the job's
    constraint jobs_unit_unique unique (rewrite_request_id, recipient_user_id),
    constraint jobs_of_request foreign key (rewrite_request_id) references complaint_rewrite.requests (rewrite_request_id),
    constraint jobs_of_batch foreign key (batch_id) references complaint_rewrite.batches (batch_id),
    constraint jobs_task_known check (task = 'complaint_rewrite'),
    constraint jobs_surface_known check (surface in ('weekly_harmony', 'direct_message', 'other')),
    constraint jobs_strength_known check (rewrite_strength in ('light_touch', 'full_reframe')),
    constraint jobs_status_known check (
        status in ('queued', 'processing', 'batch_submitted', 'completed', 'failed', 'canceled')),
    constraint jobs_attempts_counted check (attempt_count >= 0 and max_attempts > 0),
    constraint jobs_attempts_limited check (max_attempts <= 50),
    -- Times in JSON have years of four digits.
    constraint jobs_not_before_is_readable check (not_before_at between '0001-01-01 00:00Z' and '9999-12-31 00:00Z'),
    constraint jobs_processing_is_claimed check (
        status <> 'processing' or (claimed_at is not null and coalesce(claimed_by, '') <> '')),
    constraint jobs_submitted_has_batch check (status <> 'batch_submitted' or batch_id is not null),
    constraint jobs_completed_has_result check (status <> 'completed' or result_ref is not null),
    constraint jobs_failed_has_error check (
        status <> 'failed' or (coalesce(last_error, '') <> '' and last_error_at is not null)),
    -- A decision is short: it cannot hold a message (rewrite 4).
    constraint jobs_routing_is_short check (octet_length(routing_decision::text) <= 1000),
    constraint jobs_mode_known check (routing_decision is null or (execution_mode in ('async', 'batch')) is true)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
-- Partial indexes: the cost of a claim does not depend on the number of finished
-- jobs.
create index jobs_claimable on complaint_rewrite.jobs (execution_mode, created_at, job_id) where status = 'queued';
create index jobs_claimed on complaint_rewrite.jobs (claimed_at) where status = 'processing';
create index jobs_in_batch on complaint_rewrite.jobs (batch_id) where batch_id is not null;
create index jobs_in_part on complaint_rewrite.jobs (batch_part text_pattern_ops) where batch_part is not null;

-- Every change of a job's status. Triggers write it, in the transaction of the
-- change. transitions_legal holds the same table as docs/states.md
-- (rewrite 3): a statement that makes another change fails as a whole. Every
-- change of a job inserts a row here, so the table has few indexes; the rows of a
-- run are found by time.
create table complaint_rewrite.transitions (
    id            bigint generated always as identity, -- orders the rows; not unique, so that no write is refused because a restored sequence is behind
    job_id        uuid        not null,
    at            timestamptz not null default now(),
    login         text        not null default session_user,
    from_status   text, -- null: enqueued
    to_status     text        not null,
    attempt_count integer     not null,
    error         text, -- why the job failed or was queued again
    run_id        uuid,
    batch_id      uuid,
    constraint transitions_legal check (
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
create index transitions_of_job on complaint_rewrite.transitions (job_id);
create index transitions_by_time on complaint_rewrite.transitions using brin (at);

-- The triggers run per statement, not per row, so that a claim is one insert. They
-- are security definer: no role may write transitions itself.
create function complaint_rewrite.record_transition() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if tg_op = 'INSERT' then
        insert into complaint_rewrite.transitions (job_id, to_status, attempt_count)
        select job_id, status, attempt_count from fresh order by created_at;
        return null;
    end if;
    insert into complaint_rewrite.transitions (job_id, from_status, to_status, attempt_count, error, run_id, batch_id)
    select n.job_id, o.status, n.status, n.attempt_count,
           case when n.status in ('queued', 'failed') then n.last_error end, n.run_id, coalesce(n.batch_id, o.batch_id)
    from fresh n join gone o using (job_id)
    where o.status <> n.status;
    return null;
end $$;
comment on function complaint_rewrite.record_transition is
    'Every change of a status has its row, in the transaction of the change, and is a legal one.';

create trigger transitions_append_only
    before update or delete or truncate on complaint_rewrite.transitions
    for each statement execute function complaint_rewrite.refuse_change();
create trigger jobs_enqueued_recorded after insert on complaint_rewrite.jobs
    referencing new table as fresh for each statement execute function complaint_rewrite.record_transition();
create trigger jobs_transition_recorded after update on complaint_rewrite.jobs
    referencing old table as gone new table as fresh for each statement execute function complaint_rewrite.record_transition();

-- The database evaluates decision and languages while the job is queued, so neither changes
-- from then on.
create function complaint_rewrite.refuse_job_change() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    raise exception 'change rewrite job %: decision and languages of a claimed job and the result of an ended one are final', old.job_id
        using errcode = 'insufficient_privilege';
end $$;
comment on function complaint_rewrite.refuse_job_change is
    'A decision is what was evaluated while the job was queued, and the result of an ended job is what it ended with.';
create trigger jobs_are_final before update of routing_decision, language_pair, result_ref on complaint_rewrite.jobs
    for each row when (
        ((old.status <> 'queued' or new.status <> 'queued')
            and (new.routing_decision, new.language_pair) is distinct from (old.routing_decision, old.language_pair))
        or (old.status in ('completed', 'failed', 'canceled') and new.result_ref is distinct from old.result_ref))
    execute function complaint_rewrite.refuse_job_change();

-- Ends a run and counts its transitions (rewrite 10). No role writes the counts itself.
create function complaint_rewrite.finish_run(run uuid) returns void
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
               count(*) filter (where t.error in ('QUOTA_EXHAUSTED', 'provider_capacity_requeued', 'AUTH_DENIED', 'PERMISSION_DENIED',
                                                  'NOT_FOUND', 'CONFIG_INVALID', 'ENDPOINT_REFUSED')) as capacity_errors
        from complaint_rewrite.transitions t
        join complaint_rewrite.jobs j using (job_id)
        where t.run_id = run and t.at >= (select r.started_at from complaint_rewrite.runs r where r.run_id = run)
        group by 1, 2)
    update complaint_rewrite.runs
    set finished_at = now(), claimed_count = total.claimed, submitted_count = total.submitted, succeeded_count = total.succeeded,
        failed_count = total.failed, requeued_count = total.requeued, stale_count = total.stale,
        rate_limit_errors = total.rate_limited, capacity_errors = total.capacity + jsonb_array_length(refusals), per_model = models
    from (select coalesce(sum(claimed_count), 0) as claimed, coalesce(sum(submitted_count), 0) as submitted,
                 coalesce(sum(succeeded_count), 0) as succeeded, coalesce(sum(failed_count), 0) as failed,
                 coalesce(sum(requeued_count), 0) as requeued, coalesce(sum(stale_count), 0) as stale,
                 coalesce(sum(rate_limit_errors), 0) as rate_limited, coalesce(sum(capacity_errors), 0) as capacity,
                 coalesce(jsonb_agg(to_jsonb(per) - 'stale_count' order by provider, model), '[]') as models
          from per) total
    where run_id = run
$$;
comment on function complaint_rewrite.finish_run is
    'The counts of a run are those of its transitions.';

-- Creates a job; backends call it. sealed is the output of complaint-rewrite seal, which has
-- validated the order. A second call for the same request and recipient returns the first job
-- and changes nothing; with another text it is refused. A text that is stored and lives long
-- enough is not stored again.
create function complaint_rewrite.enqueue(sealed jsonb)
    returns table (job_id uuid, status text, created boolean)
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    job        jsonb := sealed -> 'order';
    message    text := 'message:' || (sealed -> 'text' ->> 'id');
    request    uuid := job ->> 'rewrite_request_id';
    recipient  uuid := job ->> 'recipient_user_id';
    not_before timestamptz := job ->> 'not_before_at';
    made       boolean;
begin
    if not_before > now() + interval '96 hours' then
        raise exception 'enqueue rewrite: not_before_at: want a time at most 96 hours from now'
            using errcode = 'invalid_parameter_value', hint = 'the text is kept for 168 hours';
    end if;

    insert into complaint_rewrite.messages (id, body)
    select a ->> 'id', decode(a ->> 'body', 'base64')
    from (values (sealed -> 'text'), (sealed -> 'preferences')) as texts (a)
    where jsonb_typeof(a) = 'object' and not exists (select from complaint_rewrite.messages r where r.id = a ->> 'id'
                      and r.expires_at > greatest(now(), not_before) + interval '72 hours');

    insert into complaint_rewrite.requests (rewrite_request_id, text_ref) values (request, message)
    on conflict (rewrite_request_id) do nothing;
    if not exists (select from complaint_rewrite.requests r where r.rewrite_request_id = request and r.text_ref = message) then
        raise exception 'enqueue rewrite: request % exists with another text', request
            using errcode = 'unique_violation', hint = 'use another rewrite_request_id';
    end if;

    -- max_retries of the decision bounds the attempts, too.
    insert into complaint_rewrite.jobs as j (
        job_id, rewrite_request_id, surface, rewrite_strength, language_pair, recipient_user_id, recipient_snapshot_id,
        recipient_preference_snapshot_id, not_before_at, max_attempts, routing_decision, preferences_ref)
    values (
        coalesce((job ->> 'job_id')::uuid, gen_random_uuid()), request, job ->> 'surface', job ->> 'rewrite_strength',
        job -> 'language_pair', recipient, (job ->> 'recipient_snapshot_id')::uuid,
        (job ->> 'recipient_preference_snapshot_id')::uuid, not_before,
        least(coalesce((job ->> 'max_attempts')::integer, 2), (job -> 'routing_decision' ->> 'max_retries')::integer + 1),
        nullif(job -> 'routing_decision', 'null'), 'message:' || (sealed -> 'preferences' ->> 'id'))
    on conflict (rewrite_request_id, recipient_user_id) do nothing;
    made := found;
    return query select j.job_id, j.status, made from complaint_rewrite.jobs j
        where j.rewrite_request_id = request and j.recipient_user_id = recipient;
end $$;
comment on function complaint_rewrite.enqueue is
    'A request and recipient have one job, whose message does not change.';

-- The sealed result of a completed job, which complaint-rewrite result decrypts; null if the
-- job is not completed or its result has expired. The audit log records every call
-- (security 9.4.3).
create function complaint_rewrite.result(job uuid) returns jsonb
    language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    sealed jsonb := (
        select jsonb_build_object('id', a.id, 'body', encode(a.body, 'base64'))
        from complaint_rewrite.jobs j
        join complaint_rewrite.results a on a.id = substr(j.result_ref, length('result:') + 1) and a.expires_at > now()
        where j.job_id = job and j.status = 'completed'
        limit 1);
begin
    insert into complaint_rewrite.audit_log (action, object, detail)
    values ('artifact.read', 'job:' || coalesce(job::text, ''), jsonb_build_object('found', sealed is not null));
    return sealed;
end $$;
comment on function complaint_rewrite.result is
    'Nobody reads a result without a record.';

-- The columns of a job that backends and frontends may read (rewrite 11). position counts
-- the queued jobs of the same execution mode up to this one, from 1.
create view complaint_rewrite.job_states as
    select j.job_id, j.rewrite_request_id, j.recipient_user_id, j.status, j.created_at, j.updated_at,
           j.last_error, j.attempt_count, j.max_attempts, j.not_before_at,
           case when j.status = 'queued' then (
               select count(*) from complaint_rewrite.jobs q
               where q.status = 'queued' and q.execution_mode is not distinct from j.execution_mode
                 and (q.created_at, q.job_id) <= (j.created_at, j.job_id)) end as position
    from complaint_rewrite.jobs j;

grant usage on schema complaint_rewrite to
    complaint_rewrite_worker, complaint_rewrite_backend, complaint_rewrite_frontend, complaint_rewrite_operator;
grant insert (claimed, action, object, detail) on complaint_rewrite.audit_log to complaint_rewrite_worker, complaint_rewrite_operator;
grant select on complaint_rewrite.audit_log to complaint_rewrite_operator;
grant select on complaint_rewrite.migrations to
    complaint_rewrite_worker, complaint_rewrite_backend, complaint_rewrite_frontend, complaint_rewrite_operator;

-- The worker deletes expired texts. Results are read by backends only.
grant select, delete on complaint_rewrite.messages to complaint_rewrite_worker;
grant select (id, expires_at), insert (id, body), delete on complaint_rewrite.results to complaint_rewrite_worker;
grant select, insert, update on complaint_rewrite.batches to complaint_rewrite_worker;
grant select, update (looked_at) on complaint_rewrite.installation to complaint_rewrite_worker;
grant select, insert (run_id, worker, max_jobs_per_run, event, finished_at), update (refusals) on complaint_rewrite.runs to complaint_rewrite_worker;
grant select on complaint_rewrite.jobs, complaint_rewrite.requests, complaint_rewrite.transitions to complaint_rewrite_worker;
grant update (status, updated_at, not_before_at, claimed_at, claimed_by, attempt_count, last_error, last_error_at,
              routing_decision, result_ref, claim_token, begun_at, batch_id, run_id, batch_part, capacity_rounds)
    on complaint_rewrite.jobs to complaint_rewrite_worker;
grant execute on function complaint_rewrite.finish_run to complaint_rewrite_worker;

grant select (id, stored_at, expires_at) on complaint_rewrite.messages, complaint_rewrite.results to complaint_rewrite_operator;
grant select on
    complaint_rewrite.jobs, complaint_rewrite.requests, complaint_rewrite.transitions, complaint_rewrite.batches,
    complaint_rewrite.runs, complaint_rewrite.job_states
    to complaint_rewrite_operator;
grant update (status, updated_at, not_before_at, claimed_at, claimed_by, attempt_count, last_error, last_error_at,
              claim_token, begun_at, batch_id, run_id) on complaint_rewrite.jobs to complaint_rewrite_operator;
grant update (state, ended_at, lease_token, leased_until) on complaint_rewrite.batches to complaint_rewrite_operator;

grant execute on function complaint_rewrite.enqueue, complaint_rewrite.result to complaint_rewrite_backend;
grant select on complaint_rewrite.job_states to complaint_rewrite_backend, complaint_rewrite_frontend;

--------------------------------------------------------- owner of the audit log

-- The audit log belongs to a role that nobody can log in as, and so does its schema: the
-- owner of a schema may drop every table in it. The migrating login keeps the right to
-- add objects, and to append. It must be a member of the role for this migration only;
-- docs/install.md says how to take a membership back that an administrator gave.
do $$
declare
    login name := current_user;
    super boolean := (select rolsuper from pg_roles where rolname = current_user);
begin
    begin
        create role complaint_rewrite_audit nologin;
    exception when duplicate_object or unique_violation or insufficient_privilege then null;
    end;
    if not super then
        begin
            execute format('grant complaint_rewrite_audit to %I', login);
        exception when insufficient_privilege or unique_violation then null;
        end;
    end if;
    alter schema complaint_rewrite owner to complaint_rewrite_audit;
    alter table complaint_rewrite.audit_log owner to complaint_rewrite_audit;
    set local role complaint_rewrite_audit;
    execute format('grant create, usage on schema complaint_rewrite to %I', login);
    execute format('grant select, insert (claimed, action, object, detail) on complaint_rewrite.audit_log to %I', login);
    execute format('grant select on sequence complaint_rewrite.audit_log_id_seq to %I', login);
    reset role;
    if not super then
        begin
            execute format('revoke complaint_rewrite_audit from %I', login);
        exception when insufficient_privilege then
            raise warning 'login % is still a member of complaint_rewrite_audit: revoke it as an administrator', login;
        end;
    end if;
end $$;
