-- name: InsertFinding :exec
-- A finding that an earlier attempt has recorded keeps its token.
insert into criticizer.findings
    (token, changelist_id, review_version, fingerprint, place_fingerprints, place, shingles, path, rule, category, severity, verbatim)
values (@token, @changelist_id, @review_version, @fingerprint, @place_fingerprints, @place, @shingles, @path, @rule, @category, @severity, @verbatim)
on conflict (changelist_id, review_version, fingerprint) do nothing;

-- name: FindingToken :one
select token from criticizer.findings
where changelist_id = @changelist_id and review_version = @review_version and fingerprint = @fingerprint;

-- name: AcceptedFindings :many
select fingerprint, place_fingerprints, place, shingles, severity from criticizer.findings
where accepted_at is not null and (place = any (@places::text[]) or place_fingerprints && @fingerprints::text[]);

-- name: DisputedFindings :many
select f.fingerprint, f.place_fingerprints, f.place, f.shingles, o.said_by, o.note, o.said_at
from criticizer.opinions o
join criticizer.findings f on f.token = o.token
where o.opinion = 'wrong' and f.place = any (@places::text[])
order by o.said_at, o.said_by;

-- name: LockFinding :one
select * from criticizer.findings where token = @token for update;

-- name: FindingReader :one
-- The user with an address to which the review that reported the finding, or one that adopted
-- its report, can have been sent. It is empty if only the address is known.
with reviews as (
    select f.changelist_id, f.review_version from criticizer.findings f where f.token = @token
    union
    select o.changelist_id, o.review_version from criticizer.findings f
    join criticizer.outcomes o on o.of_changelist = f.changelist_id and o.of_version = f.review_version
    where f.token = @token
), readers as (
    select r.changelist_id, r.review_version, r.user_name, r.address from criticizer.recipients r
    union all
    select d.changelist_id, d.review_version, '', d.recipient from criticizer.deliveries d where d.channel = 'mail'
)
select readers.user_name from readers join reviews using (changelist_id, review_version)
where lower(readers.address) = lower(@address::text) order by readers.user_name desc limit 1;

-- name: RecordOpinion :execrows
-- The newest opinion of a reader counts; the same one read again changes nothing.
insert into criticizer.opinions (token, said_by, opinion, note, said_at)
values (@token, @said_by, @opinion, @note, @said_at)
on conflict (token, said_by) do update
set opinion = excluded.opinion, note = excluded.note, said_at = excluded.said_at
where criticizer.opinions.said_at < excluded.said_at;

-- name: AcceptFinding :exec
update criticizer.findings set accepted_by = @who::text, accepted_at = now() where token = @token;

-- name: UnacceptFinding :exec
update criticizer.findings set accepted_by = null, accepted_at = null where token = @token;

-- name: ForgetOpinions :exec
delete from criticizer.opinions where token = @token;

-- name: OpinionsOnFindings :many
-- Opinions, and findings that are not reported again, newest first.
select sqlc.embed(f), o.said_by, o.opinion, o.note, o.said_at
from criticizer.findings f
left join criticizer.opinions o on o.token = f.token
where o.token is not null or f.accepted_at is not null
order by coalesce(o.said_at, f.accepted_at) desc, f.token, o.said_by
limit @max_rows;

-- name: FindingCounts :many
-- Counts what was reported within the last since: all, by rule pack, by category and by severity.
with rated as (
    select f.rule, f.category, f.severity, bool_or(o.opinion = 'useful') as useful, bool_or(o.opinion = 'wrong') as wrong
    from criticizer.findings f
    left join criticizer.opinions o on o.token = f.token
    where f.reported_at > now() - @since::interval
    group by f.token)
select (case when grouping(rule) = 0 then 'rule' when grouping(category) = 0 then 'category' when grouping(severity) = 0 then 'severity' else 'all' end)::text as "by",
       coalesce(rule, category, severity, '')::text as name, count(*)::integer as reported,
       (count(*) filter (where useful))::integer as useful, (count(*) filter (where wrong))::integer as wrong
from rated
group by grouping sets ((), (rule), (category), (severity))
order by 1, name;
