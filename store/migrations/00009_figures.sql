-- +goose Up

-- The figures of tables that grow for ever are counted when a row changes, not when they
-- are read. A change adds rows and waits for no other transaction; the watch folds them.
create table criticizer.tallies (
    name   text   not null,
    labels jsonb  not null,
    n      bigint not null
);

-- Adds the change of a row to the tally with the name of the first argument. The others
-- are the columns of its labels, as label=column; a column after ? counts only rows in
-- which it is not null.
-- +goose StatementBegin
create function criticizer.tally() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    gone  jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) end;
    fresh jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) end;
begin
    insert into criticizer.tallies (name, labels, n)
    select tg_argv[0], l.labels, sum(r.d)
    from (values (gone, -1), (fresh, 1)) r (found, d)
    cross join lateral (
        select coalesce(jsonb_object_agg(split_part(a, '=', 1), r.found ->> split_part(a, '=', 2)) filter (where a not like '?%'), '{}') as labels,
               coalesce(bool_and(r.found ->> substr(a, 2) is not null) filter (where a like '?%'), true) as counts
        from unnest(tg_argv[1:]) a) l
    where r.found is not null and l.counts
    group by l.labels having sum(r.d) <> 0;
    return null;
end $$;
-- +goose StatementEnd

-- Runs when a worker claims the watch: one at a time.
-- +goose StatementBegin
create function criticizer.fold_tallies() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    with folded as (delete from criticizer.tallies returning name, labels, n)
    insert into criticizer.tallies select name, labels, sum(n) from folded group by name, labels having sum(n) <> 0;
    return null;
end $$;
-- +goose StatementEnd
create trigger watch_folds_tallies after update on criticizer.watch
    for each row execute function criticizer.fold_tallies();

lock table criticizer.jobs, criticizer.deliveries, criticizer.dead_letters in share row exclusive mode;
insert into criticizer.tallies
select 'criticizer_reviews', jsonb_build_object('state', state), count(*) from criticizer.jobs group by state
union all
select 'criticizer_deliveries', jsonb_build_object('status', status), count(*) from criticizer.deliveries group by status
union all
select 'criticizer_deliveries_confirmed', '{}', count(*) from criticizer.deliveries where confirmed_at is not null
union all
select 'criticizer_dead_letters', jsonb_build_object('state', state, 'stage', stage, 'class', error_class), count(*)
from criticizer.dead_letters group by state, stage, error_class;

create trigger jobs_tallied after insert or delete or update of state on criticizer.jobs
    for each row execute function criticizer.tally('criticizer_reviews', 'state=state');
create trigger deliveries_tallied after insert or delete or update of status on criticizer.deliveries
    for each row execute function criticizer.tally('criticizer_deliveries', 'status=status');
create trigger deliveries_confirmed_tallied after insert or delete or update of confirmed_at on criticizer.deliveries
    for each row execute function criticizer.tally('criticizer_deliveries_confirmed', '?confirmed_at');
create trigger dead_letters_tallied after insert or delete or update of state, stage, error_class on criticizer.dead_letters
    for each row execute function criticizer.tally('criticizer_dead_letters', 'state=state', 'stage=stage', 'class=error_class');

create index jobs_begun on criticizer.jobs (created_at) where state in ('in_progress', 'retryable_failed');
create index deliveries_begun on criticizer.deliveries (id) where begun;
create index deliveries_unproven on criticizer.deliveries (id) where unproven > 0;
create index replays_unexplained on criticizer.replays (id) where not explained;

create or replace view criticizer.figures (name, labels, figure) as
    select name, labels, sum(n)::double precision
    from criticizer.tallies where name <> 'criticizer_deliveries_confirmed' group by name, labels having sum(n) <> 0
union all
    select 'criticizer_deliveries_confirmed', '{}', coalesce(sum(n), 0)
    from criticizer.tallies where name = 'criticizer_deliveries_confirmed'
union all
    select 'criticizer_review_oldest_seconds', '{}', coalesce(extract(epoch from now() - min(created_at)), 0)
    from criticizer.jobs where state in ('in_progress', 'retryable_failed')
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

grant select on criticizer.tallies to criticizer_operator;

--------------------------------------------------------------------- retention

-- Rows of reviews that have succeeded are deleted by policy. The row of the job stays: it
-- rejects a second review of the same version. So do findings with an opinion, and the
-- audit log.
alter table criticizer.jobs add column purged boolean not null default false;
create index jobs_unpurged on criticizer.jobs (finished_at) where state = 'succeeded' and not purged;
create index dead_letters_of_review on criticizer.dead_letters (workflow_id);

-- +goose StatementBegin
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
    foreach part in array array['deliveries', 'recipients', 'review_records', 'slots', 'admissions'] loop
        execute format('delete from criticizer.%I r using criticizer.jobs j where j.id = any ($1)
            and (r.changelist_id, r.review_version) = (j.changelist_id, j.review_version)', part) using due;
    end loop;
    update criticizer.jobs set purged = true where id = any (due);
    return cardinality(due);
end $$;
-- +goose StatementEnd
grant execute on function criticizer.purge_reviews to criticizer_retention;
