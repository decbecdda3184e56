-- Sections: roles, reviews, delivery, dead letters, feedback, cost, artifacts, retention,
-- audit log, watch, monitoring, grants, rewrite queue, owner of the audit log. The database
-- sets all times: the clocks of the hosts may differ.

create schema criticizer;

-- An artifact belongs to one namespace, and each namespace is a schema, so that
-- grants decide which role reads what (security 9.4.4).
create schema raw;
create schema redacted;
create schema report;
create schema answer;
create schema rewrite;

-- The files of this folder that the database has. A build refuses a database with other
-- fingerprints.
create table criticizer.migrations (
    name        text primary key,
    fingerprint text        not null,
    applied_at  timestamptz not null default now()
);

-- Postgres lets every role execute a new function. A role that may execute a trigger
-- function can attach it to a table of its own and forge what it records.
alter default privileges revoke execute on functions from public;

-------------------------------------------------------------------------- roles

-- Group roles, one per stage (security 9.4.3); a login is a member of the roles
-- that its worker uses. Roles belong to the cluster: another database may have
-- created them, or may be creating them at the same time. The migrating login
-- becomes a member, so that an installation with one login can use every role; it
-- owns all tables anyway. If an administrator created the roles and the login may
-- not grant them, the grant is skipped.
do $$
declare
    part text;
    part_role text;
begin
    foreach part in array array['fetch', 'redact', 'llm', 'notify', 'bookkeeping', 'operator', 'retention',
                                'reader', 'rewrite', 'backend', 'frontend'] loop
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

------------------------------------------------------------------------ reviews

-- One row per review. The row is kept forever and rejects a second review of the
-- same version (notification 6.1, 6.2). idempotency_key is also the
-- workflow ID. While Temporal retries a stage the job is in_progress.
create table criticizer.jobs (
    id              bigint generated always as identity primary key,
    idempotency_key text        not null,
    changelist_id   bigint      not null,
    review_version  integer     not null,
    server_id       text        not null,
    state           text        not null default 'in_progress',
    outcome         text,
    findings        integer     not null default 0,
    run_id          text        not null,
    created_at      timestamptz not null default now(),
    updated_at      timestamptz not null default now(),
    finished_at     timestamptz,
    report          text,                           -- artifact of a review that succeeded
    skipped_by      text,                           -- rule that skipped the review; null if the review read the change
    shelved         boolean     not null default false, -- the review is of the shelf, not of the submitted change
    shelf_event     text,                           -- the event that asked for the review of a shelf
    asked_version   integer,                        -- version asked for, if reviews of the shelf had taken it
    checked_at      timestamptz,                    -- when Temporal was last asked for the run's state
    purged          boolean     not null default false, -- the rows of the review were deleted by policy
    constraint jobs_key_unique unique (idempotency_key),
    constraint jobs_version_unique unique (changelist_id, review_version),
    constraint jobs_key_present check (idempotency_key <> ''),
    constraint jobs_changelist_positive check (changelist_id > 0),
    constraint jobs_version_positive check (review_version > 0),
    constraint jobs_state_known check (
        state in ('in_progress', 'succeeded', 'retryable_failed', 'canceled')),
    constraint jobs_outcome_known check (outcome in ('clean', 'findings', 'partial', 'not_reviewed')),
    constraint jobs_outcome_iff_succeeded check ((outcome is not null) = (state = 'succeeded')),
    constraint jobs_finished_iff_final check (
        (finished_at is not null) = (state in ('succeeded', 'retryable_failed', 'canceled'))),
    constraint jobs_findings_fit_outcome check (
        findings >= 0
        and (outcome is distinct from 'clean' or findings = 0)
        and (outcome is distinct from 'findings' or findings > 0)),
    constraint jobs_report_present check (report <> ''),
    constraint jobs_skipped_not_reviewed check (
        skipped_by is null or (outcome is not distinct from 'not_reviewed' and report is null)),
    constraint jobs_shelf_event_unique unique (shelf_event),
    constraint jobs_shelf_event_of_shelf check ((shelf_event is not null) = shelved)
);
-- Few of many reviews are in flight.
create index jobs_unfinished on criticizer.jobs (changelist_id, review_version) where state = 'in_progress';
create index jobs_dead on criticizer.jobs (id) where state = 'retryable_failed';
create index jobs_ended on criticizer.jobs (finished_at, state) where state in ('succeeded', 'canceled');
create index jobs_begun on criticizer.jobs (created_at) where state = 'in_progress';
create index jobs_unchecked on criticizer.jobs (coalesce(checked_at, updated_at)) where state = 'in_progress';
create index jobs_unpurged on criticizer.jobs (finished_at) where state = 'succeeded' and not purged;

-- What the reviews of shelves read, to compare a submitted change with its shelf,
-- and which shelf a submitted change came from.
create table criticizer.contents (
    changelist_id  bigint  not null,
    review_version integer not null,
    shelved        boolean not null,
    digest         text    not null, -- empty if the server did not return all contents
    shelf_of       bigint  not null, -- changelist of the shelf: the number before the submit
    constraint contents_of_review primary key (changelist_id, review_version),
    constraint contents_of_job foreign key (changelist_id, review_version)
        references criticizer.jobs (changelist_id, review_version)
);

-- Progress of the search for changelists that no trigger reported, per Perforce
-- server. Changelists up to since are older than the installation and are not
-- reviewed.
create table criticizer.catch_up (
    server_id  text primary key,
    since      bigint      not null,
    mark       bigint      not null, -- every changelist up to here was checked
    updated_at timestamptz not null default now(),
    constraint catch_up_mark_is_no_older check (mark >= since),
    constraint catch_up_since_is_a_number check (since >= 0)
);

-- Every list of depot paths that was ever in force: what, by whom, when and why
-- (security 9.1.5). Workers use the newest. No role may set applied_at or login,
-- and no role may change a row.
create table criticizer.allowlist_versions (
    id         bigint generated always as identity primary key,
    applied_at timestamptz not null default now(),
    login      text        not null default session_user,
    who        text        not null,
    reason     text        not null,
    allowed    text[]      not null,
    embargoed  text[]      not null,
    constraint allowlist_versions_say_who_why check (who <> '' and reason <> ''),
    constraint allowlist_versions_not_empty check (cardinality(allowed) > 0)
);

----------------------------------------------------------------------- delivery

-- The recipients of a change, as the fetch stage resolved them. Addresses are
-- stored here and in deliveries, never in Temporal's history. A row is deleted
-- when the report can have expired.
create table criticizer.recipients (
    changelist_id  bigint      not null,
    review_version integer     not null,
    position       integer     not null,
    user_name      text        not null,
    address        text        not null,
    role           text        not null,
    saved_at       timestamptz not null default now(),
    constraint recipients_position_unique primary key (changelist_id, review_version, position),
    constraint recipients_of_job foreign key (changelist_id, review_version)
        references criticizer.jobs (changelist_id, review_version),
    constraint recipients_role_known check (role in ('author', 'subscriber', 'owner', 'unresolved')),
    constraint recipients_address_iff_resolved check ((address <> '') = (role <> 'unresolved'))
);

