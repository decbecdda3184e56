-- Sections: roles, reviews, delivery, dead letters, feedback, cost, artifacts, retention,
-- audit log, watch, monitoring, grants, owner of the audit log. The database
-- sets all times: the clocks of the hosts may differ.

create schema criticizer;

-- An artifact belongs to one namespace, and each namespace is a schema, so that
-- grants decide which role reads what (security 9.4.4).
create schema raw;
create schema redacted;
create schema report;
create schema answer;

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
                                'reader'] loop
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
    coverage        text,                           -- what that review read, in words: no path, no content
    skipped_by      text,                           -- rule that skipped the review; null if the review read the change
    shelved         boolean     not null default false, -- the review is of the shelf, not of the submitted change
    shelf_event     text,                           -- the event that asked for the review of a shelf
    asked_version   integer,                        -- version asked for, if reviews of the shelf had taken it
    checked_at      timestamptz,                    -- when Temporal was last asked for the run's state
    purged          boolean     not null default false, -- the rows of the review were deleted by policy
    closed_how      text,                           -- who ended the run of a canceled review, or forgot the review, and why
    forgotten_at    timestamptz,                    -- when an operator deleted what was stored about the review
    only_new        boolean     not null default false, -- the review reports only findings that the version before lacks
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
create index jobs_dead on criticizer.jobs (id) where state = 'retryable_failed';
create index jobs_ended on criticizer.jobs (finished_at, state) where state in ('succeeded', 'canceled');
create index jobs_begun on criticizer.jobs (created_at) where state = 'in_progress';
create index jobs_unchecked on criticizer.jobs (coalesce(checked_at, updated_at)) where state = 'in_progress';
create index jobs_unpurged on criticizer.jobs (finished_at) where state = 'succeeded' and not purged;

-- What the reviews of shelves read, to compare a submitted change with its shelf,
-- and which shelf a submitted change came from; and the changes that are skipped.
create table criticizer.contents (
    changelist_id  bigint  not null,
    review_version integer not null,
    shelved        boolean not null,
    digest         text    not null, -- empty if the server did not return all contents
    shelf_of       bigint  not null, -- changelist of the shelf: the number before the submit
    skipped_by     text,             -- rule by which the change is not reviewed
    constraint contents_of_review primary key (changelist_id, review_version),
    constraint contents_of_job foreign key (changelist_id, review_version)
        references criticizer.jobs (changelist_id, review_version)
);

-- The outcome of each report. Role llm writes it, and adopt_outcome copies it; a job ends with
-- it, never with an outcome that a workflow names.
create table criticizer.outcomes (
    changelist_id  bigint      not null,
    review_version integer     not null,
    report         text        not null,
    outcome        text        not null,
    findings       integer     not null,
    stand_in       boolean     not null,              -- a simulation answered in place of a model
    coverage       text        not null,
    tally          jsonb       not null,              -- review.Tally
    recorded_at    timestamptz not null default now(),
    of_changelist  bigint,                            -- review of the shelf that made the report, if it was adopted
    of_version     integer,
    constraint outcomes_of_report primary key (changelist_id, review_version, report),
    constraint outcomes_adopted_from_review check ((of_changelist is null) = (of_version is null))
);
create index outcomes_recorded on criticizer.outcomes (recorded_at);

-- The parts of a change that no model could read, of a report.
create table criticizer.gaps (
    changelist_id  bigint      not null,
    review_version integer     not null,
    report         text        not null,
    position       integer     not null,
    path           text        not null, -- redacted
    lines          text        not null, -- such as 12-40
    why            text        not null, -- review.SkipReason
    class          text        not null, -- failure.Class of the model's last error, or empty
    context        text        not null, -- status, code and request ID of the endpoint, or empty
    recorded_at    timestamptz not null default now(),
    constraint gaps_of_report primary key (changelist_id, review_version, report, position)
);
create index gaps_recorded on criticizer.gaps (recorded_at);

