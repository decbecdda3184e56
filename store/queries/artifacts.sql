-- Storing, reading and deleting artifacts is in artifacts.go: SQL has no parameter
-- for a schema.

-- name: ReadArtifact :one
select criticizer.read_artifact(@namespace, @artifact, @who, @reason)::bytea as body;

-- name: OverdueArtifacts :one
-- Counts the artifacts that expired more than grace ago and still exist: a check of the
-- retention workflow (security 9.4.5).
select ((select count(*) from raw.artifacts where expires_at < now() - @grace::interval)
     + (select count(*) from redacted.artifacts where expires_at < now() - @grace::interval)
     + (select count(*) from report.artifacts where expires_at < now() - @grace::interval)
     + (select count(*) from answer.artifacts where expires_at < now() - @grace::interval))::integer as overdue;

-- name: ForgetChangelist :one
select coalesce(refusal, '')::text as refusal, coalesce(artifacts, 0)::integer as artifacts, coalesce(findings, 0)::integer as findings,
       coalesce(addresses, 0)::integer as deliveries, coalesce(related, '{}')::bigint[] as related
from criticizer.forget_changelist(@changelist::bigint, @who::text, @reason::text);
