package store_test

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

var everyRole = append([]store.Role{store.RoleReader}, allRoles...)

// owned returns a connection of the login that owns a migrated database, as
// docs/install.md creates it.
func owned(t *testing.T) (conn *pgx.Conn, login string) {
	t.Helper()
	d := storetest.NewEmpty(t)
	super := d.Conn(t)
	login = "owner_" + strings.ToLower(rand.Text())
	exec(t, super, "create role "+login+" login createrole password 'x'")
	inherit(t, super, login)
	exec(t, super, `alter database "`+super.Config().Database+`" owner to `+login)
	t.Cleanup(func() {
		for _, statement := range []string{`alter database "` + super.Config().Database + `" owner to current_user`, "drop owned by " + login + " cascade", "drop role " + login} {
			must(super.Exec(context.Background(), statement))(t)
		}
	})
	as := edit(t, d.URL, func(u *url.URL) { u.User = url.UserPassword(login, "x") })
	testkit.NoError(t, store.Schema().Migrate(t.Context(), slog.New(slog.DiscardHandler), postgres.Config{URL: as}))
	exec(t, super, "alter role "+login+" nocreaterole; revoke criticizer_audit from "+login)
	return (&storetest.Database{URL: as}).Conn(t), login
}

// inherit gives a login the roles that earlier logins of this cluster have created: from
// Postgres 16 on, the right to create roles does not include the right to grant those of
// others.
func inherit(t *testing.T, super *pgx.Conn, login string) {
	t.Helper()
	if query[int](t, super, "select current_setting('server_version_num')::int") < 160000 {
		return
	}
	for _, role := range append([]store.Role{"criticizer_audit"}, everyRole...) {
		exec(t, super, fmt.Sprintf(`do $$ begin create role %s nologin; exception when duplicate_object or unique_violation then null; end $$`, role))
		exec(t, super, fmt.Sprintf("grant %s to %s with admin option", role, login))
	}
}

// privileges lists who may do what, as lines. $1 is the owner's login, which the lines
// call owner.
const privileges = `
with roles as (
    select oid, rolname from pg_roles where rolname like 'criticizer\_%'
), spaces as (
    select oid, nspname, nspacl, nspowner from pg_namespace
    where nspname in ('criticizer', 'raw', 'redacted', 'report', 'answer', 'public')
), acls (object, owner, acl) as (
    select 'database', datdba, coalesce(datacl, acldefault('d', datdba)) from pg_database where datname = current_database()
    union all select 'schema ' || nspname, nspowner, coalesce(nspacl, acldefault('n', nspowner)) from spaces
    union all select 'relation ' || nspname || '.' || relname, relowner,
        coalesce(relacl, acldefault(case relkind when 'S' then 's'::"char" else 'r'::"char" end, relowner))
        from pg_class c join spaces s on s.oid = c.relnamespace where relkind in ('r', 'p', 'v', 'm', 'S', 'f')
    union all select 'function ' || p.oid::regprocedure || case when prosecdef then ' security definer' else '' end
            || ' ' || coalesce(array_to_string(proconfig, ' '), 'NO SEARCH PATH'), proowner, coalesce(proacl, acldefault('f', proowner))
        from pg_proc p join spaces s on s.oid = p.pronamespace
    union all select 'default for objects of type ' || defaclobjtype::text || coalesce(' in ' || defaclnamespace::regnamespace, ''), defaclrole, defaclacl
        from pg_default_acl
), granted as (
    select object || ' owner ' || pg_get_userbyid(owner) as line from acls
    union select object || ': ' || coalesce(nullif(pg_get_userbyid(grantee), 'unknown (OID=0)'), 'PUBLIC') || ' '
        || string_agg(privilege_type, ', ' order by privilege_type)
    from acls, aclexplode(acl) where grantee <> owner group by object, grantee
), columns as (
    select 'column ' || nspname || '.' || relname || ' ' || p || ': ' || rolname || ' ' || string_agg(attname, ', ' order by attname) as line
    from roles, pg_attribute a join pg_class c on c.oid = a.attrelid join spaces s on s.oid = c.relnamespace,
         unnest(array['INSERT', 'UPDATE']) p
    where attnum > 0 and not attisdropped and relkind in ('r', 'v') and nspname <> 'public'
      and has_column_privilege(roles.oid, c.oid, attnum, p) and pg_get_userbyid(relowner) <> rolname
    group by nspname, relname, p, rolname
), readable as (
    select 'column ' || nspname || '.' || relname || ' SELECT: ' || pg_get_userbyid(grantee) || ' ' || string_agg(attname, ', ' order by attname) as line
    from pg_attribute a join pg_class c on c.oid = a.attrelid join spaces s on s.oid = c.relnamespace, aclexplode(attacl)
    where privilege_type = 'SELECT' group by nspname, relname, grantee
), members as (
    select 'members of ' || rolname || ': ' || coalesce(string_agg(distinct pg_get_userbyid(member), ', '), 'none') as line
    from roles left join pg_auth_members on roleid = roles.oid and pg_get_userbyid(member) = $1 group by rolname
)
select replace(line, $1, 'owner') from (select * from granted union all select * from columns union all select * from readable union all select * from members) every`

