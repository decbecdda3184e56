package store_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

func TestMigrateTwiceAndAtOnce(t *testing.T) {
	t.Parallel()
	d := storetest.NewEmpty(t)
	lg := slog.New(slog.DiscardHandler)
	var starts sync.WaitGroup
	for range 3 {
		starts.Go(func() {
			if err := store.Schema().Migrate(t.Context(), lg, postgres.Config{URL: d.URL}); err != nil {
				t.Error(err)
			}
		})
	}
	starts.Wait()
	testkit.NoError(t, store.Schema().Migrate(t.Context(), lg, postgres.Config{URL: d.URL}))
	testkit.NoError(t, d.Open(t, store.RoleLLM).CheckSchema(t.Context()))
}

// A database with another schema, such as an older state of 00001, is refused at start and
// by Migrate, in every role. The message has the command that drops it.
func TestOtherSchemasAreRefused(t *testing.T) {
	t.Parallel()
	lg := slog.New(slog.DiscardHandler)
	for name, statement := range map[string]string{
		"another fingerprint":          `update criticizer.migrations set fingerprint = repeat('0', 64)`,
		"a migration of a newer build": `insert into criticizer.migrations (name, fingerprint) values ('00002_later.sql', repeat('0', 64))`,
		"no fingerprint":               `delete from criticizer.migrations`,
		"no table of migrations":       `drop table criticizer.migrations`,
		"a table of another build":     `alter table criticizer.migrations rename column fingerprint to version`,
		"a table without grants":       `revoke select on criticizer.migrations from criticizer_llm`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := storetest.New(t)
			exec(t, d.Conn(t), statement)
			err := d.Open(t, store.RoleLLM).CheckSchema(t.Context())
			wantClass(t, err, failure.ConfigInvalid)
			if name != "a table without grants" { // the owner needs none
				wantClass(t, store.Schema().Migrate(t.Context(), lg, postgres.Config{URL: d.URL}), failure.ConfigInvalid)
			}
			_, command, _ := strings.Cut(err.Error(), "--command='")
			command, _, _ = strings.Cut(command, "'")
			exec(t, storetest.NewEmpty(t).Conn(t), command)
			if _, err := pgx.Connect(t.Context(), d.URL.Reveal()); err == nil {
				t.Errorf("%q has not dropped the database", command)
			}
		})
	}
}

func TestSchemaOfAnotherProgramIsRefused(t *testing.T) {
	t.Parallel()
	d := storetest.NewEmpty(t)
	exec(t, d.Conn(t), `create schema criticizer`)
	wantClass(t, store.Schema().Migrate(t.Context(), slog.New(slog.DiscardHandler), postgres.Config{URL: d.URL}), failure.ConfigInvalid)
}