-- The outbox: one row per recipient and version (notification 6.3, 10.2).
-- A channel has a row, too. Its recipient is the channel's own name, never its
-- address: a webhook URL may be a secret.
create table criticizer.deliveries (
    id              bigint generated always as identity primary key,
    changelist_id   bigint      not null,
    review_version  integer     not null,
    recipient       text        not null,
    status          text        not null default 'pending',
    attempts        integer     not null default 0,
    last_attempt_at timestamptz,
    begun           boolean     not null default false, -- an attempt has begun and its result is unknown
    notification_id text,
    notified_at     timestamptz,
    evidence        text,                               -- the source that reported the acceptance
    error_class   text,
    created_at      timestamptz not null default now(),
    checked_at      timestamptz,                        -- when the evidence sources were last queried
    confirmed_at    timestamptz,                        -- when a source first had evidence of a sent row; never cleared by a later query, because evidence expires
    unproven        integer     not null default 0,     -- how often the row was sent and no source had evidence
    channel         text        not null default 'mail',
    constraint deliveries_intent_unique unique (changelist_id, recipient, review_version),
    constraint deliveries_of_job foreign key (changelist_id, review_version)
        references criticizer.jobs (changelist_id, review_version),
    constraint deliveries_recipient_lower check (recipient = lower(recipient) and recipient <> ''),
    constraint deliveries_status_known check (status in ('pending', 'sent', 'failed', 'held', 'waived')),
    constraint deliveries_notified_iff_sent check ((notified_at is not null) = (status = 'sent')),
    constraint deliveries_notified_has_id check (notified_at is null or notification_id is not null),
    constraint deliveries_notification_id_present check (notification_id <> ''),
    constraint deliveries_failed_has_class check (status <> 'failed' or error_class is not null),
    constraint deliveries_attempts_timed check (
        attempts >= 0 and (attempts > 0) = (last_attempt_at is not null)),
    constraint deliveries_begun_is_open check (
        not begun or (attempts > 0 and status not in ('sent', 'failed'))),
    constraint deliveries_unproven_not_negative check (unproven >= 0),
    constraint deliveries_channel_known check (channel in ('mail', 'webhook', 'swarm')),
    constraint deliveries_channel_names_recipient check (
        (recipient = channel and channel <> 'mail')
        or (channel = 'mail' and recipient not in ('mail', 'webhook', 'swarm')))
);
create index deliveries_of_status on criticizer.deliveries (status, checked_at);
create index deliveries_sent on criticizer.deliveries (notified_at) where status = 'sent';
create index deliveries_confirmed on criticizer.deliveries (confirmed_at);
create index deliveries_begun on criticizer.deliveries (id) where begun;
create index deliveries_unproven on criticizer.deliveries (id) where unproven > 0;
create index deliveries_with_address on criticizer.deliveries (created_at) where channel = 'mail' and recipient not like 'forgotten:%';

-- Addresses of deliveries and paths of findings are kept for 30 days (security 9.4.1). A
-- forgotten address is replaced by a keyed digest, so that a later run of the same version
-- still finds the row and sends no second mail (notification 10.2).
create table criticizer.recipient_key (
    one_row boolean not null default true,
    key     bytea   not null default sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')),
    constraint recipient_key_one_row_only primary key (one_row),
    constraint recipient_key_one_row check (one_row)
);
insert into criticizer.recipient_key default values;

create function criticizer.forgotten_recipient(d criticizer.deliveries) returns text
    language sql stable set search_path = pg_catalog, pg_temp as $$
    select 'forgotten:' || encode(sha256(key || sha256(key || convert_to(
        d.changelist_id || ':' || d.review_version || ':' || d.recipient, 'UTF8'))), 'hex')
    from criticizer.recipient_key;
$$;
comment on function criticizer.forgotten_recipient is
    'A forgotten address can be recognised, and not read or guessed without the key.';

-- A database that was restored from a backup does not know what happened since: mails that
-- its rows call unsent may have been sent, and the rows of whole reviews are missing. The
-- owner records the restore, which puts the deliveries concerned in doubt.
create table criticizer.restores (
    id                bigint      generated always as identity primary key,
    backup_at         timestamptz not null,
    newest_changelist bigint      not null, -- of Perforce, when the database was restored
    restored_at       timestamptz not null default now(),
    actor             text        not null default session_user,
    constraint restores_backup_is_earlier check (backup_at <= restored_at),
    constraint restores_changelist_positive check (newest_changelist > 0)
);

-- Records a restore and returns the number of deliveries that it puts in doubt.
-- last_attempt_at is the earliest time at which the mail may have been sent.
create function criticizer.restored(backup_at timestamptz, newest_changelist bigint) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    in_doubt bigint;
begin
    insert into criticizer.restores (backup_at, newest_changelist) values (restored.backup_at, restored.newest_changelist);
    update criticizer.deliveries d
    set begun = true, attempts = d.attempts + 1, last_attempt_at = restored.backup_at, error_class = null
    where d.status = 'pending' and not d.begun;
    get diagnostics in_doubt = row_count;
    return in_doubt;
end $$;
comment on function criticizer.restored is
    'Nothing that may have been sent since the backup is sent without evidence.';

-- Before a row is inserted, its forgotten row gets the address back: the insert then meets
-- the unique constraint as if nothing had been forgotten. A row that is inserted after a
-- restore may be one that the restore has lost, if Perforce had its changelist then. After
-- 30 days no evidence is left.
create function criticizer.prepare_delivery() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    lost_since timestamptz := (
        select min(backup_at) from criticizer.restores
        where newest_changelist >= new.changelist_id and restored_at > now() - interval '720 hours');
begin
    if new.channel = 'mail' then
        update criticizer.deliveries d set recipient = new.recipient
        where d.changelist_id = new.changelist_id and d.review_version = new.review_version
          and d.recipient = criticizer.forgotten_recipient(new);
    end if;
    if lost_since is not null then
        new.begun := true;
        new.attempts := 1;
        new.last_attempt_at := lost_since;
    end if;
    return new;
end $$;
comment on function criticizer.prepare_delivery is
    'No second mail: not after an address was forgotten, nor after a restore has lost its row.';
create trigger deliveries_prepared before insert on criticizer.deliveries
    for each row execute function criticizer.prepare_delivery();

------------------------------------------------------------------- dead letters

