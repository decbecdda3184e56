package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/store/migrations"
)

// migrationLock is the key of the advisory lock under which migrations run.
const migrationLock = 0x63726974

// Migrate applies the migrations that the database's schema lacks. Concurrent calls
// wait for each other. The login must own the database, and must have the right to
// create roles unless an administrator has created them.
func Migrate(ctx context.Context, lg *slog.Logger, where Config) error {
	cfg, err := poolConfig(where, "")
	if err != nil {
		return err
	}
	conns := stdlib.OpenDB(*cfg.ConnConfig)
	defer func() { _ = conns.Close() }()
	locked, err := conns.Conn(ctx)
	if err != nil {
		return interpret("connect to database", err)
	}
	// The lock ends with the session, even if this process is killed.
	defer func() { _ = locked.Close() }()
	if _, err := locked.ExecContext(ctx, `select pg_advisory_lock($1)`, int64(migrationLock)); err != nil {
		return interpret("lock schema", err)
	}
	if _, err := locked.ExecContext(ctx, `create schema if not exists criticizer`); err != nil {
		return interpret("create schema criticizer", err)
	}
	if err := up(ctx, lg, conns); err != nil {
		return err
	}
	_, err = locked.ExecContext(ctx, revokeTemporary)
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

func up(ctx context.Context, lg *slog.Logger, conns *sql.DB) error {
	provider, err := goose.NewProvider(goose.DialectPostgres, conns, migrations.FS,
		goose.WithTableName("criticizer.migrations"), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return failure.New(failure.InvariantViolated, err)
	}
	applied, err := provider.Up(ctx)
	if partial, ok := errors.AsType[*goose.PartialError](err); ok {
		applied = partial.Applied
	}
	for _, m := range applied {
		lg.InfoContext(ctx, "migration applied", "version", m.Source.Version, "duration_ms", m.Duration.Milliseconds())
	}
	return interpret("migrate schema", err)
}

// CheckSchema returns an error of class CONFIG_INVALID unless this build works with
// the database's schema: the build's own version, or a newer one that supports older
// builds (docs/upgrade.md).
func (d *DB) CheckSchema(ctx context.Context) error {
	build, err := latestMigration()
	if err != nil {
		return failure.New(failure.InvariantViolated, err)
	}
	have, err := d.q.SchemaVersion(ctx)
	if err = interpret("read schema version", err); failure.ClassOf(err) == failure.ConfigInvalid {
		return failure.Errorf(failure.ConfigInvalid, "database has no schema: run criticizer migrate: %w", err)
	}
	switch {
	case err != nil || have == build:
		return err
	case have < build:
		return failure.Errorf(failure.ConfigInvalid, "database schema is version %d, this build needs %d: run criticizer migrate of this build", have, build)
	}
	return d.checkServed(ctx, have, build)
}

// checkServed returns an error if a newer schema does not support this build.
func (d *DB) checkServed(ctx context.Context, have, build int64) error {
	oldest, err := d.q.OldestBuild(ctx)
	if err == nil && build < oldest {
		return failure.Errorf(failure.ConfigInvalid,
			"database schema is version %d and supports builds from %d on, this one is of %d: deploy the newer build", have, oldest, build)
	}
	return interpret("read the oldest build that the schema supports", err)
}

func latestMigration() (int64, error) {
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		return 0, err
	}
	return goose.NumericComponent(names[len(names)-1])
}
