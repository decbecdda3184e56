-- name: LockAllowlist :exec
-- Serializes versions: each one is compared with the version before it.
select pg_advisory_xact_lock(hashtextextended('criticizer allow-list', 0));

-- name: AllowlistVersions :many
select * from criticizer.allowlist_versions order by id;

-- name: NewestAllowlist :one
select * from criticizer.allowlist_versions order by id desc limit 1;

-- name: InsertAllowlist :one
insert into criticizer.allowlist_versions (who, reason, allowed, embargoed)
values (@who, @reason, @allowed, @embargoed)
returning *;
