-- name: ShelfOf :one
-- The changelist of the shelf that a change was, under its number or the one it had
-- before; not the given version itself.
select changelist_id
from criticizer.contents
where changelist_id = any (@changelists::bigint[]) and shelved
  and not (changelist_id = @changelist_id and review_version = @review_version)
order by changelist_id desc
limit 1;

-- name: ReviewsOfShelf :many
select idempotency_key from criticizer.jobs
where changelist_id = @changelist_id and shelved and state in ('in_progress', 'retryable_failed')
order by review_version;

-- name: SaveContent :exec
insert into criticizer.contents (changelist_id, review_version, shelved, digest, shelf_of)
values (@changelist_id, @review_version, @shelved, @digest, @shelf_of)
on conflict (changelist_id, review_version) do update
set shelved = excluded.shelved, digest = excluded.digest, shelf_of = excluded.shelf_of;

-- name: SameAsShelf :one
-- The last review that read the shelf of a change, if that read the same as the given
-- version. A version that is a rerun of the submitted change is like nothing else.
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