-- Lets a submit use the report of its shelf's review, if both had the same content. Stage
-- fetch recorded the contents; the caller names no outcome.
create function criticizer.adopt_outcome(changelist bigint, version integer, adopted text) returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    found bigint;
begin
    insert into criticizer.outcomes (changelist_id, review_version, report, outcome, findings, stand_in, coverage, tally, of_changelist, of_version)
    select this.changelist_id, this.review_version, o.report, o.outcome, o.findings, o.stand_in, o.coverage, o.tally, o.changelist_id, o.review_version
    from criticizer.contents this
    join criticizer.contents shelf on shelf.changelist_id = this.shelf_of and shelf.shelved and shelf.digest = this.digest
    join criticizer.jobs j on j.changelist_id = shelf.changelist_id and j.review_version = shelf.review_version
    join criticizer.outcomes o on o.changelist_id = j.changelist_id and o.review_version = j.review_version and o.report = j.report
    where this.changelist_id = adopt_outcome.changelist and this.review_version = adopt_outcome.version
      and not this.shelved and this.digest <> '' and j.state = 'succeeded' and j.report = adopted
    on conflict on constraint outcomes_of_report do update set report = excluded.report;
    get diagnostics found = row_count;
    return found;
end $$;
comment on function criticizer.adopt_outcome is
    'Only a review of the same content lends its outcome.';

-- Progress of the search for changelists that no trigger reported, per Perforce
-- server. Changelists up to since are older than the installation and are not
-- reviewed.
create table criticizer.catch_up (
    server_id  text primary key,
    since      bigint      not null,
    mark       bigint      not null, -- every changelist up to here was checked
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
    why            text,                            -- why the person is not notified; empty: notified; null: not decided
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
    bounced_at      timestamptz,                        -- when a server refused the address; nobody mails it until an operator sends again
    missing_at      timestamptz,                        -- when a source of evidence that would have the sent mail first had none
    constraint deliveries_intent_unique unique (changelist_id, recipient, review_version),
    constraint deliveries_of_job foreign key (changelist_id, review_version)
        references criticizer.jobs (changelist_id, review_version),
    constraint deliveries_recipient_lower check (recipient = lower(recipient)),
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
    constraint deliveries_channel_names_recipient check (
        (channel = 'mail' and recipient ~ '[@:]')
        or (channel <> 'mail' and channel ~ '^[a-z]+$' and recipient = channel))
);
create index deliveries_of_status on criticizer.deliveries (status, checked_at);
create index deliveries_sent on criticizer.deliveries (notified_at) where status = 'sent';
create index deliveries_confirmed on criticizer.deliveries (confirmed_at);
create index deliveries_begun on criticizer.deliveries (id) where begun;
create index deliveries_unproven on criticizer.deliveries (id) where unproven > 0;
create index deliveries_bounced on criticizer.deliveries (recipient) where bounced_at is not null;
create index deliveries_missing on criticizer.deliveries (id) where missing_at is not null;
create index deliveries_with_address on criticizer.deliveries (created_at) where channel = 'mail' and recipient not like 'forgotten:%';

-- One row per attempt (notification 8.1). Without a result the attempt runs, or its worker died.
create table criticizer.delivery_attempts (
    delivery_id bigint      not null,
    attempt     integer     not null,
    begun_at    timestamptz not null default now(),
    ended_at    timestamptz,
    accepted_at timestamptz,                     -- when the provider accepted the message; marking it sent comes later
    result      text        not null default '', -- accepted, or the class of the failure
    answer      text        not null default '', -- of the provider: its code and request ID
    detail      text        not null default '', -- the failure, without addresses
    evidence    text        not null default '', -- the source that reported the acceptance
    constraint delivery_attempts_numbered primary key (delivery_id, attempt),
    constraint delivery_attempts_of_delivery foreign key (delivery_id) references criticizer.deliveries (id) on delete cascade,
    constraint delivery_attempts_ended_with_result check ((ended_at is not null) = (result <> '')),
    constraint delivery_attempts_accepted_has_result check (accepted_at is null or result = 'accepted')
);

-- One mail to the author per dead letter of an early stage that stays open. Its key is not the
-- key of the digest, so that no look-up of the digest finds it.
create table criticizer.notices (
    changelist_id   bigint      not null,
    review_version  integer     not null,
    begun_at        timestamptz,                        -- of the last attempt, if its result is unknown
    checked_at      timestamptz not null default now(),
    notification_id text,
    notified_at     timestamptz,
    why             text,                               -- why the author is not notified
    final           boolean     not null default false, -- no further attempt
    constraint notices_once primary key (changelist_id, review_version),
    constraint notices_of_job foreign key (changelist_id, review_version)
        references criticizer.jobs (changelist_id, review_version),
    constraint notices_notified_has_id check ((notified_at is null) = (notification_id is null))
);

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
    update criticizer.notices set begun_at = restored.backup_at where not final and begun_at is null;
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

