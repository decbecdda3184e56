-- +goose Up

-- Every update of a rewrite job evaluated the conditions on its decision and languages: a
-- quarter of the database's work for a claim and a completion. Now they are evaluated while
-- the job is queued, and neither changes from then on.
-- +goose StatementBegin
create function criticizer.refuse_decision_change() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    raise exception 'change decision or languages of rewrite job %: the job is not queued', old.job_id using errcode = 'insufficient_privilege';
end $$;
-- +goose StatementEnd
create trigger rewrite_jobs_decision_is_final before update of routing_decision, language_pair on criticizer.rewrite_jobs
    for each row when ((old.status <> 'queued' or new.status <> 'queued')
        and (new.routing_decision, new.language_pair) is distinct from (old.routing_decision, old.language_pair))
    execute function criticizer.refuse_decision_change();

-- +goose StatementBegin
do $$
declare
    ended constant text := $q$status = ANY (ARRAY['completed'::text, 'failed'::text, 'canceled'::text])$q$;
    c     record;
begin
    for c in select conname as name, pg_get_constraintdef(oid) as condition from pg_constraint
             where conrelid = 'criticizer.rewrite_jobs'::regclass and conname in (
                 'rewrite_jobs_languages_are_tags', 'rewrite_jobs_routing_holds_no_text', 'rewrite_jobs_routing_has_mode',
                 'rewrite_jobs_routing_is_readable') loop
        if position(ended in c.condition) = 0 then
            raise 'the constraint % has another form', c.name;
        end if;
        execute format('alter table criticizer.rewrite_jobs drop constraint %1$I, add constraint %1$I %2$s',
            c.name, replace(c.condition, ended, $q$status <> 'queued'$q$));
    end loop;
end $$;
-- +goose StatementEnd
