-- name: AppendAudit :exec
insert into criticizer.audit_log (claimed, action, object, detail) values (@claimed, @action, @object, @detail);

-- name: AuditOf :many
-- The audit log of an object, oldest first. The database sets actor and role, and nothing
-- verifies the claimed name.
select at, actor, role, claimed, action, detail from criticizer.audit_log where object = @object order by id;
