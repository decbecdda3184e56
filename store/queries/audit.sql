-- name: AppendAudit :exec
insert into criticizer.audit_log (actor, action, object, detail)
values (coalesce(nullif(@actor::text, ''), current_user), @action, @object, @detail);

-- name: AuditOf :many
select at, actor, login, action, detail from criticizer.audit_log where object = @object order by id;