-- One row per run that used its attempt budget or met a non-retryable error
-- (processing 8.4). failed_again: the letter was replayed and the
-- replay left a dead letter of its own.
create table criticizer.dead_letters (
    id               bigint generated always as identity primary key,
    workflow_id      text        not null,
    run_id           text        not null,
    changelist_id    bigint      not null,
    review_version   integer     not null,
    stage            text        not null,
    error_class      text        not null,
    payload          jsonb       not null,
    state            text        not null default 'open',
    escalated        boolean     not null default false,
    first_failure_at timestamptz not null,
    last_failure_at  timestamptz not null,
    recorded_at      timestamptz not null default now(),
    resolved_at      timestamptz,
    resolved_by      text        not null default '',
    resolution       text        not null default '',
    constraint dead_letters_run_unique unique (workflow_id, run_id),
    constraint dead_letters_state_known check (state in ('open', 'replaying', 'failed_again', 'resolved')),
    constraint dead_letters_resolved_iff_dated check ((resolved_at is not null) = (state = 'resolved')),
    constraint dead_letters_class_present check (error_class <> ''),
    constraint dead_letters_stage_present check (stage <> ''),
    constraint dead_letters_payload_complete check (
        payload ?& array['error_class', 'last_stack', 'sanitized_context', 'first_failure_at', 'last_failure_at', 'stage'])
);
create index dead_letters_unresolved on criticizer.dead_letters (recorded_at) where state <> 'resolved';
create index dead_letters_replaying on criticizer.dead_letters (workflow_id) where state = 'replaying';
create index dead_letters_of_kind on criticizer.dead_letters (state, stage, error_class);
create index dead_letters_of_review on criticizer.dead_letters (workflow_id);

-- A replay that an operator asked for, recorded before the reset with the reason:
-- what was repaired (processing 8.5). A request that has neither a run nor a
-- withdrawal, and whose letter is replaying, was interrupted: the next replay
-- continues it.
create table criticizer.replay_requests (
    id             bigint generated always as identity primary key,
    dead_letter_id bigint      not null,
    who            text        not null,
    reason         text        not null,
    full_restart   boolean     not null,
    requested_at   timestamptz not null default now(),
    new_run_id     text,        -- set when the reset is known to have happened
    withdrawn_at   timestamptz, -- set when the reset is known not to have happened
    constraint replay_requests_of_dead_letter foreign key (dead_letter_id) references criticizer.dead_letters (id),
    constraint replay_requests_say_who_why check (who <> '' and reason <> ''),
    constraint replay_requests_end_once check (new_run_id is null or withdrawn_at is null),
    constraint replay_requests_run_present check (new_run_id <> '')
);
create index replay_requests_of_letter on criticizer.replay_requests (dead_letter_id);

-- The replay records: who reset a run, and why. A reset without a request is
-- unexplained, even if Temporal has a reason for it: the reason must be
-- recorded before the reset.
create table criticizer.replays (
    id             bigint generated always as identity primary key,
    dead_letter_id bigint      not null,
    new_run_id     text        not null,
    who            text        not null,
    reason         text        not null,
    started_at     timestamptz not null default now(),
    request_id     bigint,
    explained      boolean     not null generated always as (request_id is not null) stored,
    constraint replays_of_dead_letter foreign key (dead_letter_id) references criticizer.dead_letters (id),
    constraint replays_of_request foreign key (request_id) references criticizer.replay_requests (id),
    constraint replays_run_unique unique (dead_letter_id, new_run_id),
    constraint replays_run_present check (new_run_id <> '')
);

-- The outbox of pages to the operator on call. A page is written in the
-- transaction of its dead letter, so that neither exists without the other.
create table criticizer.pages (
    id              bigint generated always as identity primary key,
    dead_letter_id  bigint      not null,
    reason          text        not null,
    attempts        integer     not null default 0,
    next_attempt_at timestamptz not null default now(),
    accepted_by     text[]      not null default '{}', -- channels that have accepted the page
    created_at      timestamptz not null default now(),
    sent_at         timestamptz,                       -- set when every channel has accepted the page
    constraint pages_letter_unique unique (dead_letter_id),
    constraint pages_of_dead_letter foreign key (dead_letter_id) references criticizer.dead_letters (id),
    constraint pages_reason_known check (reason in ('escalated', 'bug', 'denied')),
    constraint pages_attempts_positive check (attempts >= 0)
);
create index pages_unsent on criticizer.pages (next_attempt_at) where sent_at is null;
create index replays_unexplained on criticizer.replays (id) where not explained;

----------------------------------------------------------------------- feedback

-- The reported findings without their content, and the readers' opinions of them.
create table criticizer.findings (
    token              text primary key,
    changelist_id      bigint      not null,
    review_version     integer     not null,
    fingerprint        text        not null,
    place_fingerprints text[]      not null default '{}', -- of its other places
    path               text        not null,
    rule               text        not null default '', -- rule pack of the file, empty if the file has none
    category           text        not null,
    severity           text        not null,
    reported_at        timestamptz not null default now(),
    opinion            text,
    note               text        not null default '',
    said_by            text,
    said_at            timestamptz,
    constraint findings_once_per_version unique (changelist_id, review_version, fingerprint),
    constraint findings_token_is_ours check (token ~ '^[a-z2-7]{13}$'),
    constraint findings_opinion_known check (opinion in ('useful', 'wrong')),
    constraint findings_opinion_says_who_when check (
        (opinion is not null) = (said_at is not null) and (opinion is not null) = (said_by is not null))
);
create index findings_reported_at on criticizer.findings (reported_at);
create index findings_with_path on criticizer.findings (reported_at) where path <> '';

-- Findings that are not reported again. A fingerprint includes the path: the same
-- code in another file has another fingerprint.
create table criticizer.wrong_findings (
    fingerprint text primary key,
    token       text        not null,
    marked_at   timestamptz not null default now(),
    constraint wrong_findings_of_finding foreign key (token) references criticizer.findings (token)
);

--------------------------------------------------------------------------- cost

-- Tokens per day (UTC) of all workers: used ones, and ones reserved for calls in
-- flight.
create table criticizer.token_days (
    day    date primary key,
    tokens bigint not null,
    constraint token_days_not_negative check (tokens >= 0)
);

-- How each review was made, and its cost over all attempts: numbers and names, no
-- content.
create table criticizer.review_records (
    changelist_id     bigint      not null,
    review_version    integer     not null,
    tokens            bigint      not null default 0, -- that count against the review's budget
    calls             bigint      not null default 0,
    prompt_tokens     bigint      not null default 0,
    completion_tokens bigint      not null default 0,
    cached_tokens     bigint      not null default 0,
    estimated         boolean     not null default false,
    record            jsonb,                          -- review.Record, written when the review ends
    updated_at        timestamptz not null default now(),
    primary key (changelist_id, review_version),
    constraint review_records_not_negative check (tokens >= 0 and calls >= 0)
);

---------------------------------------------------------------------- artifacts

-- Bodies are encrypted and compressed: external storage keeps TOAST from
-- compressing them again. The TTL counts from stored_at, the last time the body
-- was stored. It is given in hours: a day may have 23 or 25 (security 9.4.1).

create table raw.artifacts (
    id         text primary key,
    body       bytea       not null,
    stored_at  timestamptz not null default now(),
    expires_at timestamptz not null,
    ttl        interval    not null default '168 hours',
    constraint artifacts_id_is_hash check (id ~ '^[0-9a-f]{64}$'),
    constraint artifacts_body_present check (octet_length(body) > 0),
    constraint artifacts_ttl_7_days check (
        expires_at > stored_at and expires_at <= stored_at + interval '168 hours')
);