-- A job succeeds only by these two functions: its outcome, counts and skip rule are what stages
-- llm and fetch recorded, and the caller names none of them.
create function criticizer.finish_job(key text, made text) returns boolean
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update criticizer.jobs j
    set state = 'succeeded', outcome = o.outcome, findings = o.findings, report = o.report, coverage = o.coverage,
        updated_at = now(), finished_at = now()
    from criticizer.outcomes o
    where j.idempotency_key = key
      and o.changelist_id = j.changelist_id and o.review_version = j.review_version and o.report = made
      and j.state <> 'succeeded'
      and not exists (
        select from criticizer.deliveries d
        where d.changelist_id = j.changelist_id and d.review_version = j.review_version
          and d.notified_at is null and d.status <> 'waived');
    return found;
end $$;
comment on function criticizer.finish_job is
    'All recipients were notified, and stage llm recorded the outcome of the report.';

create function criticizer.skip_job(key text, rule text) returns boolean
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update criticizer.jobs j
    set state = 'succeeded', outcome = 'not_reviewed', skipped_by = rule, updated_at = now(), finished_at = now()
    where j.idempotency_key = key and j.state <> 'succeeded'
      and (j.shelved and rule in ('the shelf has not changed since its last review',
                                  'the changelist was shelved again before the review was over')
           or exists (select from criticizer.contents c
                      where c.changelist_id = j.changelist_id and c.review_version = j.review_version and c.skipped_by = rule));
    return found;
end $$;
comment on function criticizer.skip_job is
    'Stage fetch recorded the rule; only the review of a shelf is also skipped because of another shelf.';

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
    constraint replay_requests_of_dead_letter foreign key (dead_letter_id) references criticizer.dead_letters (id) on delete cascade,
    constraint replay_requests_say_who_why check (who <> '' and reason <> ''),
    constraint replay_requests_end_once check (new_run_id is null or withdrawn_at is null),
    constraint replay_requests_run_present check (new_run_id <> '')
);
create index replay_requests_of_letter on criticizer.replay_requests (dead_letter_id);

-- The replay records: who reset a run, and why. A reset is explained by an operator's request,
-- by the reason that its caller gave Temporal, or by an operator who has acknowledged it. The
-- Temporal UI has a text of its own in place of a reason.
create table criticizer.replays (
    id             bigint generated always as identity primary key,
    dead_letter_id bigint      not null,
    new_run_id     text        not null,
    who            text        not null,
    reason         text        not null,
    started_at     timestamptz not null default now(),
    request_id     bigint,
    acknowledged_by text,
    acknowledged_at timestamptz,
    explained      boolean     not null generated always as (
        request_id is not null or acknowledged_at is not null
        or (trim(reason) <> '' and reason not ilike 'reset from the web ui%')) stored,
    constraint replays_acknowledged_by_present check ((acknowledged_by is null) = (acknowledged_at is null)),
    constraint replays_of_dead_letter foreign key (dead_letter_id) references criticizer.dead_letters (id) on delete cascade,
    constraint replays_of_request foreign key (request_id) references criticizer.replay_requests (id) on delete cascade,
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
    constraint pages_of_dead_letter foreign key (dead_letter_id) references criticizer.dead_letters (id) on delete cascade,
    constraint pages_reason_known check (reason in ('escalated', 'bug', 'denied')),
    constraint pages_attempts_positive check (attempts >= 0)
);
create index pages_unsent on criticizer.pages (next_attempt_at) where sent_at is null;
create index replays_unexplained on criticizer.replays (id) where not explained;