func TestEmptyDatabaseMustBeMigrated(t *testing.T) {
	t.Parallel()
	err := storetest.NewEmpty(t).Open(t, "").CheckSchema(t.Context())
	wantClass(t, err, failure.ConfigInvalid)
	if !strings.Contains(err.Error(), "run: criticizer migrate") {
		t.Error(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	// Logins belong to the cluster, so the name must be unique.
	login := "stranger_" + strings.ToLower(rand.Text())
	conn := d.Conn(t)
	exec(t, conn, "create role "+login+" login password 'hunter2'")
	t.Cleanup(func() {
		must(conn.Exec(context.Background(), "drop role "+login))(t)
	})
	for _, tc := range []struct {
		name string
		url  secret.Value
		role store.Role
		want failure.Class
	}{
		{"no URL", secret.Value{}, "", failure.ConfigInvalid},
		{"a malformed URL", secret.New("postgres://u:hunter2@[::1"), "", failure.ConfigInvalid},
		{"a closed port", secret.New("postgres://u:hunter2@127.0.0.1:1/x"), "", failure.DatabaseUnavailable},
		{"a missing database", edit(t, d.URL, func(u *url.URL) { u.Path = "/missing" }), "", failure.ConfigInvalid},
		{"a missing role", d.URL, "criticizer_missing", failure.ConfigInvalid},
		{"a login that is not a member of the role", edit(t, d.URL, func(u *url.URL) { u.User = url.UserPassword(login, "hunter2") }), store.RoleFetch, failure.PermissionDenied},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := store.Open(t.Context(), slog.New(slog.DiscardHandler), postgres.Config{URL: tc.url}, tc.role)
			wantClass(t, err, tc.want)
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

// New connections use the login of a renewed URL (security 9.3.5).
func TestLoginIsRenewedInUse(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	conn := d.Conn(t)
	login := "rotated_" + strings.ToLower(rand.Text())
	t.Cleanup(func() {
		must(conn.Exec(context.Background(), "drop role "+login))(t)
	})
	exec(t, conn, "create role "+login+" login superuser password 'hunter2'")
	file := filepath.Join(t.TempDir(), "url")
	testkit.NoError(t, os.WriteFile(file, []byte(d.URL.Reveal()), 0o600))
	databaseURL, err := secret.Lookup("URL", func(name string) string { return map[string]string{"URL_FILE": file}[name] })
	testkit.NoError(t, err)
	db := must(store.Open(t.Context(), slog.New(slog.DiscardHandler), postgres.Config{URL: databaseURL}, ""))(t)
	t.Cleanup(db.Close)

	renewed := edit(t, d.URL, func(u *url.URL) { u.User = url.UserPassword(login, "hunter2") })
	testkit.NoError(t, os.WriteFile(file, []byte(renewed.Reveal()), 0o600))
	secret.Reload(t.Context(), slog.New(slog.DiscardHandler), []secret.Followed{{Name: "URL", Value: databaseURL, Accept: func(s secret.Value) error { return postgres.Config{URL: s}.Check() }}})
	exec(t, conn, `
		select pg_terminate_backend(pid, 5000) from pg_stat_activity
		where datname = current_database() and pid <> pg_backend_pid()`)
	_ = db.CheckSchema(t.Context()) // meets the session that was ended
	testkit.NoError(t, db.CheckSchema(t.Context()))
	var sessions int
	testkit.NoError(t, conn.QueryRow(t.Context(), `select count(*) from pg_stat_activity where usename = $1`, login).Scan(&sessions))
	if sessions == 0 {
		t.Error("no session is of the new login")
	}
}

func TestALostDatabaseIsRetryable(t *testing.T) {
	t.Parallel()
	db, d := bookkeeping(t)
	open(t, db, v1, "run1")
	exec(t, d.Conn(t), `
		select pg_terminate_backend(pid, 5000) from pg_stat_activity
		where datname = current_database() and pid <> pg_backend_pid()`)
	_, err := db.Job(t.Context(), v1.Key)
	wantClass(t, err, failure.DatabaseUnavailable)
	wantState(t, db, v1, review.JobInProgress) // and the pool recovers
}

func edit(t *testing.T, database secret.Value, change func(*url.URL)) secret.Value {
	t.Helper()
	u := must(url.Parse(database.Reveal()))(t)
	change(u)
	return secret.New(u.String())
}

// Every role can read the version and time of the server.
func TestServerTellsOfItself(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	for _, role := range []store.Role{"", store.RoleLLM, store.RoleRetention, store.RoleReader} {
		got := must(d.Open(t, role).Server(t.Context()))(t)
		if got.MajorVersion < store.OldestPostgres || time.Since(got.Clock).Abs() > time.Minute || !got.Superuser {
			t.Errorf("as %q the server says %+v", role, got)
		}
	}
}

// A database is created once.
func TestCreateDatabase(t *testing.T) {
	t.Parallel()
	server := storetest.NewEmpty(t)
	conn, name := server.Conn(t), "criticizer_test_"+rand.Text()
	t.Cleanup(func() {
		must(conn.Exec(context.Background(), `drop database "`+name+`" with (force)`))(t)
	})
	for range 2 {
		created := must(postgres.CreateDatabase(t.Context(), server.URL, name))(t)
		(&storetest.Database{URL: created}).Open(t, "")
	}
	_, err := postgres.CreateDatabase(t.Context(), secret.New("host=127.0.0.1 sslmode=disable"), name)
	wantClass(t, err, failure.ConfigInvalid)
}