create table redacted.artifacts (
    id         text primary key,
    body       bytea       not null,
    stored_at  timestamptz not null default now(),
    expires_at timestamptz not null,
    ttl        interval    not null default '720 hours',
    constraint artifacts_id_is_hash check (id ~ '^[0-9a-f]{64}$'),
    constraint artifacts_body_present check (octet_length(body) > 0),
    constraint artifacts_ttl_30_days check (
        expires_at > stored_at and expires_at <= stored_at + interval '720 hours')
);

create table report.artifacts (
    id         text primary key,
    body       bytea       not null,
    stored_at  timestamptz not null default now(),
    expires_at timestamptz not null,
    ttl        interval    not null default '720 hours',
    constraint artifacts_id_is_hash check (id ~ '^[0-9a-f]{64}$'),
    constraint artifacts_body_present check (octet_length(body) > 0),
    constraint artifacts_ttl_30_days check (
        expires_at > stored_at and expires_at <= stored_at + interval '720 hours')
);

-- The answer cache: a retried attempt and a rerun send only the requests that have
-- no answer yet. The id is a keyed hash of the request.
create table answer.artifacts (
    id         text primary key,
    body       bytea       not null,
    stored_at  timestamptz not null default now(),
    expires_at timestamptz not null,
    ttl        interval    not null default '720 hours',
    constraint artifacts_id_is_hash check (id ~ '^[0-9a-f]{64}$'),
    constraint artifacts_body_present check (octet_length(body) > 0),
    constraint artifacts_ttl_30_days check (
        expires_at > stored_at and expires_at <= stored_at + interval '720 hours')
);

alter table raw.artifacts alter column body set storage external;
alter table redacted.artifacts alter column body set storage external;
alter table report.artifacts alter column body set storage external;
alter table answer.artifacts alter column body set storage external;

create index artifacts_expiry on raw.artifacts (expires_at);
create index artifacts_expiry on redacted.artifacts (expires_at);
create index artifacts_expiry on report.artifacts (expires_at);
create index artifacts_expiry on answer.artifacts (expires_at);

-- A review may still need an artifact that has not expired. Without the check of the body, a
-- role that cannot read bodies could extend the time of all artifacts for ever.
create function criticizer.guard_artifact() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if tg_op = 'DELETE' then
        if old.expires_at > now() then
            raise exception 'delete artifact of schema %: it has not expired', tg_table_schema
                using errcode = 'insufficient_privilege', hint = 'delete only artifacts whose expires_at has passed';
        end if;
        return old;
    end if;
    new.stored_at := now();
    new.expires_at := now() + new.ttl;
    if tg_op = 'UPDATE' then
        if new.body = old.body then
            raise exception 'extend artifact of schema %: the body was not stored again', tg_table_schema
                using errcode = 'insufficient_privilege', hint = 'store the artifact again';
        end if;
        new.expires_at := greatest(new.expires_at, old.expires_at);
    end if;
    return new;
end $$;
comment on function criticizer.guard_artifact is
    'The database dates artifacts, extends the time only of one that is stored again, and keeps each until then.';
create trigger artifacts_guarded before insert or delete or update of body, ttl on raw.artifacts
    for each row execute function criticizer.guard_artifact();
create trigger artifacts_guarded before insert or delete or update of body, ttl on redacted.artifacts
    for each row execute function criticizer.guard_artifact();
create trigger artifacts_guarded before insert or delete or update of body, ttl on report.artifacts
    for each row execute function criticizer.guard_artifact();
create trigger artifacts_guarded before insert or delete or update of body, ttl on answer.artifacts
    for each row execute function criticizer.guard_artifact();

---------------------------------------------------------------------- retention

-- An address stays while its review runs and while an attempt is in doubt: look-ups need
-- it. The path of a finding that is marked wrong stays as long as the mark.
create function criticizer.forget_metadata(out addresses bigint, out paths bigint)
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update criticizer.deliveries d set recipient = criticizer.forgotten_recipient(d)
    where d.channel = 'mail' and d.recipient not like 'forgotten:%' and d.created_at <= now() - interval '720 hours'
      and not d.begun and coalesce(greatest(d.last_attempt_at, d.notified_at) <= now() - interval '720 hours', true)
      and not exists (
        select from criticizer.jobs j
        where j.changelist_id = d.changelist_id and j.review_version = d.review_version and j.state = 'in_progress');
    get diagnostics addresses = row_count;
    update criticizer.findings set path = ''
    where path <> '' and reported_at <= now() - interval '720 hours' and opinion is distinct from 'wrong';
    get diagnostics paths = row_count;
end $$;
comment on function criticizer.forget_metadata is
    'Addresses and paths are kept for 30 days; who forgets them cannot read them.';

-- A job rejects a second review of the same version. Findings with an opinion stay as well.
create function criticizer.purge_reviews(ttl interval, at_most bigint) returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    due bigint[] := array(
        select id from criticizer.jobs
        where state = 'succeeded' and not purged and finished_at <= now() - greatest(ttl, interval '720 hours')
        order by finished_at limit at_most for update skip locked);
    letters bigint[] := array(
        select l.id from criticizer.dead_letters l join criticizer.jobs j on j.idempotency_key = l.workflow_id where j.id = any (due));
    part text;
