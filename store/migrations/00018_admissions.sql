-- Reviews of changes to paths of which only so many reviews may be in flight at a
-- time (worker.max_in_flight_per_path): which slots each needs, and whether it has
-- them. It has all or none.

-- +goose Up
create table criticizer.admissions (
    changelist_id  bigint      not null,
    review_version integer     not null,
    patterns       text[]      not null, -- as the configuration has them; no path of the change
    by_bot         boolean     not null,
    asked_at       timestamptz not null default now(),
    -- Of a review that waits: for which of the patterns, and when it will have asked
    -- again. One that has not is gone, and keeps nobody waiting.
    waits_for      text[],
    back_by        timestamptz,
    -- The run of the job that was given the slots. It has them for as long as it is
    -- the job's run and the job has not ended; nothing needs to give them back.
    admitted_run   text,
    -- When Temporal was last asked whether the workflow goes on, and that it does
    -- not, though the job has not ended: somebody has terminated it.
    checked_at     timestamptz,
    ended          boolean     not null default false,
    constraint admissions_of_review primary key (changelist_id, review_version),
    constraint admissions_of_job foreign key (changelist_id, review_version)
        references criticizer.jobs (changelist_id, review_version),
    constraint admissions_patterns_present check (cardinality(patterns) > 0),
    constraint admissions_waits_for_its_patterns check (cardinality(waits_for) > 0 and waits_for <@ patterns),
    constraint admissions_waits_and_comes_back check ((waits_for is null) = (back_by is null)),
    constraint admissions_waits_or_has check (waits_for is null or admitted_run is null),
    constraint admissions_has_and_is_checked check ((admitted_run is null) = (checked_at is null)),
    constraint admissions_ended_had check (not ended or admitted_run is not null)
);

-- What is in flight is few rows of many.
create index jobs_unfinished on criticizer.jobs (changelist_id, review_version)
    where state in ('in_progress', 'retryable_failed');

grant insert, select (changelist_id, review_version), update (patterns, by_bot, waits_for, back_by)
    on criticizer.admissions to criticizer_fetch;
grant select, update on criticizer.admissions to criticizer_bookkeeping;
grant select on criticizer.admissions to criticizer_operator;
