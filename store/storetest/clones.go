package storetest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/postgres/postgrestest"
)

//go:embed fingerprint.sql
var fingerprint string

//go:embed clean.sql
var clean string

// acquire locks a clone of the template until the test ends and returns its name. It
// takes the first clone that is free; any process may have used it before.
func acquire(tb testing.TB, cluster, template string) (name string, err error) {
	tb.Helper()
	lock, err := pgx.Connect(tb.Context(), cluster)
	if err != nil {
		return "", err
	}
	tb.Cleanup(func() { _ = lock.Close(context.Background()) }) // releases the clone
	for n, locked := 1, false; !locked; n++ {
		name = fmt.Sprintf("%s_clone%d", template, n)
		if err := lock.QueryRow(tb.Context(), `select pg_try_advisory_lock(hashtextextended($1, 0))`, name).Scan(&locked); err != nil {
			return "", err
		}
	}
	if restore(tb.Context(), lock, cluster, name) == nil {
		return name, nil
	}
	return name, create(tb.Context(), lock, cluster, name, template)
}

// create makes a new clone. Its comment records the fingerprint of its content and the
// first transaction that may change it.
func create(ctx context.Context, admin *pgx.Conn, cluster, name, template string) error {
	for _, statement := range []string{`drop database if exists %[1]q with (force)`, `create database %[1]q template %[2]q`} {
		if _, err := admin.Exec(ctx, fmt.Sprintf(statement, name, template)); err != nil {
			return err
		}
	}
	content, err := run(ctx, postgrestest.WithDatabase(cluster, name), fingerprint)
	if err != nil {
		return err
	}
	var first string
	if err := admin.QueryRow(ctx, `select pg_current_xact_id()::text`).Scan(&first); err != nil {
		return err
	}
	_, err = admin.Exec(ctx, fmt.Sprintf(`comment on database %q is '%s %s'`, name, first, content))
	return err
}

// restore deletes what a test has left in a clone. It returns an error if there is no
// such clone, or if the content still differs, as after a change of the schema.
func restore(ctx context.Context, admin *pgx.Conn, cluster, name string) error {
	var comment string
	err := admin.QueryRow(ctx, `select shobj_description(oid, 'pg_database') from pg_database where datname = $1`, name).Scan(&comment)
	if err != nil {
		return err
	}
	first, content, _ := strings.Cut(comment, " ")
	// Processes of the test before may still be connected.
	if _, err := admin.Exec(ctx, `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = $1`, name); err != nil {
		return err
	}
	restored, err := run(ctx, postgrestest.WithDatabase(cluster, name), "set storetest.first = "+first+";\n"+clean+fingerprint)
	if err == nil && restored != content {
		err = errors.New("its content differs from the template's")
	}
	return err
}

// run executes statements in one transaction and returns the value of the last one.
func run(ctx context.Context, database, statements string) (value string, err error) {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	results, err := conn.PgConn().Exec(ctx, statements).ReadAll()
	if err != nil {
		return "", err
	}
	return string(results[len(results)-1].Rows[0][0]), nil
}
