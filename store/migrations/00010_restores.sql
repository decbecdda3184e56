-- +goose Up

-- A database that was restored from a backup does not know what happened since: mails that
-- its rows call unsent may have been sent, and the rows of whole reviews are missing. The
-- owner records the restore. The deliveries concerned are in doubt: the evidence sources are
-- queried before anything is sent.
create table criticizer.restores (
    id                bigint      generated always as identity primary key,
    backup_at         timestamptz not null,
    newest_changelist bigint      not null, -- of Perforce, when the database was restored
    restored_at       timestamptz not null default now(),
    actor             text        not null default session_user,
    constraint restores_backup_is_earlier check (backup_at <= restored_at),
    constraint restores_changelist_positive check (newest_changelist > 0)
);
grant select on criticizer.restores to criticizer_operator;

-- Records a restore and returns the number of deliveries that it puts in doubt.
-- last_attempt_at is the earliest time at which the mail may have been sent.
-- +goose StatementBegin
create function criticizer.restored(backup_at timestamptz, newest_changelist bigint) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    in_doubt bigint;
begin
    insert into criticizer.restores (backup_at, newest_changelist) values (restored.backup_at, restored.newest_changelist);
    update criticizer.deliveries d
    set begun = true, attempts = d.attempts + 1, last_attempt_at = restored.backup_at, failure_class = null
    where d.status = 'pending' and not d.begun;
    get diagnostics in_doubt = row_count;
    return in_doubt;
end $$;
-- +goose StatementEnd

-- A delivery that is inserted after a restore may be one whose row the restore has lost, if
-- Perforce had its changelist then. After 30 days no evidence is left.
-- +goose StatementBegin
create function criticizer.doubt_lost_delivery() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    lost_since timestamptz := (
        select min(backup_at) from criticizer.restores
        where newest_changelist >= new.changelist_id and restored_at > now() - interval '720 hours');
begin
    if lost_since is not null then
        new.begun := true;
        new.attempts := 1;
        new.last_attempt_at := lost_since;
    end if;
    return new;
end $$;
-- +goose StatementEnd
create trigger deliveries_lost_are_in_doubt before insert on criticizer.deliveries
    for each row execute function criticizer.doubt_lost_delivery();
