-- name: JobOfShelfEvent :one
select * from criticizer.jobs where shelf_event = @shelf_event::text;

-- name: TopVersion :one
select coalesce(max(review_version), 0)::integer from criticizer.jobs where changelist_id = @changelist_id;

-- name: InsertShelfJob :exec
insert into criticizer.jobs (idempotency_key, changelist_id, review_version, server_id, run_id, shelved, shelf_event)
values (@idempotency_key, @changelist_id, @review_version, @server_id, @run_id, true, @shelf_event::text);

-- name: ReviewsOfShelf :many
-- The keys of the unfinished reviews of a changelist's shelf.
select idempotency_key from criticizer.jobs
where changelist_id = @changelist_id and shelved and state = 'in_progress'
order by review_version;

-- name: ShelfOf :one
-- The changelist of the shelf that became the change, under the change's number or
-- its number before the submit; never the given version itself.
select changelist_id
from criticizer.contents
where changelist_id = any (@changelists::bigint[]) and shelved
  and not (changelist_id = @changelist_id and review_version = @review_version)
order by changelist_id desc
limit 1;

-- name: SaveContent :exec
insert into criticizer.contents (changelist_id, review_version, shelved, digest, shelf_of, skipped_by)
values (@changelist_id, @review_version, @shelved, @digest, @shelf_of, nullif(@skipped_by::text, ''))
on conflict (changelist_id, review_version) do update
set shelved = excluded.shelved, digest = excluded.digest, shelf_of = excluded.shelf_of, skipped_by = excluded.skipped_by;

-- name: SameAsShelf :one
-- The last review that read the shelf of a change, if the shelf had the content of
-- the given version. A rerun of a submitted change matches no shelf.
select newest.changelist_id, newest.review_version, newest.report
from criticizer.contents this
cross join lateral (
    select j.changelist_id, j.review_version, j.report, c.digest
    from criticizer.contents c
    join criticizer.jobs j using (changelist_id, review_version)
    where c.changelist_id = this.shelf_of and c.shelved
      and not (c.changelist_id = this.changelist_id and c.review_version = this.review_version)
      and j.state = 'succeeded' and j.outcome <> 'not_reviewed' and j.report is not null
    order by j.review_version desc
    limit 1) newest
where this.changelist_id = @changelist_id and this.review_version = @review_version
  and this.digest <> '' and this.digest = newest.digest
  and not exists (
      select from criticizer.jobs rerun
      where rerun.changelist_id = this.changelist_id and rerun.review_version < this.review_version and not rerun.shelved);

-- name: AdoptOutcome :one
select criticizer.adopt_outcome(@changelist::bigint, @version::integer, @report::text)::bigint;

-- name: ReportOwner :one
-- The review of the shelf that a version has adopted the report from.
select of_changelist::bigint as changelist_id, of_version::integer as review_version
from criticizer.outcomes
where changelist_id = @changelist_id and review_version = @review_version and report = @report and of_changelist is not null;