-- Begins the notice of a dead letter that is open for the time given, or returns no row. Notices
-- that were not tried come first, then those tried longest ago, at least half an hour. The lock on
-- the letter keeps a replay from beginning meanwhile. again means that an attempt of unknown
-- result began at that time, or that a restore may have lost one since then.
create function criticizer.begin_notice(open_for interval, out changelist bigint, out version integer, out stage text,
        out class text, out failed_at timestamptz, out begun timestamptz, out again boolean)
    returns setof record language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    select l.changelist_id, l.review_version, l.stage, l.error_class, l.last_failure_at
    into changelist, version, stage, class, failed_at
    from criticizer.dead_letters l
    join criticizer.jobs j on j.idempotency_key = l.workflow_id and j.state = 'retryable_failed'
    left join criticizer.notices n on (n.changelist_id, n.review_version) = (l.changelist_id, l.review_version)
    where l.state = 'open' and l.stage in ('fetch', 'llm') and l.recorded_at <= now() - open_for
      and (n.checked_at is null or not n.final and n.checked_at <= now() - interval '30 minutes')
    order by n.checked_at nulls first, l.id limit 1 for update of l skip locked;
    if found then
        insert into criticizer.notices as n (changelist_id, review_version, begun_at)
        select changelist, version, min(r.backup_at) from criticizer.restores r
        where r.newest_changelist >= changelist and r.restored_at > now() - interval '720 hours'
        on conflict on constraint notices_once do update set checked_at = now() returning n.begun_at into begun;
        again := begun is not null;
        begun := coalesce(begun, now());
        return next;
    end if;
end $$;
comment on function criticizer.begin_notice is
    'The notify role learns which reviews wait for an operator, and nothing else of the dead letters.';

----------------------------------------------------------------------- feedback

-- The reported findings without their content. A finding that an operator has accepted to be
-- wrong is not reported again: place and shingles recognise it in later versions.
create table criticizer.findings (
    token              text primary key,
    changelist_id      bigint      not null,
    review_version     integer     not null,
    fingerprint        text        not null,
    place_fingerprints text[]      not null default '{}', -- of its other places
    place              text        not null,              -- digest of path and category
    shingles           integer[]   not null default '{}', -- digests of the words of its code
    path               text        not null,
    rule               text        not null default '', -- rule pack of the file, empty if the file has none
    category           text        not null,
    severity           text        not null,
    verbatim           boolean     not null default false, -- the file has its quote as it is
    reported_at        timestamptz not null default now(),
    accepted_by        text,
    accepted_at        timestamptz,
    constraint findings_once_per_version unique (changelist_id, review_version, fingerprint),
    constraint findings_token_is_ours check (token ~ '^[a-z2-7]{13}$'),
    constraint findings_accepted_by_somebody check ((accepted_by is null) = (accepted_at is null))
);
create index findings_reported_at on criticizer.findings (reported_at);
create index findings_with_path on criticizer.findings (reported_at) where path <> '';

create index findings_at_place on criticizer.findings (place);

-- What readers say about findings. An opinion hides nothing: other readers see it.
create table criticizer.opinions (
    token   text,
    said_by text,
    opinion text        not null,
    note    text        not null default '',
    said_at timestamptz not null,
    primary key (token, said_by),
    constraint opinions_on_finding foreign key (token) references criticizer.findings (token) on delete cascade,
    constraint opinions_known check (opinion in ('useful', 'wrong', 'fixed'))
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
    primary key (changelist_id, review_version),
    constraint review_records_not_negative check (tokens >= 0 and calls >= 0)
);

---------------------------------------------------------------------- artifacts

-- Bodies are encrypted and compressed: external storage keeps TOAST from
-- compressing them again. The TTL counts from stored_at, the last time the body
-- was stored. It is given in hours: a day may have 23 or 25 (security 9.4.1).

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
alter table redacted.artifacts alter column body set storage external;
create index artifacts_expiry on redacted.artifacts (expires_at);
-- A body begins with a format byte and the changelist that it belongs to (store/artifact).
create index artifacts_owner on redacted.artifacts (substring(body for 9));

create table report.artifacts (like redacted.artifacts including all);

-- The answer cache: a retried attempt and a rerun send only the requests that have
-- no answer yet. The id is a keyed hash of the request.
create table answer.artifacts (like redacted.artifacts including all);