begin
    foreach part in array array['replays', 'replay_requests', 'pages'] loop
        execute format('delete from criticizer.%I where dead_letter_id = any ($1)', part) using letters;
    end loop;
    delete from criticizer.dead_letters where id = any (letters);
    delete from criticizer.findings f using criticizer.jobs j
    where j.id = any (due) and (f.changelist_id, f.review_version) = (j.changelist_id, j.review_version) and f.opinion is null
      and not exists (select from criticizer.wrong_findings w where w.token = f.token);
    foreach part in array array['deliveries', 'recipients', 'review_records'] loop
        execute format('delete from criticizer.%I r using criticizer.jobs j where j.id = any ($1)
            and (r.changelist_id, r.review_version) = (j.changelist_id, j.review_version)', part) using due;
    end loop;
    update criticizer.jobs set purged = true where id = any (due);
    return cardinality(due);
end $$;
comment on function criticizer.purge_reviews is
    'Only rows of reviews that succeeded more than 30 days ago are deleted, and their jobs stay.';

---------------------------------------------------------------------- audit log

-- No role may set at, actor or role.
create table criticizer.audit_log (
    id      bigint generated always as identity primary key,
    at      timestamptz not null default now(),
    actor   text        not null default session_user,
    claimed text        not null default '', -- the name that the caller gave
    action  text        not null,
    object  text        not null,
    detail  jsonb       not null default '{}',
    role    text        not null default current_user,
    constraint audit_log_says_what check (action <> '' and object <> '')
);

create function criticizer.refuse_change() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    raise exception '% %: the table is append-only', lower(tg_op), tg_table_name
        using errcode = 'insufficient_privilege', hint = 'insert a row that corrects the earlier one';
end $$;
comment on function criticizer.refuse_change is
    'The audit log and the transitions are append-only, for their owner as well.';

create trigger audit_log_append_only
    before update or delete or truncate on criticizer.audit_log
    for each statement execute function criticizer.refuse_change();

-- The role criticizer_reader may call this function and read nothing itself
-- (security 9.4.3).
create function criticizer.read_artifact(namespace text, artifact text, who text, reason text) returns bytea
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    content bytea;
begin
    if coalesce(who, '') = '' or coalesce(reason, '') = '' then
        raise exception 'read artifact: who or reason is empty'
            using errcode = 'insufficient_privilege', hint = 'give the name of the reader and the reason';
    end if;
    case namespace
        when 'raw' then select body into content from raw.artifacts where id = artifact and expires_at > now();
        when 'redacted' then select body into content from redacted.artifacts where id = artifact and expires_at > now();
        when 'report' then select body into content from report.artifacts where id = artifact and expires_at > now();
    end case;
    insert into criticizer.audit_log (claimed, action, object, detail)
    values (who, 'artifact.show', namespace || ':' || artifact,
            jsonb_build_object('reason', reason, 'found', content is not null));
    return content;
end $$;
comment on function criticizer.read_artifact is
    'Nobody reads an artifact without a record of who and why.';

------------------------------------------------------------------------ outages

-- The circuit breakers that are not closed, one per worker process and stage. A process that
-- dies leaves its row: readers ignore rows that were not seen for 5 minutes.
create table criticizer.outages (
    stage     text        not null,
    worker    text        not null,
    since     timestamptz not null,
    seen_at   timestamptz not null default now(),
    half_open boolean     not null,
    class     text        not null,
    reason    text        not null,
    constraint outages_of_worker primary key (stage, worker)
);

-------------------------------------------------------------------------- watch

-- When unfinished reviews are due to be looked at by one of the workers.
create table criticizer.watch (
    due_at  timestamptz not null default now(),
    one_row boolean     not null default true,
    constraint watch_one_row_only primary key (one_row),
    constraint watch_one_row check (one_row)
);
insert into criticizer.watch default values;

-------------------------------------------------------------------- monitoring

-- The metrics that every worker exports with the same values
-- (docs/observability.md): counts, and ages in seconds; no names, no content. A
-- view reads with the rights of its owner: a role that reads the metrics needs no
-- access to the rows. What accumulates for ever is counted for the last 24 hours, by an
-- index, so that a scrape does not get slower with the years.
create view criticizer.figures (name, labels, figure) as
    select 'criticizer_reviews', '{"state": "in_progress"}'::jsonb, count(*)::double precision
    from criticizer.jobs where state = 'in_progress'
union all
    select 'criticizer_reviews', '{"state": "retryable_failed"}', count(*)
    from criticizer.jobs where state = 'retryable_failed'
union all
    select 'criticizer_reviews', jsonb_build_object('state', state), count(*)
    from criticizer.jobs where state in ('succeeded', 'canceled') and finished_at > now() - interval '24 hours' group by state
union all
    select 'criticizer_deliveries', jsonb_build_object('status', status), count(*)
    from criticizer.deliveries where status in ('pending', 'failed', 'held', 'waived') group by status
union all
    select 'criticizer_deliveries', '{"status": "sent"}', count(*)
    from criticizer.deliveries where status = 'sent' and notified_at > now() - interval '24 hours'
union all
    select 'criticizer_deliveries_confirmed', '{}', count(*)
    from criticizer.deliveries where confirmed_at > now() - interval '24 hours'
union all
    select 'criticizer_dead_letters', jsonb_build_object('state', state, 'stage', stage, 'class', error_class), count(*)
    from criticizer.dead_letters group by state, stage, error_class
union all
    select 'criticizer_review_oldest_seconds', '{}', coalesce(extract(epoch from now() - min(created_at)), 0)
    from criticizer.jobs where state = 'in_progress'
union all
    select 'criticizer_dead_letters_escalated', '{}', count(*)
    from criticizer.dead_letters where escalated and state in ('open', 'replaying') and state <> 'resolved'
union all
    select 'criticizer_dead_letter_oldest_seconds', '{}', coalesce(extract(epoch from now() - min(recorded_at)), 0)
    from criticizer.dead_letters where state in ('open', 'replaying') and state <> 'resolved'
union all
    select 'criticizer_replays_unexplained', '{}', count(*)
    from criticizer.replays where not explained
union all
    select 'criticizer_pages_unsent', '{}', count(*)
    from criticizer.pages p join criticizer.dead_letters l on l.id = p.dead_letter_id
    where p.sent_at is null and l.state in ('open', 'replaying')
union all
    select 'criticizer_outbox_depth', '{}', count(*)
    from criticizer.deliveries where status in ('pending', 'held')
union all
    select 'criticizer_outbox_oldest_seconds', '{}', coalesce(extract(epoch from now() - min(created_at)), 0)
    from criticizer.deliveries where status in ('pending', 'held')
union all
    select 'criticizer_deliveries_ambiguous', '{}', count(*)
    from criticizer.deliveries where begun
union all
    select 'criticizer_deliveries_unproven', '{}', count(*)
    from criticizer.deliveries where unproven > 0
union all
    select 'criticizer_retention_lag_seconds', '{"namespace": "raw"}', greatest(0, extract(epoch from now() - min(expires_at)))
    from raw.artifacts
union all
    select 'criticizer_retention_lag_seconds', '{"namespace": "redacted"}', greatest(0, extract(epoch from now() - min(expires_at)))
    from redacted.artifacts
union all
    select 'criticizer_retention_lag_seconds', '{"namespace": "report"}', greatest(0, extract(epoch from now() - min(expires_at)))
    from report.artifacts
union all
    select 'criticizer_retention_lag_seconds', '{"namespace": "answer"}', greatest(0, extract(epoch from now() - min(expires_at)))
    from answer.artifacts;

------------------------------------------------------------------------- grants

grant usage on schema criticizer to
    criticizer_fetch, criticizer_redact, criticizer_llm, criticizer_notify, criticizer_bookkeeping, criticizer_operator,
    criticizer_retention, criticizer_reader, criticizer_rewrite, criticizer_backend, criticizer_frontend;

grant insert (claimed, action, object, detail) on criticizer.audit_log to
    criticizer_fetch, criticizer_redact, criticizer_llm, criticizer_notify, criticizer_bookkeeping, criticizer_operator,
    criticizer_retention, criticizer_rewrite;

grant select on criticizer.migrations to
    criticizer_fetch, criticizer_redact, criticizer_llm, criticizer_notify, criticizer_bookkeeping, criticizer_operator,
    criticizer_retention, criticizer_reader, criticizer_rewrite, criticizer_backend, criticizer_frontend;

-- Storing an artifact again needs its id and expiry, never its body.
grant usage on schema raw to criticizer_fetch;
grant insert (id, body, ttl), update (body, ttl), select (id, expires_at) on raw.artifacts to criticizer_fetch;
grant insert (changelist_id, review_version, position, user_name, address, role), delete, select (changelist_id, review_version)
    on criticizer.recipients to criticizer_fetch;
grant select on criticizer.allowlist_versions to criticizer_fetch;
-- Integrated content is credited only if the changes that made it were reviewed: fetch sees
-- whether a changelist has such a review, and nothing else.
grant select (changelist_id, shelved, outcome) on criticizer.jobs to criticizer_fetch;
grant select, insert, update on criticizer.contents to criticizer_fetch;

grant usage on schema raw, redacted to criticizer_redact;
grant select on raw.artifacts to criticizer_redact;
grant insert (id, body, ttl), update (body, ttl), select (id, expires_at) on redacted.artifacts to criticizer_redact;

-- The llm role records findings and reads which are wrong. It cannot read who gave
-- an opinion, nor the opinion.
grant usage on schema redacted, report, answer to criticizer_llm;
grant select on redacted.artifacts to criticizer_llm;
grant insert (id, body, ttl), update (body, ttl), select (id, expires_at) on report.artifacts to criticizer_llm;
grant select, insert (id, body, ttl), update (body, ttl) on answer.artifacts to criticizer_llm;
grant select, insert, update on criticizer.token_days, criticizer.review_records to criticizer_llm;
grant insert (token, changelist_id, review_version, fingerprint, place_fingerprints, path, rule, category, severity),
      select (token, changelist_id, review_version, fingerprint)
    on criticizer.findings to criticizer_llm;
grant select (fingerprint) on criticizer.wrong_findings to criticizer_llm;

-- The notify role reads which reviews have ended, and nothing else of them.
grant usage on schema report to criticizer_notify;
grant select on report.artifacts, criticizer.recipients, criticizer.contents to criticizer_notify;
grant select, insert, update on criticizer.deliveries to criticizer_notify;
grant select (changelist_id, review_version, state, report, created_at, finished_at, shelved, skipped_by)
    on criticizer.jobs to criticizer_notify;

-- The bookkeeping role reads whether every recipient was notified, not the
-- recipients.
grant select, insert, update on criticizer.jobs, criticizer.dead_letters, criticizer.pages, criticizer.catch_up
    to criticizer_bookkeeping;
grant select, insert on criticizer.replays to criticizer_bookkeeping;
grant select on criticizer.replay_requests, criticizer.contents, criticizer.figures to criticizer_bookkeeping;
grant select, update (due_at) on criticizer.watch to criticizer_bookkeeping;
grant select, insert, update, delete on criticizer.outages
    to criticizer_fetch, criticizer_redact, criticizer_llm, criticizer_notify;
grant select on criticizer.outages to criticizer_bookkeeping;
grant select (changelist_id, review_version, status, notified_at) on criticizer.deliveries to criticizer_bookkeeping;

-- The operator role reads everything except the content of artifacts. An operator
-- changes an address by inserting a delivery; the row of the old address is kept.
grant usage on schema raw, redacted, report, answer to criticizer_operator;
grant select (id, stored_at, expires_at)
    on raw.artifacts, redacted.artifacts, report.artifacts, answer.artifacts to criticizer_operator;
grant select on
    criticizer.jobs, criticizer.contents, criticizer.catch_up, criticizer.allowlist_versions, criticizer.recipients,
    criticizer.deliveries, criticizer.dead_letters, criticizer.replay_requests, criticizer.replays, criticizer.pages,
    criticizer.findings, criticizer.wrong_findings, criticizer.token_days, criticizer.review_records,
    criticizer.audit_log, criticizer.figures, criticizer.watch, criticizer.outages, criticizer.restores
    to criticizer_operator;
grant update on criticizer.jobs, criticizer.deliveries, criticizer.dead_letters to criticizer_operator;
grant insert (changelist_id, review_version, recipient) on criticizer.deliveries to criticizer_operator;
grant insert, update (new_run_id, withdrawn_at) on criticizer.replay_requests to criticizer_operator;
grant insert, update (request_id) on criticizer.replays to criticizer_operator;
grant insert (who, reason, allowed, embargoed) on criticizer.allowlist_versions to criticizer_operator;
grant update (opinion, note, said_by, said_at) on criticizer.findings to criticizer_operator;
grant insert, delete on criticizer.wrong_findings to criticizer_operator;

grant usage on schema raw, redacted, report, answer to criticizer_retention;
grant delete, select (id, expires_at)
    on raw.artifacts, redacted.artifacts, report.artifacts, answer.artifacts to criticizer_retention;
grant delete, select (saved_at) on criticizer.recipients to criticizer_retention;
grant execute on function criticizer.forget_metadata, criticizer.purge_reviews to criticizer_retention;

grant execute on function criticizer.read_artifact to criticizer_reader;

------------------------------------------------------------------ rewrite queue

-- Messages, preferences and results (rewrite 10). A text may be stored more than once: with a unique id, a transaction that stores a text
-- waits for every open transaction that stores the same, and two that store two texts in
-- opposite orders deadlock.
create table rewrite.artifacts (
    copy       bigint generated always as identity primary key,
    id         text        not null,
    body       bytea       not null,
    stored_at  timestamptz not null default now(),
    expires_at timestamptz not null,
    ttl        interval    not null default '720 hours',
    constraint artifacts_id_is_hash check (id ~ '^[0-9a-f]{64}$'),
    constraint artifacts_body_present check (octet_length(body) > 0),
    constraint artifacts_ttl_30_days check (
        expires_at > stored_at and expires_at <= stored_at + interval '720 hours')
);
alter table rewrite.artifacts alter column body set storage external;
create index artifacts_of_text on rewrite.artifacts (id);
create index artifacts_expiry on rewrite.artifacts (expires_at);
create trigger artifacts_guarded before insert or delete or update of body, ttl on rewrite.artifacts
    for each row execute function criticizer.guard_artifact();

-- One message of a sender, for one or more recipients.
create table criticizer.rewrite_requests (
    rewrite_request_id uuid primary key,
    text_ref           text        not null, -- of the message, in rewrite.artifacts
    created_at         timestamptz not null default now(),
    constraint rewrite_requests_text_present check (text_ref like 'rewrite:%')
);

-- One row per run of a worker (rewrite 10). The counts are computed from
-- rewrite_transitions when the run ends.
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

-- One batch at a provider. batch_id is the submission key. It is committed here
-- before the request to the provider and is part of the batch's metadata there,
-- so that a batch whose provider ID was lost is found and not paid twice.
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
    create_error      text,        -- error class of a creation whose result is unknown
    provider_batch_id text,
    provider_status   text,
    submitted_at      timestamptz,
    polled_at         timestamptz,
    cancel_asked_at   timestamptz, -- the batch exceeded its time limit
    ended_at          timestamptz,
    final_at          timestamptz, -- when the provider was first seen to have ended the batch
    constraint rewrite_batches_state_known check (state in ('submitting', 'submitted', 'collected', 'abandoned')),
    constraint rewrite_batches_lane_known check (lane in ('same_language', 'cross_language')),
    constraint rewrite_batches_hold_jobs check (requests > 0),
    constraint rewrite_batches_submitted_has_id check (
        state not in ('submitted', 'collected') or (coalesce(provider_batch_id, '') <> '' and submitted_at is not null)),
    constraint rewrite_batches_ended_iff_final check ((ended_at is not null) = (state in ('collected', 'abandoned'))),
    constraint rewrite_batches_lease_has_end check ((lease_token is null) = (leased_until is null))
);
create index rewrite_batches_open on criticizer.rewrite_batches (created_at) where state in ('submitting', 'submitted');

