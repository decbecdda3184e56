-- name: CatchUpMark :one
select since, mark from criticizer.catch_up where server_id = @server_id;

-- name: RaiseCatchUpMark :exec
-- The first mark is also where the search begins. It never goes down: of two
-- searches at once the one that has come farther is right.
insert into criticizer.catch_up (server_id, since, mark) values (@server_id, @mark, @mark)
on conflict (server_id) do update set mark = greatest(catch_up.mark, excluded.mark), updated_at = now();

-- name: UnknownChangelists :many
select n::bigint as changelist
from unnest(@changelists::bigint[]) as n
where not exists (select from criticizer.jobs j where j.changelist_id = n and not j.shelved)
order by n;
