-- +goose Up

create schema if not exists criticizer;

-- One row per review: the lasting dedupe gate (review-notification 6.1, 6.2).
-- The idempotency key is also the workflow ID. While Temporal retries a stage the
-- job is in_progress; retryable_failed is for a job set aside between runs.
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
    constraint jobs_key_unique unique (idempotency_key),
    constraint jobs_version_unique unique (changelist_id, review_version),
    constraint jobs_key_present check (idempotency_key <> ''),
    constraint jobs_changelist_positive check (changelist_id > 0),
    constraint jobs_version_positive check (review_version > 0),
    constraint jobs_state_known check (
        state in ('in_progress', 'retryable_failed', 'succeeded', 'dead_lettered', 'canceled')),
    constraint jobs_outcome_known check (outcome in ('clean', 'findings', 'partial', 'not_reviewed')),
    constraint jobs_outcome_iff_succeeded check ((outcome is not null) = (state = 'succeeded')),
    constraint jobs_finished_iff_final check (
        (finished_at is not null) = (state in ('succeeded', 'dead_lettered', 'canceled'))),
    constraint jobs_findings_fit_outcome check (
        findings >= 0
        and (outcome is distinct from 'clean' or findings = 0)
        and (outcome is distinct from 'findings' or findings > 0))
);

-- Who may be told about a change, as the fetch stage learned it. Addresses live
-- here and in deliveries, never in Temporal's history, and here only as long as
-- the report can be kept.
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

-- The outbox: one row per intent "this recipient has been told about this
-- version" (review-notification 6.3, 10.2).
create table criticizer.deliveries (
    id              bigint generated always as identity primary key,
    changelist_id   bigint      not null,
    review_version  integer     not null,
    recipient       text        not null,
    status          text        not null default 'pending',
    attempts        integer     not null default 0,
    last_attempt_at timestamptz,
    begun           boolean     not null default false, -- an attempt has begun and its end is unknown
    notification_id text,
    notified_at     timestamptz,
    evidence        text,
    failure_class   text,
    created_at      timestamptz not null default now(),
    constraint deliveries_intent_unique unique (changelist_id, recipient, review_version),
    constraint deliveries_of_job foreign key (changelist_id, review_version)
        references criticizer.jobs (changelist_id, review_version),
    constraint deliveries_recipient_lower check (recipient = lower(recipient) and recipient <> ''),
    constraint deliveries_status_known check (status in ('pending', 'sent', 'failed', 'held', 'waived')),
    constraint deliveries_notified_iff_sent check ((notified_at is not null) = (status = 'sent')),
    constraint deliveries_notified_has_id check (notified_at is null or notification_id is not null),
    constraint deliveries_notification_id_present check (notification_id <> ''),
    constraint deliveries_failed_has_class check (status <> 'failed' or failure_class is not null),
    constraint deliveries_attempts_timed check (
        attempts >= 0 and (attempts > 0) = (last_attempt_at is not null)),
    constraint deliveries_begun_is_open check (
        not begun or (attempts > 0 and status not in ('sent', 'failed')))
);

-- What could not be finished (criticizer-processing 8.4), one row per run.
-- failed_again: it was replayed, and the replay left a dead letter of its own.
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
    constraint dead_letters_run_unique unique (workflow_id, run_id),
    constraint dead_letters_state_known check (state in ('open', 'replaying', 'failed_again', 'resolved')),
    constraint dead_letters_resolved_iff_dated check ((resolved_at is not null) = (state = 'resolved')),
    constraint dead_letters_class_present check (error_class <> ''),
    constraint dead_letters_stage_present check (stage <> ''),
    constraint dead_letters_payload_complete check (
        payload ?& array['error_class', 'last_stack', 'sanitized_context', 'first_failure_at', 'last_failure_at', 'stage'])
);
create index dead_letters_unresolved on criticizer.dead_letters (recorded_at) where state <> 'resolved';

-- Who replayed a dead letter and why (criticizer-processing 8.5). A reset
-- without both is unexplained.
create table criticizer.replays (
    id             bigint generated always as identity primary key,
    dead_letter_id bigint      not null,
    new_run_id     text        not null,
    who            text        not null,
    reason         text        not null,
    explained       boolean     not null generated always as (who <> '' and reason <> '') stored,
    started_at     timestamptz not null default now(),
    constraint replays_of_dead_letter foreign key (dead_letter_id) references criticizer.dead_letters (id),
    constraint replays_run_unique unique (dead_letter_id, new_run_id),
    constraint replays_run_present check (new_run_id <> '')
);

-- Append-only. at and login are the database's own word: no role may set them.
create table criticizer.audit_log (
    id     bigint generated always as identity primary key,
    at     timestamptz not null default now(),
    login  text        not null default session_user,
    actor  text        not null,
    action text        not null,
    object text        not null,
    detail jsonb       not null default '{}',
    constraint audit_log_says_who_what check (actor <> '' and action <> '' and object <> '')
);

-- +goose StatementBegin
create function criticizer.refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'audit_log is append-only: % refused', tg_op using errcode = 'insufficient_privilege';
end $$;
-- +goose StatementEnd

create trigger audit_log_append_only
    before update or delete or truncate on criticizer.audit_log
    for each statement execute function criticizer.refuse_change();

-- Tells every role the schema's version without showing it goose's table.
-- +goose StatementBegin
create function criticizer.schema_version() returns bigint
    language plpgsql stable security definer set search_path = '' as $$
begin
    return (select max(version_id) from criticizer.migrations where is_applied);
end $$;
-- +goose StatementEnd