-- The jobs. Names up to routing_decision are those of the contract (rewrite 4).
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
    preferences_ref                  text, -- of the recipient's preferences, in rewrite.artifacts
    result_ref                       text, -- of the rewrite, in rewrite.artifacts
    claim_token                      uuid, -- of the attempt that holds the claim: every write of the attempt is guarded by it
    begun_at                         timestamptz, -- when the request to the provider began under this claim
    batch_id                         uuid,
    run_id                           uuid, -- of the last change; null if an operator made it
    batch_part                       text, -- jobs of a rejected batch that may share the next one
    constraint rewrite_jobs_unit_unique unique (rewrite_request_id, recipient_user_id),
    constraint rewrite_jobs_of_request foreign key (rewrite_request_id) references criticizer.rewrite_requests (rewrite_request_id),
    constraint rewrite_jobs_of_batch foreign key (batch_id) references criticizer.rewrite_batches (batch_id),
    constraint rewrite_jobs_task_known check (task = 'complaint_rewrite'),
    constraint rewrite_jobs_surface_known check (surface in ('weekly_harmony', 'direct_message', 'other')),
    constraint rewrite_jobs_strength_known check (rewrite_strength in ('light_touch', 'full_reframe')),
    constraint rewrite_jobs_languages_are_tags check (status <> 'queued' or (
        case when jsonb_typeof(language_pair) = 'object' then language_pair - array['from', 'to'] = '{}'
            and language_pair @@ 'strict $.from like_regex "^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,8}$" && $.to like_regex "^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,8}$"' end) is true),
    constraint rewrite_jobs_status_known check (
        status in ('queued', 'processing', 'batch_submitted', 'completed', 'failed', 'canceled')),
    constraint rewrite_jobs_attempts_counted check (attempt_count >= 0 and max_attempts > 0),
    constraint rewrite_jobs_attempts_limited check (max_attempts <= 50),
    constraint rewrite_jobs_processing_is_claimed check (
        status <> 'processing' or (claimed_at is not null and coalesce(claimed_by, '') <> '')),
    constraint rewrite_jobs_submitted_has_batch check (status <> 'batch_submitted' or batch_id is not null),
    constraint rewrite_jobs_completed_has_result check (status <> 'completed' or result_ref is not null),
    constraint rewrite_jobs_failed_has_error check (
        status <> 'failed' or (coalesce(last_error, '') <> '' and last_error_at is not null)),
    -- Names are identifiers and the decision is short: it cannot hold a message (rewrite 4).
    constraint rewrite_jobs_routing_holds_no_text check (status <> 'queued' or (
        routing_decision is null or case when jsonb_typeof(routing_decision) = 'object' then
            routing_decision - array['provider', 'adapter_kind', 'base_url', 'model', 'prompt_version', 'policy_version',
                                     'execution_mode', 'cache_eligible', 'max_retries'] = '{}'
            and octet_length(routing_decision::text) <= 1000 end) is true),
    constraint rewrite_jobs_routing_has_mode check (status <> 'queued' or (
        routing_decision is null or routing_decision ->> 'execution_mode' in ('async', 'batch')) is true),
    constraint rewrite_jobs_routing_is_readable check (status <> 'queued' or (
        routing_decision is null or (
            routing_decision @@ 'strict $.provider like_regex "^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$" && $.adapter_kind like_regex "^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$" && $.model like_regex "^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$" && $.prompt_version like_regex "^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$" && $.policy_version like_regex "^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$"'
            and coalesce(routing_decision -> 'base_url', 'null') @@
                'strict $ == null || $ == "" || $ like_regex "^https?://[][A-Za-z0-9._:/%~-]{1,190}$"'
            and coalesce(routing_decision -> 'cache_eligible', 'null') @@ 'strict $ == null || $ == true || $ == false'
            and coalesce(routing_decision -> 'max_retries', 'null') @@ 'strict $ == null || ($ >= 0 && $ <= 50 && $.floor() == $)')) is true),
    constraint rewrite_jobs_times_are_finite check (status in ('completed', 'failed', 'canceled') or (
        coalesce(not_before_at, created_at) >= '2000-01-01Z' and coalesce(not_before_at, created_at) < '3000-01-01Z'
        and isfinite(created_at) and isfinite(updated_at) and isfinite(coalesce(claimed_at, updated_at))
        and isfinite(coalesce(begun_at, updated_at)) and isfinite(coalesce(last_error_at, updated_at))) is true)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