// TestPrivileges compares all grants, access lists of functions, default privileges and
// writable columns of a new installation with testdata/privileges.txt. To accept a
// change, run `go test ./store -run TestPrivileges -update` and read the difference.
func TestPrivileges(t *testing.T) {
	t.Parallel()
	conn, login := owned(t)
	rows := must(conn.Query(t.Context(), privileges, login))(t)
	lines := must(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
	wantGolden(t, "privileges.txt", lines)
}

// wantGolden compares lines, in any order, with a file in testdata.
func wantGolden(t *testing.T, name string, lines []string) {
	t.Helper()
	slices.Sort(lines)
	golden := filepath.Join("testdata", name)
	if *update {
		testkit.NoError(t, os.WriteFile(golden, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	}
	content := must(os.ReadFile(golden))(t)
	want := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	for _, line := range lines {
		if !slices.Contains(want, line) {
			t.Errorf("new: %s", line)
		}
	}
	for _, line := range want {
		if !slices.Contains(lines, line) {
			t.Errorf("missing: %s", line)
		}
	}
}

// No role may do any of this, nor may the login that owns the database.
func TestAttacksOfEveryRoleAreRefused(t *testing.T) {
	t.Parallel()
	conn, login := owned(t)
	exec(t, conn, goodRows+`;insert into criticizer.audit_log (action, object) values ('b', 'c')`)
	everybody := []string{
		`create temp table mine (id bigint)`,
		`create table public.mine (id bigint)`,
		`insert into criticizer.audit_log (actor, action, object) values ('olga', 'a', 'b')`,
		`insert into criticizer.audit_log (role, action, object) values ('criticizer_operator', 'a', 'b')`,
		`insert into criticizer.audit_log (at, action, object) values ('2000-01-01', 'a', 'b')`,
		`update criticizer.audit_log set action = 'x'`,
		`delete from criticizer.audit_log`,
		`truncate criticizer.audit_log`,
		`alter table criticizer.audit_log disable trigger all`,
		`alter table criticizer.audit_log owner to current_user`,
		`drop table criticizer.audit_log`,
		`drop schema criticizer cascade`,
		`create trigger mine before insert on criticizer.audit_log for each row execute function criticizer.refuse_change()`,
		`set role criticizer_audit`,
	}
	workers := []string{
		`select criticizer.refuse_change()`,
		`select criticizer.guard_artifact()`,
		`create function criticizer.mine() returns int language sql as 'select 1'`,
		`insert into criticizer.recipients (changelist_id, review_version, position, user_name, address, role, saved_at)
		 values (1, 1, 9, 'a', 'a@corp.test', 'author', now() + interval '10 years')`,
	}
	for _, ns := range []string{"raw", "redacted", "report", "answer"} {
		workers = append(workers,
			`insert into `+ns+`.artifacts (id, body, expires_at) values (repeat('b', 64), 'x', now() + interval '1 hour')`,
			`insert into `+ns+`.artifacts (id, body, stored_at) values (repeat('b', 64), 'x', now() + interval '10 years')`,
			`update `+ns+`.artifacts set expires_at = expires_at + interval '1 hour'`,
			`update `+ns+`.artifacts set stored_at = now()`,
			`update `+ns+`.artifacts set ttl = '168 hours'`) // the body is not stored again
	}
	try := func(role string, statements []string) {
		for _, statement := range statements {
			if refused := refusal(t, conn, role, statement); refused == nil || refused.Code != "42501" {
				t.Errorf("%s: %s: %v", role, statement, refused)
			}
		}
	}
	for _, role := range everyRole {
		try(string(role), append(everybody, workers...))
	}
	everybody = slices.DeleteFunc(everybody, func(s string) bool {
		return strings.HasPrefix(s, "create table") || strings.HasPrefix(s, "create temp")
	})
	try(login, everybody)
}

// A role cannot set the name of the session in the audit log.
func TestActorIsTheSession(t *testing.T) {
	t.Parallel()
	conn, login := owned(t)
	for _, role := range allRoles {
		exec(t, conn, `begin; set local role `+string(role)+`; insert into criticizer.audit_log (claimed, action, object) values ('olga', 'a', 'b'); commit`)
		if got, want := query[string](t, conn, `select actor || ' ' || role || ' ' || claimed from criticizer.audit_log order by id desc limit 1`),
			login+" "+string(role)+" olga"; got != want {
			t.Errorf("the audit log holds %q, want %q", got, want)
		}
	}
}
