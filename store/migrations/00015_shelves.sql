-- Reviews that end without having read anything, and reviews of shelves.

-- +goose Up
alter table criticizer.jobs
    -- Why nothing was reviewed and nobody was told; null of a review that read something.
    add column skipped_by text,
    -- The review is of what was shelved in the changelist, not of what was submitted.
    add column shelved boolean not null default false,
    -- Identifies what made a shelf's review, so that it is made once.
    add column shelf_event text,
    -- The version that was asked for, where the reviews of a shelf had taken it.
    add column asked_version integer,
    add constraint jobs_skipped_not_reviewed check (skipped_by is null or (outcome is not distinct from 'not_reviewed' and report is null)),
    add constraint jobs_shelf_event_unique unique (shelf_event),
    add constraint jobs_shelf_event_of_shelf check ((shelf_event is not null) = shelved);

-- What the reviews of shelves read, to tell a submit of the same from another
-- one; and of submits, which shelf they came from.
create table criticizer.contents (
    changelist_id  bigint  not null,
    review_version integer not null,
    shelved        boolean not null,
    digest         text    not null, -- empty if the server did not tell all contents
    shelf_of       bigint  not null, -- changelist of the shelf: the number before the submit
    constraint contents_of_review primary key (changelist_id, review_version),
    constraint contents_of_job foreign key (changelist_id, review_version)
        references criticizer.jobs (changelist_id, review_version)
);
grant select, insert, update on criticizer.contents to criticizer_fetch;
grant select on criticizer.contents to criticizer_bookkeeping, criticizer_notify, criticizer_operator;
grant select (shelved, skipped_by) on criticizer.jobs to criticizer_notify;
