-- name: CatchUpMark :one
select since, mark from criticizer.catch_up where server_id = @server_id;

-- name: RaiseCatchUpMark :exec
-- Records how far the search for changelists without a review has come. The first mark is also the start of the search. A mark never decreases: of two
-- searches at the same time, the higher mark is correct.
insert into criticizer.catch_up (server_id, since, mark) values (@server_id, @mark, @mark)
on conflict (server_id) do update set mark = greatest(catch_up.mark, excluded.mark);

-- name: ChangelistsWithoutReview :many
select n::bigint as changelist
from unnest(@changelists::bigint[]) as n
where not exists (select from criticizer.jobs j where j.changelist_id = n and not j.shelved)
order by n;
