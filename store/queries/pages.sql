-- name: InsertPage :exec
insert into criticizer.pages (dead_letter_id, reason) values (@dead_letter_id, @reason)
on conflict (dead_letter_id) do nothing;

-- name: InsertPageOfCause :exec
-- Inserts no page if there is one for an unsettled letter of the same class and
-- stage: it has the same cause, which stops every review.
insert into criticizer.pages (dead_letter_id, reason)
select @dead_letter_id, @reason
where not exists (
    select from criticizer.dead_letters this
    join criticizer.dead_letters other on other.stage = this.stage and other.error_class = this.error_class
    join criticizer.pages p on p.dead_letter_id = other.id
    where this.id = @dead_letter_id and other.state in ('open', 'replaying'))
on conflict (dead_letter_id) do nothing;

-- name: PageOf :one
select reason, attempts, sent_at from criticizer.pages where dead_letter_id = @dead_letter_id;

-- name: ClaimPage :one
-- The claim is a lease: if its process dies, another process claims the page. A
-- page of a settled letter is never claimed.
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
returning p.id, p.reason, p.attempts, p.accepted_by, l.id as dead_letter_id, l.workflow_id, l.run_id,
          l.changelist_id, l.review_version, l.stage, l.error_class, l.last_failure_at;

-- name: MarkPageAccepted :exec
update criticizer.pages set accepted_by = array_append(accepted_by, @channel::text)
where id = @id and not (@channel::text = any (accepted_by));

-- name: MarkPageSent :exec
-- Every channel has accepted the page.
update criticizer.pages set sent_at = now() where id = @id and sent_at is null;

-- name: PostponePage :exec
update criticizer.pages set next_attempt_at = now() + @delay::interval where id = @id and sent_at is null;
