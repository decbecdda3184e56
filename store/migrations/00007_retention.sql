-- +goose Up

-- The human way to an artifact's content (security 9.4.3). The role may read
-- nothing by itself: the function below gives one artifact, to somebody who says
-- why, and leaves a record of it.
-- +goose StatementBegin
do $$
begin
    if not exists (select from pg_roles where rolname = 'criticizer_reader') then
        begin
            create role criticizer_reader nologin;
        exception when duplicate_object or unique_violation then null;
        end;
    end if;
    if not (select rolsuper from pg_roles where rolname = current_user) then
        begin
            grant criticizer_reader to current_user;
        exception when insufficient_privilege or unique_violation then null;
        end;
    end if;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create function criticizer.read_artifact(namespace text, artifact text, who text, reason text) returns bytea
    language plpgsql security definer set search_path = '' as $$
declare
    content bytea;
begin
    if coalesce(who, '') = '' or coalesce(reason, '') = '' then
        raise exception 'read of an artifact refused: say who and why' using errcode = 'insufficient_privilege';
    end if;
    case namespace
        when 'raw' then select body into content from raw.artifacts where id = artifact and expires_at > now();
        when 'redacted' then select body into content from redacted.artifacts where id = artifact and expires_at > now();
        when 'report' then select body into content from report.artifacts where id = artifact and expires_at > now();
    end case;
    insert into criticizer.audit_log (actor, action, object, detail)
    values (who, 'artifact.show', namespace || ':' || artifact,
            jsonb_build_object('reason', reason, 'found', content is not null));
    return content;
end $$;
-- +goose StatementEnd

revoke all on function criticizer.read_artifact from public;
grant usage on schema criticizer to criticizer_reader;
grant execute on function criticizer.read_artifact to criticizer_reader;
