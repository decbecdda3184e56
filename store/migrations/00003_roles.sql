-- +goose Up

-- Group roles, one per stage; a login is granted those its worker serves
-- (security 9.4.3). Roles belong to the cluster, so another database may have
-- made them, or be making them now. The migrating login owns everything anyway:
-- it becomes a member so that a one-login installation can take every role. Where
-- an administrator made the roles and gave no right to grant them, that is left.
-- +goose StatementBegin
do $$
declare
    stage text;
    stage_role text;
begin
    foreach stage in array array['fetch', 'redact', 'llm', 'notify', 'bookkeeping', 'operator', 'retention'] loop
        stage_role := 'criticizer_' || stage;
        if not exists (select from pg_roles where rolname = stage_role) then
            begin
                execute format('create role %I nologin', stage_role);
            exception when duplicate_object or unique_violation then null;
            end;
        end if;
        if not (select rolsuper from pg_roles where rolname = current_user) then
            begin
                execute format('grant %I to current_user', stage_role);
            exception when insufficient_privilege or unique_violation then null;
            end;
        end if;
    end loop;
end $$;
-- +goose StatementEnd

grant usage on schema criticizer to
    criticizer_fetch, criticizer_redact, criticizer_llm, criticizer_notify,
    criticizer_bookkeeping, criticizer_operator, criticizer_retention;

-- Everyone leaves a trace, nobody chooses its time or login.
grant insert (actor, action, object, detail) on criticizer.audit_log to
    criticizer_fetch, criticizer_redact, criticizer_llm, criticizer_notify,
    criticizer_bookkeeping, criticizer_operator, criticizer_retention;

-- Writing an artifact again needs its id and expiry, never its body.
grant usage on schema raw to criticizer_fetch;
grant insert, update, select (id, expires_at) on raw.artifacts to criticizer_fetch;
grant insert, delete, select (changelist_id, review_version) on criticizer.recipients to criticizer_fetch;

grant usage on schema raw, redacted to criticizer_redact;
grant select on raw.artifacts to criticizer_redact;
grant insert, update, select (id, expires_at) on redacted.artifacts to criticizer_redact;

grant usage on schema redacted, report to criticizer_llm;
grant select on redacted.artifacts to criticizer_llm;
grant insert, update, select (id, expires_at) on report.artifacts to criticizer_llm;

grant usage on schema report to criticizer_notify;
grant select on report.artifacts to criticizer_notify;
grant select on criticizer.recipients to criticizer_notify;
grant select, insert, update on criticizer.deliveries to criticizer_notify;

-- Bookkeeping sees whether everybody was told, not whom.
grant select, insert, update on criticizer.jobs, criticizer.dead_letters to criticizer_bookkeeping;
grant select, insert on criticizer.replays to criticizer_bookkeeping;
grant select (changelist_id, review_version, status, notified_at) on criticizer.deliveries to criticizer_bookkeeping;

-- Operators see all but the content of artifacts.
grant usage on schema raw, redacted, report to criticizer_operator;
grant select (id, stored_at, expires_at) on raw.artifacts, redacted.artifacts, report.artifacts to criticizer_operator;
grant select on all tables in schema criticizer to criticizer_operator;
grant update on criticizer.deliveries, criticizer.dead_letters, criticizer.jobs to criticizer_operator;
grant insert on criticizer.replays to criticizer_operator;

grant usage on schema raw, redacted, report to criticizer_retention;
grant delete, select (id, expires_at) on raw.artifacts, redacted.artifacts, report.artifacts to criticizer_retention;
grant delete, select (saved_at) on criticizer.recipients to criticizer_retention;