create table raw.artifacts (like redacted.artifacts including all);
alter table raw.artifacts alter column ttl set default '168 hours', drop constraint artifacts_ttl_30_days;
alter table raw.artifacts add constraint artifacts_ttl_7_days check (
    expires_at > stored_at and expires_at <= stored_at + interval '168 hours');

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
-- it. A bounced address stays in its newest row, so that it is not mailed again. The path of a finding that is not reported again stays.
create function criticizer.forget_metadata(out addresses bigint, out paths bigint)
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update criticizer.deliveries d set recipient = criticizer.forgotten_recipient(d)
    where d.channel = 'mail' and d.recipient not like 'forgotten:%' and d.created_at <= now() - interval '720 hours'
      and not d.begun and coalesce(greatest(d.last_attempt_at, d.notified_at) <= now() - interval '720 hours', true)
      and (d.bounced_at is null or exists (
        select from criticizer.deliveries newer
        where newer.recipient = d.recipient and (newer.bounced_at, newer.id) > (d.bounced_at, d.id)))
      and not exists (
        select from criticizer.jobs j
        where j.changelist_id = d.changelist_id and j.review_version = d.review_version and j.state = 'in_progress');
    get diagnostics addresses = row_count;
    update criticizer.findings set path = ''
    where path <> '' and reported_at <= now() - interval '720 hours' and accepted_at is null;
    get diagnostics paths = row_count;
    delete from criticizer.gaps where recorded_at <= now() - interval '720 hours';
end $$;
comment on function criticizer.forget_metadata is
    'Addresses that work and paths are kept for 30 days; who forgets them cannot read them.';

-- A job rejects a second review of the same version. Findings that are not reported again
-- and bounced addresses stay as well.
create function criticizer.purge_reviews(ttl interval, at_most bigint) returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    due bigint[] := array(
        select id from criticizer.jobs
        where state = 'succeeded' and not purged and finished_at <= now() - greatest(ttl, interval '720 hours')
        order by finished_at limit at_most for update skip locked);
    part text;
