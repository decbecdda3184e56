-- +goose Up

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

-- +goose StatementBegin
create function criticizer.forgotten_recipient(d criticizer.deliveries) returns text
    language sql stable set search_path = pg_catalog, pg_temp as $$
    select 'forgotten:' || encode(sha256(key || sha256(key || convert_to(
        d.changelist_id || ':' || d.review_version || ':' || d.recipient, 'UTF8'))), 'hex')
    from criticizer.recipient_key;
$$;
-- +goose StatementEnd

-- Before a row is inserted, its forgotten row gets the address back: the insert then meets
-- the unique constraint as if nothing had been forgotten.
-- +goose StatementBegin
create function criticizer.remember_recipient() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update criticizer.deliveries d set recipient = new.recipient
    where d.changelist_id = new.changelist_id and d.review_version = new.review_version
      and d.recipient = criticizer.forgotten_recipient(new);
    return new;
end $$;
-- +goose StatementEnd
create trigger deliveries_remember_recipient before insert on criticizer.deliveries
    for each row when (new.channel = 'mail') execute function criticizer.remember_recipient();

-- An address stays while its review runs and while an attempt is in doubt: look-ups need
-- it. The path of a finding that is marked wrong stays as long as the mark.
-- +goose StatementBegin
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
-- +goose StatementEnd

create index deliveries_with_address on criticizer.deliveries (created_at) where channel = 'mail' and recipient not like 'forgotten:%';
create index findings_with_path on criticizer.findings (reported_at) where path <> '';

grant execute on function criticizer.forget_metadata() to criticizer_retention;
