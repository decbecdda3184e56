-- +goose Up

-------------------------------------------------------------- concurrency limit

-- One row per slot that a review needs: its cost does not depend on how many reviews
-- wait. Stage fetch writes criticizer.admissions, as builds of older schemas do, and a
-- trigger copies the patterns.
create table criticizer.slots (
    changelist_id  bigint      not null,
    review_version integer     not null,
    pattern        text        not null,
    by_bot         boolean     not null,
    asked_at       timestamptz not null,
    state          text        not null default 'noted',
    given_at       timestamptz, -- when a waiting review was given the slot, until the review has noticed
    constraint slots_of_review primary key (changelist_id, review_version, pattern),
    constraint slots_of_job foreign key (changelist_id, review_version)
        references criticizer.jobs (changelist_id, review_version),
    constraint slots_state_known check (state in ('noted', 'awaited', 'held')),
    constraint slots_given_are_held check (given_at is null or state = 'held')
);
create index slots_awaited on criticizer.slots (pattern, by_bot, asked_at, changelist_id, review_version) where state = 'awaited';
create index slots_held on criticizer.slots (pattern) where state = 'held';
create index slots_given on criticizer.slots (given_at) where given_at is not null;

insert into criticizer.slots (changelist_id, review_version, pattern, by_bot, asked_at, state)
select a.changelist_id, a.review_version, pattern, a.by_bot, a.asked_at,
       case when j.state not in ('in_progress', 'retryable_failed') then 'noted'
            when a.admitted_run = j.run_id then 'held'
            when a.waits_for is not null then 'awaited'
            else 'noted' end
from criticizer.admissions a
join criticizer.jobs j using (changelist_id, review_version)
cross join lateral (select distinct unnest(a.patterns) as pattern) needed;

-- +goose StatementBegin
create function criticizer.note_slots() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from criticizer.slots s
    where s.changelist_id = new.changelist_id and s.review_version = new.review_version and s.pattern <> all (new.patterns);
    insert into criticizer.slots (changelist_id, review_version, pattern, by_bot, asked_at)
    select distinct new.changelist_id, new.review_version, unnest(new.patterns), new.by_bot, new.asked_at
    on conflict do nothing;
    return null;
end $$;
-- +goose StatementEnd
create trigger admissions_noted after insert or update of patterns on criticizer.admissions
    for each row execute function criticizer.note_slots();

-- Whether a review holds its slots or waits for them, and whether each is free: held slots
-- and the reviews that come first are fewer than its limit. Changes of people precede those
-- of bots, then the earlier request precedes. So a review that needs several slots gets
-- each in its turn. No count reads more rows than the limit; the settings keep the planner,
-- which does not know the limit, from reading the table. A comparison of rows ends the scan
-- of an index only by its first column: so by_bot is not one.
-- +goose StatementBegin
create function criticizer.slot_state(changelist bigint, version integer, limits jsonb,
                                      out held boolean, out awaited boolean, out free boolean)
    language sql stable set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_sort = off set enable_bitmapscan = off as $$
    select coalesce(bool_and(mine.state = 'held'), true), coalesce(bool_or(mine.state = 'awaited'), false),
           coalesce(bool_and(coalesce(
               (select count(*) from criticizer.slots other where other.pattern = mine.pattern and other.state = 'held')
             + (select count(*) from (
                   (select from criticizer.slots first
                    where first.pattern = mine.pattern and first.state = 'awaited' and first.by_bot = mine.by_bot
                      and (first.asked_at, first.changelist_id, first.review_version) < (mine.asked_at, mine.changelist_id, mine.review_version)
                    order by first.by_bot, first.asked_at, first.changelist_id, first.review_version
                    limit coalesce((limits ->> mine.pattern)::bigint, 0))
                   union all
                   (select from criticizer.slots first
                    where first.pattern = mine.pattern and first.state = 'awaited' and not first.by_bot and mine.by_bot
                    limit coalesce((limits ->> mine.pattern)::bigint, 0))) as counted)
             < (limits ->> mine.pattern)::bigint, true)), true)
    from criticizer.slots mine
    where mine.changelist_id = changelist and mine.review_version = version
$$;
-- +goose StatementEnd

-- The reviews that come next for a pattern: as many as it has free slots.
-- +goose StatementBegin
create function criticizer.slots_next(wanted text, limits jsonb) returns table (idempotency_key text, run_id text)
    language sql stable set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_sort = off set enable_bitmapscan = off as $$
    select j.idempotency_key, j.run_id
    from (select s.* from criticizer.slots s
          where s.pattern = wanted and s.state = 'awaited'
          order by s.by_bot, s.asked_at, s.changelist_id, s.review_version
          limit greatest(0, coalesce((limits ->> wanted)::bigint, 1000)
              - (select count(*) from criticizer.slots other where other.pattern = wanted and other.state = 'held'))) s
    cross join lateral (
        select k.idempotency_key, k.run_id from criticizer.jobs k
        where k.changelist_id = s.changelist_id and k.review_version = s.review_version limit 1) j
    order by s.by_bot, s.asked_at, s.changelist_id, s.review_version
$$;
-- +goose StatementEnd
grant execute on function criticizer.slot_state, criticizer.slots_next to criticizer_bookkeeping;

-- A review releases its slots when its job ends or gets another run, whoever ends it.
-- +goose StatementBegin
create function criticizer.release_slots() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update criticizer.slots s set state = 'noted', given_at = null
    where s.changelist_id = new.changelist_id and s.review_version = new.review_version and s.state <> 'noted';
    return null;
end $$;
-- +goose StatementEnd
create trigger jobs_release_slots after update of state, run_id on criticizer.jobs
    for each row when (new.state in ('succeeded', 'dead_lettered', 'canceled') or new.run_id is distinct from old.run_id)
    execute function criticizer.release_slots();

grant select, update (state, given_at) on criticizer.slots to criticizer_bookkeeping;
grant select on criticizer.slots to criticizer_operator;

------------------------------------------------------------------------ watch

-- When unfinished reviews and free slots are due to be looked at by one of the workers.
create table criticizer.watch (
    due_at  timestamptz not null default now(),
    one_row boolean     not null default true,
    constraint watch_one_row_only primary key (one_row),
    constraint watch_one_row check (one_row)
);
insert into criticizer.watch default values;
grant select, update (due_at) on criticizer.watch to criticizer_bookkeeping;
grant select on criticizer.watch to criticizer_operator;

create index jobs_unchecked on criticizer.jobs (coalesce(checked_at, updated_at)) where state in ('in_progress', 'retryable_failed');
create index dead_letters_replaying on criticizer.dead_letters (workflow_id) where state = 'replaying';
