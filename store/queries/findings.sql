-- name: InsertFinding :exec
-- A finding that an earlier attempt has recorded keeps its token.
insert into criticizer.findings
    (token, changelist_id, review_version, fingerprint, place_fingerprints, path, rule, category, severity)
values (@token, @changelist_id, @review_version, @fingerprint, @place_fingerprints, @path, @rule, @category, @severity)
on conflict (changelist_id, review_version, fingerprint) do nothing;

-- name: FindingToken :one
select token from criticizer.findings
where changelist_id = @changelist_id and review_version = @review_version and fingerprint = @fingerprint;

-- name: WrongFingerprints :many
select fingerprint from criticizer.wrong_findings where fingerprint = any (@fingerprints::text[]);

-- name: LockFinding :one
select * from criticizer.findings where token = @token for update;

-- name: SetOpinion :exec
update criticizer.findings
set opinion = @opinion::text, note = @note, said_by = @said_by::text, said_at = now()
where token = @token;

-- name: ClearOpinion :exec
update criticizer.findings set opinion = null, note = '', said_by = null, said_at = null where token = @token;

-- name: MarkWrong :exec
insert into criticizer.wrong_findings (fingerprint, token)
select fingerprint, @token from unnest(@fingerprints::text[]) as fingerprint
on conflict (fingerprint) do nothing;

-- name: UnmarkWrong :exec
delete from criticizer.wrong_findings where fingerprint = any (@fingerprints::text[]);

-- name: WrongFindings :many
select sqlc.embed(f), min(w.marked_at)::timestamptz as marked_at, count(*)::integer as places
from criticizer.wrong_findings w
join criticizer.findings f on f.token = w.token
group by f.token
order by min(w.marked_at), f.token;

-- name: FindingCounts :many
select (case when grouping(rule) = 0 then 'rule' when grouping(category) = 0 then 'category' when grouping(severity) = 0 then 'severity' else 'all' end)::text as kind,
       coalesce(rule, category, severity, '')::text as name, count(*)::integer as reported,
       (count(*) filter (where opinion = 'useful'))::integer as useful, (count(*) filter (where opinion = 'wrong'))::integer as wrong
from criticizer.findings
where reported_at > now() - @since::interval
group by grouping sets ((), (rule), (category), (severity))
order by kind, name;
