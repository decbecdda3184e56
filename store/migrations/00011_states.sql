-- +goose Up

-- A job in work is in_progress, whether or not an attempt has failed: no build has ever
-- written the state retryable_failed.
update criticizer.jobs set state = 'in_progress' where state = 'retryable_failed';
alter table criticizer.jobs
    drop constraint jobs_state_known,
    add constraint jobs_state_known check (state in ('in_progress', 'succeeded', 'dead_lettered', 'canceled'));

drop index criticizer.jobs_unfinished, criticizer.jobs_begun, criticizer.jobs_unchecked;
create index jobs_unfinished on criticizer.jobs (changelist_id, review_version) where state = 'in_progress';
create index jobs_begun on criticizer.jobs (created_at) where state = 'in_progress';
create index jobs_unchecked on criticizer.jobs (coalesce(checked_at, updated_at)) where state = 'in_progress';

-- The view of the figures stays as it is but for the state.
-- +goose StatementBegin
do $$
begin
    execute 'create or replace view criticizer.figures as ' || replace(pg_get_viewdef('criticizer.figures'::regclass),
        $q$state = ANY (ARRAY['in_progress'::text, 'retryable_failed'::text])$q$, $q$state = 'in_progress'$q$);
    if pg_get_viewdef('criticizer.figures'::regclass) ~ 'retryable_failed' then
        raise 'the view criticizer.figures has the state retryable_failed';
    end if;
end $$;
-- +goose StatementEnd
