-- name: CountOverdue :one
-- Verifies the deletion job: what should have been gone for longer than grace.
select ((select count(*) from raw.artifacts where expires_at < now() - @grace::interval)
     + (select count(*) from redacted.artifacts where expires_at < now() - @grace::interval)
     + (select count(*) from report.artifacts where expires_at < now() - @grace::interval)
     + (select count(*) from rewrite.artifacts where expires_at < now() - @grace::interval)
     + (select count(*) from answer.artifacts where expires_at < now() - @grace::interval))::bigint as overdue;

-- name: ForgetRecipients :execrows
delete from criticizer.recipients where saved_at <= now() - interval '720 hours';

-- name: ReadArtifact :one
select criticizer.read_artifact(@namespace, @artifact, @who, @reason)::bytea as body;