-- Partial indexes: the cost of a claim does not depend on the number of finished
-- jobs.
create index rewrite_jobs_claimable on criticizer.rewrite_jobs (execution_mode, created_at, job_id) where status = 'queued';
create index rewrite_jobs_claimed on criticizer.rewrite_jobs (claimed_at) where status = 'processing';
create index rewrite_jobs_in_batch on criticizer.rewrite_jobs (batch_id) where batch_id is not null;

-- Every change of a job's status. Triggers write it, in the transaction of the
-- change. rewrite_transitions_legal holds the same table as docs/states.md
-- (rewrite 3): a statement that makes another change fails as a whole. Every
-- change of a job inserts a row here, so the table has few indexes; the rows of a
-- run are found by time.
create table criticizer.rewrite_transitions (
    id            bigint generated always as identity,
    job_id        uuid        not null,
    at            timestamptz not null default now(),
    login         text        not null default session_user,
    from_status   text, -- null: enqueued
    to_status     text        not null,
    attempt_count integer     not null,
    error         text, -- why the job failed or was queued again
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

-- The triggers run per statement, not per row, so that a claim is one insert. They
-- are security definer: no role may write transitions itself.
create function criticizer.record_rewrite_transition() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if tg_op = 'INSERT' then
        insert into criticizer.rewrite_transitions (job_id, to_status, attempt_count)
        select job_id, status, attempt_count from fresh order by created_at;
        return null;
    end if;
    insert into criticizer.rewrite_transitions (job_id, from_status, to_status, attempt_count, error, run_id, batch_id)
    select n.job_id, o.status, n.status, n.attempt_count,
           case when n.status in ('queued', 'failed') then n.last_error end, n.run_id, coalesce(n.batch_id, o.batch_id)
    from fresh n join gone o using (job_id)
    where o.status <> n.status;
    return null;
end $$;
comment on function criticizer.record_rewrite_transition is
    'Every change of a status has its row, in the transaction of the change, and is a legal one.';

create trigger rewrite_transitions_append_only
    before update or delete or truncate on criticizer.rewrite_transitions
    for each statement execute function criticizer.refuse_change();
create trigger rewrite_jobs_enqueued_recorded after insert on criticizer.rewrite_jobs
    referencing new table as fresh for each statement execute function criticizer.record_rewrite_transition();
create trigger rewrite_jobs_transition_recorded after update on criticizer.rewrite_jobs
    referencing old table as gone new table as fresh for each statement execute function criticizer.record_rewrite_transition();

-- The database evaluates decision and languages while the job is queued, so neither changes
-- from then on.
create function criticizer.refuse_rewrite_change() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    raise exception 'change rewrite job %: decision and languages of a claimed job and the result of an ended one are final', old.job_id
        using errcode = 'insufficient_privilege';
end $$;
comment on function criticizer.refuse_rewrite_change is
    'A decision is what was evaluated while the job was queued, and the result of an ended job is what it ended with.';
create trigger rewrite_jobs_are_final before update of routing_decision, language_pair, result_ref on criticizer.rewrite_jobs
    for each row when (
        ((old.status <> 'queued' or new.status <> 'queued')
            and (new.routing_decision, new.language_pair) is distinct from (old.routing_decision, old.language_pair))
        or (old.status in ('completed', 'failed', 'canceled') and new.result_ref is distinct from old.result_ref))
    execute function criticizer.refuse_rewrite_change();

-- Ends a run and counts its transitions (rewrite 10). No role writes the counts itself.
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
comment on function criticizer.finish_rewrite_run is
    'The counts of a run are those of its transitions.';

-- Creates a job; backends call it. job has the contract's fields that a backend
-- sets; sealed is the output of `starter rewrite seal`. A second call for the same request and recipient returns the first job and changes
-- nothing; with another text it is refused. A text that is stored and lives long enough is
-- not stored again.
create function criticizer.enqueue_rewrite(job jsonb, sealed jsonb)
    returns table (job_id uuid, status text, created boolean)
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    -- One text per field. It quotes no value, and no name of a field that may be a text.
    faults    text := (select string_agg(f, '; ') from (
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
        select 'sealed: want at most 400000 bytes' where octet_length(sealed::text) > 400000) as found_faults (f));
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
        coalesce((job ->> 'job_id')::uuid, gen_random_uuid()), request, job ->> 'surface', job ->> 'rewrite_strength',
        job -> 'language_pair', recipient, (job ->> 'recipient_snapshot_id')::uuid,
        (job ->> 'recipient_preference_snapshot_id')::uuid, not_before,
        least(coalesce((job ->> 'max_attempts')::numeric::integer, 2), (job -> 'routing_decision' ->> 'max_retries')::numeric::integer + 1),
        nullif(job -> 'routing_decision', 'null'), 'rewrite:' || (sealed -> 'preferences' ->> 'id'))
    on conflict (rewrite_request_id, recipient_user_id) do nothing;
    made := found;
    return query select j.job_id, j.status, made from criticizer.rewrite_jobs j
        where j.rewrite_request_id = request and j.recipient_user_id = recipient;
