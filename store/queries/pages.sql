-- name: InsertPage :exec
insert into criticizer.pages (dead_letter_id, reason) values (@dead_letter_id, @reason)
on conflict (dead_letter_id) do nothing;

-- name: InsertPageOfOne :exec
-- Unless somebody was called about a letter of the same class and stage that is not
-- settled: it is the same trouble, and every review meets it.
insert into criticizer.pages (dead_letter_id, reason)
select @dead_letter_id, @reason
where not exists (
    select from criticizer.dead_letters this
    join criticizer.dead_letters other on other.stage = this.stage and other.error_class = this.error_class
    join criticizer.pages p on p.dead_letter_id = other.id
    where this.id = @dead_letter_id and other.state in ('open', 'replaying'))
on conflict (dead_letter_id) do nothing;

-- name: ClaimPage :one
-- The claim is a lease: a process that dies with it leaves the page to another.
-- What is settled meanwhile needs nobody's attention any more.
with due as (
    select p.id from criticizer.pages p
    join criticizer.dead_letters l on l.id = p.dead_letter_id
    where p.sent_at is null and p.next_attempt_at <= now() and l.state in ('open', 'replaying')
    order by p.next_attempt_at
    limit 1
    for update of p skip locked)
update criticizer.pages p
set attempts = p.attempts + 1, next_attempt_at = now() + @lease::interval
from due, criticizer.dead_letters l
where p.id = due.id and l.id = p.dead_letter_id
returning p.id, p.reason, p.attempts, p.told, l.id as dead_letter_id, l.workflow_id, l.run_id,
          l.changelist_id, l.review_version, l.stage, l.error_class, l.last_failure_at;

-- name: AddToldChannel :exec
update criticizer.pages set told = array_append(told, @channel::text)
where id = @id and not (@channel::text = any (told));

-- name: MarkPageSent :exec
update criticizer.pages set sent_at = now() where id = @id and sent_at is null;

-- name: PostponePage :exec
update criticizer.pages set next_attempt_at = now() + @delay::interval where id = @id and sent_at is null;
