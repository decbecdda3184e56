package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/store/db"
	"github.com/criticizer/criticizer/store/migrations"
)

// migrationLock is the key of the advisory lock under which migrations run.
const migrationLock = 0x63726974

// A migration is one file of package migrations. Its number is its place among them, and
// its fingerprint is a hash of its content.
type migration struct{ name, sql, fingerprint string }

// Migrate applies the migrations that the database lacks, each in one transaction with
// its fingerprint. It refuses a database with another schema than that of this build or
// an earlier release. Concurrent calls wait for each other. The login must own the
// database, and must have the right to create roles unless an administrator has created
// them.
func Migrate(ctx context.Context, lg *slog.Logger, where Config) error {
	cfg, err := poolConfig(where, "")
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return interpret("connect to database", err)
	}
	// The lock ends with the session, even if this process is killed.
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, `select pg_advisory_lock($1)`, int64(migrationLock)); err != nil {
		return interpret("lock schema", err)
	}
	missing, err := missingMigrations(ctx, db.New(conn), conn.Config())
	if err != nil {
		return err
	}
	for _, m := range missing {
		begun := time.Now()
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, m.sql); err != nil {
				return err
			}
			return db.New(tx).RecordMigration(ctx, db.RecordMigrationParams{Name: m.name, Fingerprint: m.fingerprint})
		})
		if err != nil {
			return interpret("apply migration "+m.name, err)
		}
		lg.InfoContext(ctx, "migration applied", "name", m.name, "duration_ms", time.Since(begun).Milliseconds())
	}
	_, err = conn.Exec(ctx, revokeTemporary)
	return interpret("revoke the right to create temporary tables: the login must own the database", err)
}

// revokeTemporary keeps roles from creating tables of their own, to which they could
// attach the schema's functions. It is not a migration: neither a restored nor a copied
// database keeps the rights on the database itself.
const revokeTemporary = `
do $$
begin
    execute format('revoke temporary on database %I from public', current_database());
    if has_database_privilege('public', current_database(), 'temporary') then
        raise insufficient_privilege using message = 'login ' || current_user || ' does not own database ' || current_database();
    end if;
end $$`

// CheckSchema returns an error of class CONFIG_INVALID unless the database has the schema
// of this build.
func (d *DB) CheckSchema(ctx context.Context) error {
	missing, err := missingMigrations(ctx, d.q, d.pool.Config().ConnConfig)
	if err == nil && len(missing) > 0 {
		err = failure.Errorf(failure.ConfigInvalid, "database lacks migration %s: run criticizer migrate of this build", missing[0].name)
	}
	return err
}

// missingMigrations returns the migrations of this build that the database lacks. It
// returns an error of class CONFIG_INVALID if the database has others.
func missingMigrations(ctx context.Context, q *db.Queries, where *pgx.ConnConfig) ([]migration, error) {
	all, err := allMigrations()
	if err != nil {
		return nil, failure.New(failure.InvariantViolated, err)
	}
	applied, err := q.Migrations(ctx)
	err = interpret("read migrations", err)
	other := failure.ClassOf(err) == failure.ConfigInvalid || failure.ClassOf(err) == failure.PermissionDenied // not the table of this build
	if err != nil && !other {
		return nil, err
	}
	if len(applied) == 0 {
		exists, err := q.SchemaExists(ctx)
		switch {
		case err != nil:
			return nil, interpret("look for the schema", err)
		case exists:
			return nil, refuse(where)
		}
	}
	for i, fingerprint := range applied {
		if i == len(all) || fingerprint != all[i].fingerprint {
			return nil, refuse(where)
		}
	}
	return all[len(applied):], nil
}

// refuse returns the error about a database whose schema is not of this build.
func refuse(where *pgx.ConnConfig) error {
	return failure.Errorf(failure.ConfigInvalid, "database %s has the schema of another build, whose fingerprint this build does not know: deploy that build, "+
		"or give up the data, create the database again and run criticizer migrate; "+
		`this command drops it: psql --host=%s --port=%d --username=%s --dbname=postgres --command='drop database "%s" with (force)'`,
		where.Database, where.Host, where.Port, where.User, where.Database)
}

func allMigrations() ([]migration, error) {
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		return nil, err
	}
	all := make([]migration, len(names))
	for i, name := range names {
		text, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			return nil, err
		}
		all[i] = migration{name, string(text), fmt.Sprintf("%x", sha256.Sum256(text))}
	}
	return all, nil
}