end $$;
comment on function criticizer.enqueue_rewrite is
    'A request and recipient have one job, whose message does not change; a refusal quotes no text of a sender.';

-- The sealed result of a completed job, which `starter rewrite open` decrypts; null if the
-- job is not completed or its result has expired. The audit log records every call
-- (security 9.4.3).
create function criticizer.rewrite_result(job uuid) returns jsonb
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
comment on function criticizer.rewrite_result is
    'Nobody reads a result without a record.';

-- The columns of a job that backends and frontends may read (rewrite 11). position counts
-- the queued jobs of the same execution mode up to this one, from 1.
create view criticizer.rewrite_job_states as
    select j.job_id, j.rewrite_request_id, j.recipient_user_id, j.status, j.created_at, j.updated_at,
           j.last_error, j.attempt_count, j.max_attempts, j.not_before_at,
           case when j.status = 'queued' then (
               select count(*) from criticizer.rewrite_jobs q
               where q.status = 'queued' and q.execution_mode is not distinct from j.execution_mode
                 and (q.created_at, q.job_id) <= (j.created_at, j.job_id)) end as position
    from criticizer.rewrite_jobs j;

grant usage on schema rewrite to criticizer_rewrite, criticizer_operator, criticizer_retention;
-- The worker deletes expired texts itself: an installation of the queue alone has no stage
-- retention.
grant select, insert (id, body, ttl), delete on rewrite.artifacts to criticizer_rewrite;
grant select, insert, update on criticizer.rewrite_batches to criticizer_rewrite;
grant select, insert (run_id, worker, max_jobs_per_run, event, finished_at) on criticizer.rewrite_runs to criticizer_rewrite;
grant select on criticizer.rewrite_jobs, criticizer.rewrite_requests, criticizer.rewrite_transitions to criticizer_rewrite;
grant update (status, updated_at, not_before_at, claimed_at, claimed_by, attempt_count, last_error, last_error_at,
              routing_decision, result_ref, claim_token, begun_at, batch_id, run_id, batch_part)
    on criticizer.rewrite_jobs to criticizer_rewrite;
grant execute on function criticizer.finish_rewrite_run to criticizer_rewrite;

grant select (id, stored_at, expires_at) on rewrite.artifacts to criticizer_operator;
grant select on
    criticizer.rewrite_jobs, criticizer.rewrite_requests, criticizer.rewrite_transitions, criticizer.rewrite_batches,
    criticizer.rewrite_runs, criticizer.rewrite_job_states
    to criticizer_operator;
grant update (status, updated_at, not_before_at, claimed_at, claimed_by, attempt_count, last_error, last_error_at,
              claim_token, begun_at, batch_id, run_id) on criticizer.rewrite_jobs to criticizer_operator;
grant update (state, ended_at, lease_token, leased_until) on criticizer.rewrite_batches to criticizer_operator;

grant delete, select (id, expires_at) on rewrite.artifacts to criticizer_retention;

grant execute on function criticizer.enqueue_rewrite, criticizer.rewrite_result to criticizer_backend;
grant select on criticizer.rewrite_job_states to criticizer_backend, criticizer_frontend;

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
        create role criticizer_audit nologin;
    exception when duplicate_object or unique_violation or insufficient_privilege then null;
    end;
    if not super then
        begin
            execute format('grant criticizer_audit to %I', login);
        exception when insufficient_privilege or unique_violation then null;
        end;
    end if;
    alter schema criticizer owner to criticizer_audit;
    alter table criticizer.audit_log owner to criticizer_audit;
    set local role criticizer_audit;
    execute format('grant create, usage on schema criticizer to %I', login);
    execute format('grant select, insert (claimed, action, object, detail) on criticizer.audit_log to %I', login);
    reset role;
    if not super then
        begin
            execute format('revoke criticizer_audit from %I', login);
        exception when insufficient_privilege then
            raise warning 'login % is still a member of criticizer_audit: revoke it as an administrator', login;
        end;
    end if;
end $$;
