-- +goose Up

-- Narrows what a role of the database may do, for a stage whose process an attacker
-- controls. Builds of schema 1 set expiry and actor themselves, which is refused now.
update criticizer.schema_serves set oldest_build = 2;

---------------------------------------------------------------------- functions

-- Postgres lets every role execute a new function. A role that may execute a trigger
-- function can attach it to a table of its own and forge what it records.
revoke execute on all functions in schema criticizer from public;
alter default privileges revoke execute on functions from public;
grant execute on function criticizer.schema_version, criticizer.oldest_build to
    criticizer_fetch, criticizer_redact, criticizer_llm, criticizer_notify, criticizer_bookkeeping, criticizer_operator,
    criticizer_retention, criticizer_reader, criticizer_rewrite, criticizer_backend, criticizer_frontend;

---------------------------------------------------------------------- artifacts

-- A worker gives the time to live; the database sets stored_at and expires_at. The
-- default is the limit of the namespace (security 9.4.1).
alter table raw.artifacts add column ttl interval not null default '168 hours';
alter table redacted.artifacts add column ttl interval not null default '720 hours';
alter table report.artifacts add column ttl interval not null default '720 hours';
alter table answer.artifacts add column ttl interval not null default '720 hours';
alter table rewrite.artifacts add column ttl interval not null default '720 hours';

-- Storing an artifact again can extend its time and never shortens it. An update must
-- bring a newly encrypted body: else a role that cannot read bodies could extend the
-- time of all artifacts for ever.
-- +goose StatementBegin
create function criticizer.date_artifact() returns trigger language plpgsql as $$
begin
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
-- +goose StatementEnd

create trigger artifacts_dated before insert or update of body, ttl on raw.artifacts
    for each row execute function criticizer.date_artifact();
create trigger artifacts_dated before insert or update of body, ttl on redacted.artifacts
    for each row execute function criticizer.date_artifact();
create trigger artifacts_dated before insert or update of body, ttl on report.artifacts
    for each row execute function criticizer.date_artifact();
create trigger artifacts_dated before insert or update of body, ttl on answer.artifacts
    for each row execute function criticizer.date_artifact();
create trigger artifacts_dated before insert or update of body, ttl on rewrite.artifacts
    for each row execute function criticizer.date_artifact();

revoke insert, update on raw.artifacts from criticizer_fetch;
revoke insert, update on redacted.artifacts from criticizer_redact;
revoke insert, update on report.artifacts, answer.artifacts from criticizer_llm;
revoke insert, update on rewrite.artifacts from criticizer_rewrite;
grant insert (id, body, ttl), update (body, ttl) on raw.artifacts to criticizer_fetch;
grant insert (id, body, ttl), update (body, ttl) on redacted.artifacts to criticizer_redact;
grant insert (id, body, ttl), update (body, ttl) on report.artifacts, answer.artifacts to criticizer_llm;
grant insert (id, body, ttl), update (body, ttl) on rewrite.artifacts to criticizer_rewrite;

-- Recipients are deleted by the age of saved_at.
revoke insert on criticizer.recipients from criticizer_fetch;
grant insert (changelist_id, review_version, position, user_name, address, role) on criticizer.recipients to criticizer_fetch;

---------------------------------------------------------------------- audit log

-- actor and role come from the session. claimed is the name that the caller gave, such
-- as the operating system's user of an operator; in older entries it may be a role.
alter table criticizer.audit_log drop constraint audit_log_says_who_what;
alter table criticizer.audit_log rename column actor to claimed;
alter table criticizer.audit_log rename column login to actor;
alter table criticizer.audit_log alter column claimed set default '';
alter table criticizer.audit_log add column role text not null default '';
alter table criticizer.audit_log alter column role set default current_user;
alter table criticizer.audit_log add constraint audit_log_says_what check (action <> '' and object <> '');

-- +goose StatementBegin
create or replace function criticizer.read_artifact(namespace text, artifact text, who text, reason text) returns bytea
    language plpgsql security definer as $$
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
-- +goose StatementEnd

-- The temporary schema of a session comes first in every search path that does not name
-- it.
-- +goose StatementBegin
do $$
declare
    f regprocedure;
begin
    for f in select oid from pg_proc where pronamespace = 'criticizer'::regnamespace loop
        execute format('alter function %s set search_path = pg_catalog, pg_temp', f);
    end loop;
end $$;
-- +goose StatementEnd

-- The audit log belongs to a role that nobody can log in as, and so does its schema: the
-- owner of a schema may drop every table in it. The migrating login keeps the right to
-- add objects, and to append. It must be a member of the role for this migration only;
-- docs/install.md says how to take a membership back that an administrator gave.
-- +goose StatementBegin
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
-- +goose StatementEnd
