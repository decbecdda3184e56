-- name: AppendAudit :exec
insert into criticizer.audit_log (claimed, action, object, detail) values (@claimed, @action, @object, @detail);

-- name: AuditOf :many
select at, actor, role, claimed, action, detail from criticizer.audit_log where object = @object order by id;