begin
    delete from criticizer.dead_letters l using criticizer.jobs j where j.id = any (due) and l.workflow_id = j.idempotency_key;
    delete from criticizer.findings f using criticizer.jobs j
    where j.id = any (due) and (f.changelist_id, f.review_version) = (j.changelist_id, j.review_version) and f.accepted_at is null;
    delete from criticizer.deliveries d using criticizer.jobs j
    where j.id = any (due) and (d.changelist_id, d.review_version) = (j.changelist_id, j.review_version)
      and (d.bounced_at is null or d.recipient like 'forgotten:%');
    foreach part in array array['recipients', 'notices', 'review_records', 'outcomes'] loop
        execute format('delete from criticizer.%I r using criticizer.jobs j where j.id = any ($1)
            and (r.changelist_id, r.review_version) = (j.changelist_id, j.review_version)', part) using due;
    end loop;
    update criticizer.jobs set purged = true where id = any (due);
    return cardinality(due);
end $$;
comment on function criticizer.purge_reviews is
    'Only rows of reviews that succeeded more than 30 days ago are deleted, and their jobs stay.';

-- Deletes what is stored about all reviews of a changelist, unless one is in progress or an
-- attempt to send is in doubt, which refusal (store.ForgetRefusal) then says. Jobs, outcomes, costs
-- and keyed digests of addresses stay: a later trigger of the same version finds the job, and sends
-- nothing. related are the other numbers of a renumbered shelf whose reviews are not forgotten.
create function criticizer.forget_changelist(changelist bigint, who text, reason text,
        out refusal text, out artifacts bigint, out findings bigint, out addresses bigint, out related bigint[])
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    owned   bytea := '\x01' || int8send(changelist); -- how the bodies of its artifacts begin
    letters bigint[];
    deleted bigint;
    part text;
begin
    if coalesce(who, '') = '' or coalesce(reason, '') = '' then
        raise exception 'forget changelist: who or reason is empty'
            using errcode = 'insufficient_privilege', hint = 'give the name of the operator and the reason';
    end if;
    perform pg_advisory_xact_lock(hashtextextended('criticizer changelist ' || changelist, 0));
    -- A row that refers to a job may be inserted meanwhile: begin_notice has the letter, then inserts.
    perform from criticizer.jobs j where j.changelist_id = changelist for no key update;
    perform from criticizer.deliveries d where d.changelist_id = changelist for update;
    letters := array(select l.id from criticizer.dead_letters l where l.changelist_id = changelist for update);
    refusal := case
        when letters = '{}' and not exists (select from criticizer.jobs j where j.changelist_id = changelist) then 'it has no review'
        when exists (select from criticizer.jobs j where j.changelist_id = changelist and j.state = 'in_progress')
          or exists (select from criticizer.dead_letters l where l.id = any (letters) and l.state = 'replaying') then 'a review of it is in progress'
        when exists (select from criticizer.deliveries d where d.changelist_id = changelist and d.begun and d.status in ('pending', 'held'))
            then 'a delivery of it is in doubt'
        -- The notice of a settled dead letter is not looked up again: its doubt ends with time.
        when exists (select from criticizer.notices n where n.changelist_id = changelist and not n.final and n.begun_at > now() - interval '7 days')
            then 'a notice to its author is in doubt' end;
    if refusal is not null then
        return;
    end if;
    artifacts := 0;
    foreach part in array array['raw', 'redacted', 'report', 'answer'] loop
        execute format('update %I.artifacts set stored_at = least(stored_at, now() - interval ''1 second''), expires_at = least(expires_at, now())
            where substring(body for 9) = $1', part) using owned;
        execute format('delete from %I.artifacts where expires_at <= now() and substring(body for 9) = $1', part) using owned;
        get diagnostics deleted = row_count;
        artifacts := artifacts + deleted;
    end loop;
    delete from criticizer.dead_letters where id = any (letters);
    delete from criticizer.findings f where f.changelist_id = changelist;
    get diagnostics findings = row_count;
    delete from criticizer.delivery_attempts a using criticizer.deliveries d where d.id = a.delivery_id and d.changelist_id = changelist;
    update criticizer.deliveries d
    set recipient = case when d.channel = 'mail' and d.recipient not like 'forgotten:%' then criticizer.forgotten_recipient(d) else d.recipient end,
        status = case when d.status in ('pending', 'failed', 'held') then 'waived' else d.status end, begun = false, bounced_at = null
    where d.changelist_id = changelist;
    get diagnostics addresses = row_count;
    related := array(
        select j.changelist_id from criticizer.jobs j
        where j.changelist_id <> changelist and j.forgotten_at is null and (
            j.changelist_id in (select c.shelf_of from criticizer.contents c where c.changelist_id = changelist)
            or j.changelist_id in (select o.of_changelist from criticizer.outcomes o where o.changelist_id = changelist)
            or j.changelist_id in (select c.changelist_id from criticizer.contents c where c.shelf_of = changelist))
        group by j.changelist_id order by j.changelist_id);
    foreach part in array array['recipients', 'notices', 'contents', 'gaps'] loop
        execute format('delete from criticizer.%I where changelist_id = $1', part) using changelist;
    end loop;
    update criticizer.jobs j
    set forgotten_at = now(), updated_at = now(), closed_how = 'forgotten by ' || who || ': ' || reason,
        state = case when j.state = 'succeeded' then j.state else 'canceled' end
    where j.changelist_id = changelist;
    insert into criticizer.audit_log (claimed, action, object, detail)
    values (who, 'forget', 'changelist:' || changelist,
            jsonb_build_object('reason', reason, 'artifacts', artifacts, 'findings', findings, 'deliveries', addresses));
end $$;
comment on function criticizer.forget_changelist is
    'An operator deletes what is stored about one changelist, and what shows that it was reviewed and mailed stays.';

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
    error_class text      not null,
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
create view criticizer.figures as
    select 'criticizer_reviews'::text as name, '{"state": "in_progress"}'::jsonb as labels, count(*)::double precision as value
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
    select 'criticizer_dead_letters_in_a_row', jsonb_build_object('class', error_class), count(*) filter (where
        state in ('open', 'replaying')
        and recorded_at > coalesce((select max(finished_at) from criticizer.jobs where state = 'succeeded' and skipped_by is null), '-infinity'))
    from criticizer.dead_letters group by error_class
union all
    select 'criticizer_review_outcomes', jsonb_build_object('outcome', o), count(j)
    from unnest(array['clean', 'findings', 'partial', 'not_reviewed']) o
    left join criticizer.jobs j on j.outcome = o and j.finished_at > now() - interval '24 hours' group by o
union all
    select 'criticizer_findings', jsonb_build_object('severity', s), count(f)
    from unnest(array['critical', 'high', 'medium', 'low']) s
    left join criticizer.findings f on f.severity = s and f.reported_at > now() - interval '24 hours' group by s
union all
    select 'criticizer_opinions', jsonb_build_object('opinion', o), count(p)
    from unnest(array['useful', 'wrong']) o
    left join criticizer.opinions p on p.opinion = o and p.said_at > now() - interval '30 days' group by o
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
    select 'criticizer_unread_files', jsonb_build_object('reason', part ->> 'why'), sum((part ->> 'files')::bigint)
    from criticizer.outcomes, jsonb_array_elements(tally -> 'rest') as part
    where recorded_at > now() - interval '24 hours' and part ->> 'state' = 'hidden' group by part ->> 'why'
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
    select 'criticizer_deliveries_missing', '{}', count(*)
    from criticizer.deliveries where missing_at is not null
union all
    select 'criticizer_retention_lag_seconds', jsonb_build_object('namespace', namespace), greatest(0, extract(epoch from now() - oldest))
    from (values ('raw', (select min(expires_at) from raw.artifacts)), ('redacted', (select min(expires_at) from redacted.artifacts)),
                 ('report', (select min(expires_at) from report.artifacts)), ('answer', (select min(expires_at) from answer.artifacts))
    ) as kept (namespace, oldest);

------------------------------------------------------------------------- grants

grant usage on schema criticizer to
    criticizer_fetch, criticizer_redact, criticizer_llm, criticizer_notify, criticizer_bookkeeping, criticizer_operator,
    criticizer_retention, criticizer_reader;

grant insert (claimed, action, object, detail) on criticizer.audit_log to
    criticizer_fetch, criticizer_redact, criticizer_llm, criticizer_notify, criticizer_bookkeeping, criticizer_operator,
    criticizer_retention;

grant select on criticizer.migrations to
    criticizer_fetch, criticizer_redact, criticizer_llm, criticizer_notify, criticizer_bookkeeping, criticizer_operator,
    criticizer_retention, criticizer_reader;

-- Storing an artifact again needs its id and expiry, never its body.
grant usage on schema raw to criticizer_fetch;
grant insert (id, body, ttl), update (body, ttl), select (id, expires_at) on raw.artifacts to criticizer_fetch;
grant insert (changelist_id, review_version, position, user_name, address, role), delete, select (changelist_id, review_version)
    on criticizer.recipients to criticizer_fetch;
grant select on criticizer.allowlist_versions to criticizer_fetch;
-- Integrated content is credited only if the changes that made it were reviewed, and brings
-- along their findings: fetch sees where they are, and what they quote as a digest.
grant select (changelist_id, review_version, shelved, outcome, findings, report) on criticizer.jobs to criticizer_fetch;
grant select (changelist_id, review_version, report, of_changelist, of_version) on criticizer.outcomes to criticizer_fetch;
grant select (changelist_id, review_version, fingerprint, place_fingerprints, path, category, severity, verbatim, accepted_at)
    on criticizer.findings to criticizer_fetch;
grant select, insert, update on criticizer.contents to criticizer_fetch;

grant usage on schema raw, redacted to criticizer_redact;
grant select on raw.artifacts to criticizer_redact;
grant insert (id, body, ttl), update (body, ttl), select (id, expires_at) on redacted.artifacts to criticizer_redact;

-- The llm role records findings and reads which are not reported again. It cannot read
-- opinions.
grant usage on schema redacted, report, answer to criticizer_llm;
grant select on redacted.artifacts to criticizer_llm;
grant insert (id, body, ttl), update (body, ttl), select (id, expires_at) on report.artifacts to criticizer_llm;
grant select, insert (id, body, ttl), update (body, ttl) on answer.artifacts to criticizer_llm;
grant select, insert, update on criticizer.token_days, criticizer.review_records to criticizer_llm;
grant insert (changelist_id, review_version, report, outcome, findings, stand_in, coverage, tally)
    on criticizer.outcomes to criticizer_llm;
grant insert (changelist_id, review_version, report, position, path, lines, why, class, context) on criticizer.gaps to criticizer_llm;
grant insert (token, changelist_id, review_version, fingerprint, place_fingerprints, place, shingles, path, rule, category, severity, verbatim),
      select (token, changelist_id, review_version, fingerprint, place_fingerprints, place, shingles, severity, accepted_at)
    on criticizer.findings to criticizer_llm;

-- The notify role reads which reviews have ended, and nothing else of them. It records what
-- readers answer, which hides no finding.
grant usage on schema report to criticizer_notify;
grant select on report.artifacts, criticizer.recipients, criticizer.contents to criticizer_notify;
grant select, insert, update on criticizer.deliveries, criticizer.delivery_attempts, criticizer.notices to criticizer_notify;
grant update (why) on criticizer.recipients to criticizer_notify;
grant execute on function criticizer.begin_notice to criticizer_notify;
grant select, insert, update on criticizer.opinions to criticizer_notify;
grant select (token, changelist_id, review_version, fingerprint, place_fingerprints, place, shingles) on criticizer.findings to criticizer_notify;
grant select (changelist_id, review_version, state, report, created_at, finished_at, shelved, skipped_by, only_new)
    on criticizer.jobs to criticizer_notify;
grant select (changelist_id, review_version, report, of_changelist, of_version) on criticizer.outcomes to criticizer_notify;
grant execute on function criticizer.adopt_outcome to criticizer_notify;

-- The bookkeeping role reads whether every recipient was notified, not the
-- recipients.
grant select, insert, update on criticizer.dead_letters, criticizer.pages, criticizer.catch_up to criticizer_bookkeeping;
grant select, insert (idempotency_key, changelist_id, review_version, asked_version, server_id, run_id, shelved, shelf_event, only_new)
    on criticizer.jobs to criticizer_bookkeeping;
grant update (state, run_id, updated_at, finished_at, checked_at) on criticizer.jobs to criticizer_bookkeeping, criticizer_operator;
grant update (closed_how) on criticizer.jobs to criticizer_bookkeeping;
grant execute on function criticizer.finish_job, criticizer.skip_job to criticizer_bookkeeping;
grant select on criticizer.replays to criticizer_bookkeeping;
grant insert (dead_letter_id, new_run_id, who, reason, request_id) on criticizer.replays to criticizer_bookkeeping, criticizer_operator;
grant select on criticizer.replay_requests, criticizer.contents, criticizer.outcomes, criticizer.figures to criticizer_bookkeeping;
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
    criticizer.jobs, criticizer.contents, criticizer.outcomes, criticizer.gaps, criticizer.catch_up, criticizer.allowlist_versions, criticizer.recipients,
    criticizer.deliveries, criticizer.delivery_attempts, criticizer.notices, criticizer.dead_letters, criticizer.replay_requests, criticizer.replays,
    criticizer.pages, criticizer.findings, criticizer.opinions, criticizer.token_days, criticizer.review_records,
    criticizer.audit_log, criticizer.figures, criticizer.watch, criticizer.outages, criticizer.restores
    to criticizer_operator;
grant update on criticizer.deliveries, criticizer.dead_letters to criticizer_operator;
grant execute on function criticizer.forget_changelist to criticizer_operator;
grant insert (changelist_id, review_version, recipient) on criticizer.deliveries to criticizer_operator;
grant insert, update (new_run_id, withdrawn_at) on criticizer.replay_requests to criticizer_operator;
grant update (request_id, acknowledged_by, acknowledged_at) on criticizer.replays to criticizer_operator;
grant insert (who, reason, allowed, embargoed) on criticizer.allowlist_versions to criticizer_operator;
grant update (accepted_by, accepted_at) on criticizer.findings to criticizer_operator;
grant insert, update, delete on criticizer.opinions to criticizer_operator;

grant usage on schema raw, redacted, report, answer to criticizer_retention;
grant delete, select (id, expires_at)
    on raw.artifacts, redacted.artifacts, report.artifacts, answer.artifacts to criticizer_retention;
grant delete, select (saved_at) on criticizer.recipients to criticizer_retention;
grant execute on function criticizer.forget_metadata, criticizer.purge_reviews to criticizer_retention;

grant execute on function criticizer.read_artifact to criticizer_reader;

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
